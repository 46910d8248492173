"""Hostile members' peers on the live network, with valid certificates and keys of their organisations.

Four organisations: two make a fact, three endorse.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.channel import DIGESTS, IMAGE, REPOSITORY, committed_everywhere, unique
from support.launching import launched, running, task_of
from support.lying_peer import (
    Answer,
    LyingPeer,
    endorsed,
    evaluated,
    lying_peer,
    signed_by,
    swallowed,
    valid,
    with_answer,
)
from support.network import refusing_port

from executor import exits
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.gateway import Deadlines, Gateway, Identity, Peer, Trust
from executor.ledger.gateway_transport import GatewayTransport
from executor.ledger.identities import authorities_of, load_identity, peers_of
from executor.network import CHANNEL, Network
from protocol.digest import Digest
from protocol.errors import StateError

MANIFEST, IMAGE_ID, FORGED_ID = (Digest.parse(DIGESTS[number]) for number in (1, 2, 3))
QUICK = Deadlines(agree=1, own_lag=0.3, another_peer=2)
SOON = 120
"""Seconds in which a write ends on a busy machine; one that waited for a hanging peer takes twice that."""


@pytest.fixture(scope="module")
def live() -> Network:
    return Network.load()


@pytest.fixture(scope="module")
def version(live: Network) -> str:
    """A registered version that every peer knows."""
    made = unique("1")
    with GatewayTransport.connect(live, "org1", "data-scientist") as client:
        committed_everywhere(register(Ledger(client), made).receipt.tx_id)
    return made


@pytest.fixture
def nowhere() -> Iterator[str]:
    with refusing_port() as port:
        yield f"127.0.0.1:{port}"


def register(ledger: Ledger, version: str) -> Any:
    return ledger.images.register(IMAGE, version, MANIFEST, IMAGE_ID, REPOSITORY, "for a test")


@contextmanager
def hostile(live: Network, organisation: str) -> Iterator[tuple[LyingPeer, list[Peer]]]:
    """A lying peer, and the peers as org1 knows them, with it in the place of that organisation's."""
    with lying_peer(live, organisation) as (liar, where):
        yield liar, [where if peer.msp == where.msp else peer for peer in peers_of(live, "org1")]


@contextmanager
def ledger_of(live: Network, peers: list[Peer], trust: Trust | None = None) -> Iterator[Ledger]:
    scientist = load_identity(live, "org1", "data-scientist")
    made = Gateway(scientist, peers, CHANNEL, authorities_of(live), trust or Trust(), QUICK)
    with Ledger(GatewayTransport(made)) as ledger:
        yield ledger


def without_own(peers: list[Peer], nowhere: str) -> list[Peer]:
    return [replace(peers[0], address=nowhere), *peers[1:]]


def forged(liar: LyingPeer, version: str) -> None:
    """Let a peer name its own image."""

    def answer(request: Any, context: Any) -> Any:
        found = json.loads(liar.honest("Evaluate", request).result.payload)
        found["image"]["image_id"] = str(FORGED_ID)
        return evaluated(json.dumps(found).encode())(request, context)

    liar.lie("Evaluate", answer)


def test_h1_forged_reads_are_outvoted_with_the_own_peer_down(
    live: Network, version: str, nowhere: str
) -> None:
    with hostile(live, "org2") as (liar, peers):
        forged(liar, version)
        with ledger_of(live, without_own(peers, nowhere)) as ledger:
            assert ledger.images.get(IMAGE, version).image.image_id == IMAGE_ID
        assert liar.asked["Evaluate"]


def test_h1_a_forged_read_that_nobody_confirms_is_refused(live: Network, version: str, nowhere: str) -> None:
    """Own peer and one other down: the liar and an honest one are left, and neither is believed."""
    with hostile(live, "org2") as (liar, peers):
        forged(liar, version)
        left = without_own(peers, nowhere)[:3]
        with ledger_of(live, left) as ledger, pytest.raises(PhaseError) as raised:
            ledger.images.get(IMAGE, version)
        assert raised.value.code == "PEERS_DISAGREE"
        assert exits.exit_code(raised.value) == exits.IMAGE_INTEGRITY
        assert {"Org2MSP", "Org3MSP"} <= {detail.msp for detail in raised.value.details}
        with ledger_of(live, left[:2]) as ledger, pytest.raises(PhaseError) as alone:
            ledger.images.get(IMAGE, version)
        assert (alone.value.code, exits.exit_code(alone.value)) == ("LEDGER_UNREACHABLE", 20)


