"""The Gateway client behind the project's interface: its failures and refusals in the project's classes."""

from dataclasses import replace

import pytest
from grpc import StatusCode
from support.scripted_peers import CONFLICT, MSPS, TLS, Failure, committed, evaluated, members, msp_folder

from executor import exits
from executor.ledger.errors import PhaseError
from executor.ledger.gateway import EndorseError, EvaluateError, EventsError
from executor.ledger.gateway_transport import GatewayTransport
from executor.network import Network
from protocol.errors import AccessError, AttestreeError, StateError

REFUSAL = 'chaincode response 400, {"code":"IMAGE_UNKNOWN","message":"a 1 is not registered"}'


@pytest.fixture
def transport(client):
    return GatewayTransport(client)


def test_answers_pass_unchanged(transport, peers):
    assert transport.evaluate("image", "Get", "a", "1") == b'{"asked":true}'
    receipt = transport.submit("image", "Register", "a", transient={"secret": b"\x00\xff"})
    assert (receipt.block, receipt.answer) == (7, b'{"done":true}')
    assert receipt.tx_id == peers[0].asked["Submit"][0].transaction_id


def test_a_refusal_comes_in_the_class_that_chaincode_raised_from_the_phase_that_failed(transport, peers):
    failure = Failure(StatusCode.ABORTED, "see details", (("Org1MSP", REFUSAL),))
    for peer in peers:
        peer.then("Evaluate", failure).then("Endorse", failure)
    with pytest.raises(StateError) as read:
        transport.evaluate("image", "Get", "a", "1")
    assert (read.value.code, read.value.cause) == ("IMAGE_UNKNOWN", "a 1 is not registered")
    with pytest.raises(StateError) as written:
        transport.submit("image", "Retire", "a", "1")
    for raised, phase, method, of in (
        (read, "evaluate", "Evaluate", EvaluateError),
        (written, "endorse", "Endorse", EndorseError),
    ):
        found = raised.value.__cause__
        assert isinstance(found, PhaseError)
        assert (found.phase, found.tx_id) == (phase, peers[0].asked[method][0].transaction_id)
        assert [(detail.msp, detail.message) for detail in found.details] == [("Org1MSP", REFUSAL)]
        assert isinstance(found.__cause__, of)


def test_h1_peers_that_contradict_each_other_are_a_matter_of_integrity(transport, peers):
    for number, peer in enumerate(peers):
        peer.always("Evaluate", evaluated(b"%d" % number))
    transport.gateway.deadlines = replace(transport.gateway.deadlines, agree=0)
    with pytest.raises(PhaseError) as raised:
        transport.evaluate_agreed("image", "Get", "a", "1")
    assert raised.value.code == "PEERS_DISAGREE"
    assert exits.exit_code(raised.value) == exits.IMAGE_INTEGRITY
    said = {peer["msp"]: peer["message"] for peer in exits.to_dict(raised.value)["peers"]}
    assert said.keys() == set(MSPS)
    assert all("sha256:" in message for message in said.values())


def test_cause_and_remedy_of_a_refusal_are_told_apart(transport, peers):
    remedy = StateError("IMAGE_UNKNOWN", "x").remedy
    text = REFUSAL.replace("registered", f"registered. {remedy}")
    peers[0].then("Evaluate", Failure(StatusCode.UNKNOWN, text))
    with pytest.raises(StateError) as raised:
        transport.evaluate("image", "Get", "a", "1")
    assert (raised.value.cause, raised.value.remedy) == ("a 1 is not registered", remedy)


def test_a_code_of_a_newer_chaincode_is_kept(transport, peers):
    peers[0].then("Evaluate", Failure(StatusCode.UNKNOWN, REFUSAL.replace("IMAGE_UNKNOWN", "NEWER_CODE")))
    with pytest.raises(AttestreeError) as raised:
        transport.evaluate("image", "Get", "a", "1")
    assert (type(raised.value), raised.value.code) == (AttestreeError, "NEWER_CODE")


