"""The Gateway client on the live network."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

import grpc
import pytest
from support.channel import DIGESTS, IMAGE, REPOSITORY, specification, unique
from support.network import refusing_port

from executor import exits
from executor.caller import Caller
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.follow import wait_until
from executor.ledger.gateway import CommitStatusError, Deadlines, Gateway, Identity, Peer, SubmitError, Trust
from executor.ledger.gateway.messages import common
from executor.ledger.gateway.peer import Link
from executor.ledger.gateway_transport import GatewayTransport
from executor.ledger.identities import authorities_of, peers_of
from executor.network import CHANNEL, Network
from protocol.digest import Digest
from protocol.errors import AccessError, AttestreeError, StateError

MANIFEST, IMAGE_ID = Digest.parse(DIGESTS[1]), Digest.parse(DIGESTS[2])


@pytest.fixture(scope="module")
def live():
    return Network.load()


@pytest.fixture(scope="module")
def scientist(live):
    with Caller(live, "org1", "data-scientist").ledger() as ledger:
        yield ledger


def peer_of(live, organisation):
    tls_ca = (live.folder(organisation) / "tlsca.pem").read_bytes()
    return Peer(live.peer_address(organisation), live.msp_id(organisation), tls_ca)


def dead_peer(live, port):
    return replace(peer_of(live, "org1"), address=f"127.0.0.1:{port}")


def transport_of(live, identity, peers, **more):
    return GatewayTransport(Gateway(identity, peers, CHANNEL, authorities_of(live), **more))


def identity_of(live, organisation, name):
    return Identity.load(live.msp_folder(organisation, name), live.msp_id(organisation))


def register(ledger, version, name=IMAGE):
    return ledger.images.register(name, version, MANIFEST, IMAGE_ID, REPOSITORY, "for a test")


def test_what_is_submitted_can_be_evaluated(scientist):
    version = unique("1")
    done = register(scientist, version)
    assert done.answer == scientist.images.get(IMAGE, version)
    assert done.answer.registered.tx == done.receipt.tx_id
    info = scientist.transport.chain_info()
    assert info.height > done.receipt.block


def test_blocks_have_the_transaction_and_chain_together(scientist):
    receipt = register(scientist, unique("1")).receipt
    block = common.Block.FromString(scientist.transport.block(receipt.block))
    assert block.header.number == receipt.block
    ids = []
    for raw in block.data.data:
        payload = common.Payload.FromString(common.Envelope.FromString(raw).payload)
        ids.append(common.ChannelHeader.FromString(payload.header.channel_header).tx_id)
    assert receipt.tx_id in ids


def test_refusals_come_in_their_class_from_the_phase_that_failed(live, scientist):
    with pytest.raises(StateError) as read:
        scientist.images.get(IMAGE, unique("none"))
    assert isinstance(read.value.__cause__, PhaseError)
    assert (read.value.code, read.value.__cause__.phase) == ("IMAGE_UNKNOWN", "evaluate")
    version = unique("1")
    register(scientist, version)
    with pytest.raises(StateError) as written:
        register(scientist, version)
    phase = written.value.__cause__
    assert (written.value.code, phase.phase) == ("IMAGE_EXISTS", "endorse")
    assert phase.tx_id
    # Enough organisations had the block; one whose peer is behind endorses, and others say no.
    assert phase.details
    assert {detail.msp for detail in phase.details} <= {f"Org{number}MSP" for number in range(1, 5)}
    with Caller(live, "org1", "auditor").ledger() as auditor, pytest.raises(AccessError) as denied:
        register(auditor, unique("1"))
    assert exits.exit_code(denied.value) == exits.NOT_AUTHORISED


def test_an_identity_of_another_organisation_is_not_admitted(live):
    stranger = replace(identity_of(live, "org2", "data-scientist"), msp_id="Org1MSP")
    with transport_of(live, stranger, peers_of(live, "org1")) as client:
        with pytest.raises(AccessError) as raised:
            client.evaluate("image", "List")
        assert raised.value.code == "ACCESS_DENIED"
        with pytest.raises(AccessError):
            client.submit("image", "Retire", "a", "1")
        with pytest.raises(AccessError):
            next(client.events("image", 0, 10))
        with pytest.raises(CommitStatusError) as unread:
            client.gateway.commit_status("0" * 64)
        assert unread.value.refusal.code == "ACCESS_DENIED"


def test_lists_are_followed_over_pages(live, monkeypatch):
    monkeypatch.setattr("executor.ledger.chaincodes.proxy.PAGE", 2)
    versions = [unique("1") for _ in range(3)]
    # Of an organisation that has not registered much else, or there would be hundreds of pages.
    with Caller(live, "org4", "data-scientist").ledger() as ledger:
        for version in versions:
            register(ledger, version, "org4/learner")
        images = [record.image for record in ledger.images.list("Org4MSP")]
        found = [(image.name, image.version) for image in images]
        assert len(found) == len(set(found)) >= 3
        assert {("org4/learner", version) for version in versions} <= set(found)
        assert not list(ledger.images.list("Org9MSP"))


def test_e11_events_go_on_from_a_checkpoint(scientist):
    transport = scientist.transport
    start = transport.chain_info().height
    versions = [unique("1") for _ in range(3)]
    receipts = [register(scientist, version).receipt for version in versions]
    with closing(transport.events("image", start, 120)) as stream:
        first = next(stream)
        while first.tx_id != receipts[0].tx_id:
            first = next(stream)
    with closing(transport.events("image", first.block + 1, 120)) as stream:
        later = [next(stream) for _ in range(2)]
        assert receipts[0].tx_id not in {event.tx_id for event in later}
        while receipts[2].tx_id not in {event.tx_id for event in later}:
            later.append(next(stream))
    assert all(event.block > first.block for event in later)
    assert [e.tx_id for e in later if e.tx_id == receipts[1].tx_id] == [receipts[1].tx_id]


def test_e2_with_the_own_peer_down_the_others_are_believed_together(live, caplog):
    """A majority of the others endorses, and two of them make a fact."""
    with (
        refusing_port() as port,
        Ledger(
            transport_of(
                live,
                identity_of(live, "org1", "data-scientist"),
                [dead_peer(live, port), *peers_of(live, "org1")[1:]],
            )
        ) as ledger,
    ):
        version = unique("1")
        done = register(ledger, version)
        assert done.answer.registered.organisation == "Org1MSP"
        assert ledger.images.get(IMAGE, version) == done.answer
        with closing(ledger.transport.events("image", done.receipt.block, 120)) as stream:
            assert next(stream).block == done.receipt.block
    assert "the peer of Org1MSP" in caplog.text


def test_h1_with_the_own_peer_down_one_other_is_not_the_ledger(live):
    auditor = identity_of(live, "org1", "auditor")
    with refusing_port() as port:
        peers = [dead_peer(live, port), peer_of(live, "org2")]
        with transport_of(live, auditor, peers) as client:
            for read in (client.evaluate, client.evaluate_agreed):
                with pytest.raises(PhaseError) as raised:
                    read("image", "metadata")
                assert (raised.value.code, raised.value.phase) == ("LEDGER_UNREACHABLE", "evaluate")
        with transport_of(live, auditor, peers, trust=Trust(peers=True)) as client:
            assert client.evaluate("image", "metadata")
            with pytest.raises(PhaseError):
                client.evaluate_agreed("image", "metadata")


def test_without_any_peer_the_ledger_is_unreachable(live):
    with (
        refusing_port() as port,
        transport_of(live, identity_of(live, "org1", "auditor"), [dead_peer(live, port)]) as client,
    ):
        with pytest.raises(PhaseError) as read:
            client.evaluate("image", "List")
        with pytest.raises(PhaseError) as written:
            client.submit("image", "Retire", "a", "1")
    assert (read.value.code, read.value.phase) == ("LEDGER_UNREACHABLE", "evaluate")
    assert (written.value.code, written.value.phase) == ("LEDGER_UNREACHABLE", "endorse")


class LosesAnswers(Link):
    """A connection that breaks after a transaction has gone to the orderers, before their answer is back."""

    def call(self, method, request, seconds):
        answer = super().call(method, request, seconds)
        if method == "Submit":
            raise Lost
        return answer


class Lost(grpc.RpcError):
    def __init__(self, *_):
        super().__init__("connection lost")

    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return "connection lost"

    def trailing_metadata(self):
        return ()


def test_e1_an_unknown_outcome_is_resolved_by_its_status(live):
    """The transaction is there, once, though its sender never heard so."""
    with GatewayTransport.connect(live, "org1", "data-scientist") as client:
        client.gateway._links[0] = LosesAnswers(peer_of(live, "org1"))
        version = unique("1")
        arguments = (IMAGE, version, str(MANIFEST), str(IMAGE_ID), REPOSITORY, "")
        receipt = client.submit("image", "Register", *arguments)
        assert client.gateway.commit_status(receipt.tx_id).valid
        history = list(Ledger(client).images.history(IMAGE, version))
    assert [change.tx for change in history] == [receipt.tx_id]


def test_a_transaction_that_was_never_ordered_is_unknown(live):
    quick = Deadlines(commit=2)
    auditor = identity_of(live, "org1", "auditor")
    with (
        transport_of(live, auditor, peers_of(live, "org1"), deadlines=quick) as client,
        pytest.raises(CommitStatusError) as raised,
    ):
        client.gateway.commit_status("ab" * 32)
    assert (raised.value.code, raised.value.tx_id) == ("COMMIT_UNKNOWN", "ab" * 32)


def test_an_altered_signature_is_rejected_and_writes_nothing(live):
    with GatewayTransport.connect(live, "org1", "data-scientist") as client:
        version = unique("1")
        arguments = (IMAGE, version, str(MANIFEST), str(IMAGE_ID), REPOSITORY, "")
        gateway = client.gateway
        ready = gateway.endorse(gateway.contract("image").propose("Register", *arguments))
        ready.envelope.signature = gateway.identity.sign(b"something else")
        with pytest.raises(SubmitError) as raised:
            gateway.order(ready)
        assert (raised.value.code, raised.value.tx_id) == ("SUBMIT_FAILED", ready.tx_id)
        with pytest.raises(StateError):
            Ledger(client).images.get(IMAGE, version)


def test_a_second_submission_of_one_transaction_changes_nothing(live):
    """Why asking is enough: even who sends twice writes once."""
    with GatewayTransport.connect(live, "org1", "data-scientist") as client:
        version = unique("1")
        arguments = (IMAGE, version, str(MANIFEST), str(IMAGE_ID), REPOSITORY, "")
        gateway = client.gateway
        ready = gateway.endorse(gateway.contract("image").propose("Register", *arguments))
        first = gateway.order(ready)
        assert gateway.order(ready) == first
        assert len(list(Ledger(client).images.history(IMAGE, version))) == 1


def test_e9_organisations_that_accept_at_once_all_get_through(live, scientist):
    """All write one record; what is overtaken is made anew."""
    version, process = unique("1"), unique("process")
    register(scientist, version)
    names = live.organisations
    nodes = {f"node9{i}": live.msp_id(name) for i, name in enumerate(names)}
    scientist.orchestration.create(specification(process, version, nodes))
    with ExitStack() as stack:
        ledgers = [stack.enter_context(Caller(live, name, "data-scientist").ledger()) for name in names]
        for ledger in ledgers:
            wait_until(ledger, process, partial(_known, ledger, process), 120)
        ready = threading.Barrier(len(names))

        def accept(ledger):
            ready.wait()
            return ledger.orchestration.accept(process).receipt

        with ThreadPoolExecutor(len(names)) as pool:
            receipts = list(pool.map(accept, ledgers))
    assert len({receipt.tx_id for receipt in receipts}) == len(names)
    # Each organisation waited for its own peer; another's may be a block behind.
    wait_until(scientist, process, lambda: not scientist.orchestration.status(process).missing or None, 120)


def _known(ledger, process):
    try:
        return ledger.orchestration.get(process)
    except StateError:
        return None


def test_threads_share_one_client(scientist):
    versions = [unique("1") for _ in range(12)]
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda version: register(scientist, version), versions))
    assert [one.answer.image.version for one in done] == versions
    assert max(Counter(one.receipt.tx_id for one in done).values()) == 1


def test_a_wait_ends_with_the_event_that_fulfils_it(scientist, monkeypatch):
    # So that only an event can wake it, however slow the machine is.
    monkeypatch.setattr("executor.ledger.follow.HEARTBEAT", 3600)
    version, process = unique("1"), unique("process")
    register(scientist, version)
    scientist.orchestration.create(specification(process, version, {"node90": "Org1MSP"}))
    checks = []

    def running():
        found = scientist.orchestration.status(process)
        checks.append(found.status)
        return found if found.status == "running" else None

    def begin():
        scientist.orchestration.accept(process)
        scientist.orchestration.start(process)

    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(begin)
        assert wait_until(scientist, process, running, 120).missing == ()
        begun.result()
    assert checks[-1] == "running"
    # Asked once at first and once per event (created, accepted, started), not in a loop.
    assert len(checks) <= 4


def test_a_payload_of_several_megabytes_passes_and_one_beyond_the_limit_is_named(live):
    with GatewayTransport.connect(live, "org1", "data-scientist") as client:
        with pytest.raises(AttestreeError) as large:
            client.submit("image", "Retire", "a", "1", transient={"x": bytes(8 << 20)})
        assert large.value.code == "IMAGE_UNKNOWN"
        with pytest.raises(PhaseError) as beyond:
            client.submit("image", "Retire", "a", "1", transient={"x": bytes(101 << 20)})
    assert (beyond.value.code, beyond.value.phase) == ("TRANSACTION_TOO_LARGE", "endorse")