def no_endorsement(action: Any) -> None:
    del action.endorsements[:]


def _alter(make: Callable[[LyingPeer, Any], None]) -> Callable[[LyingPeer], Answer]:
    return lambda liar: endorsed(lambda action: make(liar, action))(liar)


def another_answer(liar: LyingPeer, action: Any) -> None:
    """A lie that the organisation's own key signs."""
    lie = with_answer(action.proposal_response_payload, b'{"registered":"by me"}')
    action.proposal_response_payload = lie
    action.endorsements[0].CopyFrom(signed_by(liar.signer, lie))


def unsigned_answer(_: LyingPeer, action: Any) -> None:
    action.proposal_response_payload = with_answer(action.proposal_response_payload, b"{}")


def another_organisations_signature(liar: LyingPeer, action: Any) -> None:
    """In the name of another organisation, by the own key."""
    posing = replace(liar.signer, msp_id="Org3MSP")
    action.endorsements[0].CopyFrom(signed_by(posing, action.proposal_response_payload))


def a_users_certificate(liar: LyingPeer, action: Any) -> None:
    user = load_identity(liar.network, "org2", "data-scientist")
    action.endorsements[0].CopyFrom(signed_by(user, action.proposal_response_payload))


def the_tls_certificate(liar: LyingPeer, action: Any) -> None:
    tls = liar.network.folder("org2") / "peer/tls"
    posing = Identity.from_pem(
        "Org2MSP", (tls / "server.crt").read_bytes(), (tls / "server.key").read_bytes()
    )
    action.endorsements[0].CopyFrom(signed_by(posing, action.proposal_response_payload))