def test_c16_an_identity_the_channel_does_not_admit_is_not_authorised(transport, peers):
    denied = "error validating proposal: access denied: channel [channel] creator org [Org1MSP]"
    peers[0].then("Evaluate", Failure(StatusCode.FAILED_PRECONDITION, denied, (("Org1MSP", denied),)))
    with pytest.raises(AccessError) as raised:
        transport.evaluate("image", "Get")
    assert raised.value.code == "ACCESS_DENIED"
    assert exits.exit_code(raised.value) == exits.NOT_AUTHORISED


def test_e9_conflicts_without_end_have_an_exit_code_of_their_own(transport, peers):
    for peer in peers:
        peer.always("CommitStatus", committed(CONFLICT))
    with pytest.raises(PhaseError) as raised:
        transport.submit("orchestration", "Accept", "p")
    assert (raised.value.code, raised.value.phase) == ("LEDGER_CONFLICT", "commit")
    assert "MVCC_READ_CONFLICT" in raised.value.cause
    assert exits.exit_code(raised.value) == exits.CONFLICT


@pytest.mark.parametrize(
    "ask", [lambda t: t.chain_info(), lambda t: t.block(3), lambda t: t.evaluate("a", "B")]
)
def test_e2_peers_that_do_not_answer_are_an_unreachable_ledger(transport, peers, ask):
    for peer in peers:
        peer.always("Evaluate", Failure(StatusCode.UNAVAILABLE, "gone"))
    with pytest.raises(PhaseError) as raised:
        ask(transport)
    assert (raised.value.code, raised.value.phase) == ("LEDGER_UNREACHABLE", "evaluate")
    assert raised.value.remedy
    assert [detail.msp for detail in raised.value.details] == list(MSPS)
    assert exits.exit_code(raised.value) == exits.LEDGER_UNREACHABLE


def test_e11_a_stream_of_events_fails_in_the_projects_classes_and_ends_like_any_other(transport, peers):
    for peer in peers:
        peer.always("ChaincodeEvents", Failure(StatusCode.UNAVAILABLE, "gone"))
    with pytest.raises(PhaseError) as lost:
        next(transport.events("image", 4, 20))
    assert (lost.value.code, lost.value.phase) == ("EVENTS_FAILED", "events")
    peers[0].always("ChaincodeEvents", Failure(StatusCode.PERMISSION_DENIED, "no"))
    with pytest.raises(AccessError) as denied:
        next(transport.events("image", 4, 20))
    assert isinstance(denied.value.__cause__.__cause__, EventsError)
    stream = transport.events("image", 4, 20)
    stream.close()
    assert list(stream) == []


def test_h19_no_other_organisations_peer_stands_in_where_the_own_one_is_to_speak(peers, tmp_path):
    """What an organisation attests of its own peer must never be another's word."""

    class Here(Network):
        def peer_address(self, organisation):
            return peers[self.organisations.index(organisation)].peer.address

    network = Here("attestree-x", tmp_path, len(peers), 1, 4, "image", 17)
    msp_folder(network.msp_folder("org1", "auditor"))
    for name in network.organisations:
        (network.folder(name)).mkdir(parents=True, exist_ok=True)
        (network.folder(name) / "tlsca.pem").write_bytes(TLS[0])
        (network.folder(name) / "ca.pem").write_bytes(members(network.msp_id(name))[network.msp_id(name)])
    peers[0].always("Evaluate", Failure(StatusCode.UNAVAILABLE))
    with GatewayTransport.connect(network, "org1", "auditor", own_peer_only=True) as own:
        with pytest.raises(PhaseError):
            own.chain_info()
        with pytest.raises(PhaseError):
            own.block(0)
    assert len(peers[0].asked["Evaluate"]) >= 2
    assert not [peer for peer in peers[1:] if peer.asked["Evaluate"]]
