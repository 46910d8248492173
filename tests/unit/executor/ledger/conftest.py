"""An identity, the scripted peers of four organisations, and a client of theirs."""

import pytest
from support.scripted_peers import CHAIN, MSPS, WAIT, ScriptedPeer, client_of, msp_folder

from executor.ledger.gateway import Identity, inquiry


@pytest.fixture(scope="session")
def identity(tmp_path_factory):
    folder = msp_folder(tmp_path_factory.mktemp("org") / "users/alice/msp")
    return Identity.load(folder, "Org1MSP")


@pytest.fixture
def peers():
    """Four peers: two organisations make a fact, three endorse. For a client, ask for `client` too."""
    CHAIN.clear()
    made = [ScriptedPeer(msp) for msp in MSPS]
    yield made
    for peer in made:
        peer.server.stop(None)


@pytest.fixture
def client(identity, peers, monkeypatch):
    """A client whose own peer is the first of `peers`, with long deadlines and short pauses."""
    monkeypatch.setattr(inquiry, "PAUSES", (0.01,))
    # Nobody is late in these tests unless a test says so: a busy machine is slow, not wrong.
    monkeypatch.setattr(inquiry, "HEDGE_SECONDS", WAIT)
    with client_of(identity, [peer.peer for peer in peers]) as made:
        yield made
