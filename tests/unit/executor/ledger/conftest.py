"""An identity, two scripted peers, and a client of theirs."""

import pytest
from support.scripted_peers import PATIENT, ScriptedPeer, msp_folder

from executor.ledger.gateway import Gateway, Identity, retry


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """gRPC would obey the proxy variables of whoever runs the tests even on this host."""
    monkeypatch.setenv("no_grpc_proxy", "127.0.0.1")


@pytest.fixture(scope="session")
def identity(tmp_path_factory):
    folder = msp_folder(tmp_path_factory.mktemp("org") / "users/alice/msp")
    return Identity.load(folder, "Org1MSP")


@pytest.fixture
def peers():
    """Two peers; a test that wants a client asks for `client` too."""
    made = [ScriptedPeer("Org1MSP"), ScriptedPeer("Org2MSP")]
    yield made
    for peer in made:
        peer.server.stop(None)


@pytest.fixture
def client(identity, peers, monkeypatch):
    """A client whose own peer is the first of `peers`, with long deadlines and short pauses."""
    monkeypatch.setattr(retry, "PAUSES", (0.001,) * 5)
    with Gateway(identity, [peer.peer for peer in peers], "channel", PATIENT) as made:
        yield made