FORGERIES = {
    "none at all": endorsed(no_endorsement),
    "of another answer, unsigned": _alter(unsigned_answer),
    "in another organisation's name": _alter(another_organisations_signature),
    "by a user": _alter(a_users_certificate),
    "by the TLS certificate": _alter(the_tls_certificate),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_h1_a_forged_endorsement_is_not_signed(
    live: Network, nowhere: str, forgery: Callable[[LyingPeer], Answer]
) -> None:
    with hostile(live, "org2") as (liar, peers):
        liar.lie("Endorse", forgery(liar))
        version = unique("1")
        with ledger_of(live, without_own(peers, nowhere)) as ledger:
            with pytest.raises(PhaseError) as raised:
                register(ledger, version)
            assert (raised.value.code, raised.value.phase) == ("TRANSACTION_ALTERED", "endorse")
            assert exits.exit_code(raised.value) == exits.IMAGE_INTEGRITY
            (named,) = [detail for detail in raised.value.details if "untrue" in detail.message]
            assert named.msp == "Org2MSP"
        assert not liar.asked["Submit"]
        with ledger_of(live, peers) as ledger, pytest.raises(StateError) as unknown:
            ledger.images.get(IMAGE, version)
        assert unknown.value.code == "IMAGE_UNKNOWN"


def test_h1_an_answer_that_one_organisation_signs_alone_is_not_signed(live: Network, nowhere: str) -> None:
    with hostile(live, "org2") as (liar, peers):
        liar.lie("Endorse", _alter(another_answer)(liar))
        with (
            ledger_of(live, without_own(peers, nowhere)) as ledger,
            pytest.raises(PhaseError) as raised,
        ):
            register(ledger, unique("1"))
        assert (raised.value.code, raised.value.phase) == ("PEERS_DISAGREE", "endorse")
        assert not liar.asked["Submit"]


def test_h1_one_hostile_endorser_stops_no_write_and_is_named(
    live: Network, caplog: pytest.LogCaptureFixture
) -> None:
    with hostile(live, "org2") as (liar, peers), ledger_of(live, peers) as ledger:
        liar.lie("Endorse", endorsed(no_endorsement)(liar))
        liar.lie("CommitStatus", valid(1))
        assert register(ledger, unique("1")).receipt.block > 1
        assert "the peer of Org2MSP" in caplog.text
        assert "no endorsement" in caplog.text


def test_h1_valid_said_by_one_is_not_believed(live: Network, nowhere: str) -> None:
    with hostile(live, "org2") as (liar, peers):
        liar.lie("CommitStatus", valid(10**6))
        with ledger_of(live, without_own(peers, nowhere)) as ledger:
            gateway = ledger.transport.gateway
            gateway.deadlines = replace(QUICK, commit=2)
            with pytest.raises(Exception, match="COMMIT_UNKNOWN") as raised:
                gateway.commit_status("ab" * 32)
        assert "only Org2MSP answered" in str(raised.value)


def test_h1_a_transaction_that_a_peer_swallows_is_handed_over_by_another(live: Network, nowhere: str) -> None:
    with hostile(live, "org2") as (liar, peers):
        liar.lie("Submit", swallowed)
        liar.lie("CommitStatus", valid(10**6))
        with ledger_of(live, without_own(peers, nowhere)) as ledger:
            version = unique("1")
            done = register(ledger, version)
            assert done.receipt.block < 10**6
            assert ledger.images.get(IMAGE, version) == done.answer
        assert [one.transaction_id for one in liar.asked["Submit"]] == [done.receipt.tx_id]


def test_h2_the_own_peer_lies_about_everything_and_nothing_is_believed(live: Network, version: str) -> None:
    with hostile(live, "org1") as (liar, peers), ledger_of(live, peers) as ledger:
        forged(liar, version)
        assert ledger.images.get(IMAGE, version).image.image_id == IMAGE_ID
        liar.lie("Endorse", _alter(another_answer)(liar))
        liar.lie("Submit", swallowed)
        liar.lie("CommitStatus", valid(1))
        made = unique("1")
        done = register(ledger, made)
        assert done.receipt.block > 1
        assert done.answer.image.version == made
        assert liar.asked["Endorse"]


def test_h2_who_trusts_the_own_peer_alone_is_told_what_it_likes(live: Network, version: str) -> None:
    with hostile(live, "org1") as (liar, peers), ledger_of(live, peers, Trust(own_peer=True)) as ledger:
        forged(liar, version)
        assert ledger.images.get(IMAGE, version).image.image_id == FORGED_ID


def test_h2_a_launch_runs_what_the_organisations_agreed_on_whatever_the_own_peer_says(
    live: Network, learner: str, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = running(learner, rows, {"node01": "org1"}, topology="disconnected")
    with lying_peer(live, "org1") as (liar, where):

        def answer(request: Any, context: Any) -> Any:
            raw = liar.honest("Evaluate", request).result.payload
            return evaluated(raw.replace(b'"image_id":"sha256:', b'"image_id":"sha256:0000')[: len(raw)])(
                request, context
            )

        liar.lie("Evaluate", answer)
        own = Network.peer_address
        monkeypatch.setattr(
            Network, "peer_address", lambda self, name: where.address if name == "org1" else own(self, name)
        )
        (report,) = launched(process, "--data", str(rows), "--node", "node01", "--iterations", "1")
    assert report["error"] is None
    assert task_of(process, "node01").state == "completed"
    assert liar.asked["Evaluate"]


def test_e13_a_hanging_foreign_peer_delays_no_write_and_is_blamed_itself(
    live: Network, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()
    with ExitStack() as stack:
        liar, peers = stack.enter_context(hostile(live, "org2"))
        stack.callback(released.set)
        for method in ("Evaluate", "Endorse", "CommitStatus"):
            liar.lie(method, lambda request, context: released.wait(2 * SOON))
        with ledger_of(live, peers) as ledger:
            patient = replace(QUICK, endorse=2 * SOON, commit=2 * SOON)
            ledger.transport.gateway.deadlines = patient
            began = time.monotonic()
            register(ledger, unique("1"))
            assert time.monotonic() - began < SOON
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [message for message in told if "Org2MSP" in message and "no answer" in message]
