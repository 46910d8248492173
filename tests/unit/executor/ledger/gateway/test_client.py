"""The Gateway client: what it repeats, where, and what it never does twice."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256

import grpc
import pytest
from support.scripted_peers import (
    CONFLICT,
    PATIENT,
    PHANTOM,
    POLICY,
    WAIT,
    Failure,
    ScriptedPeer,
    certificate,
    committed,
    dead_peers,
    endorsed,
    evaluated,
)

from executor.ledger.gateway import (
    ACCESS_DENIED,
    CommitError,
    CommitStatusError,
    EndorseError,
    EvaluateError,
    Gateway,
    Peer,
    Refusal,
    SubmitError,
    retry,
)
from executor.ledger.gateway import peer as peer_module
from executor.ledger.gateway.client import CONFLICT_ATTEMPTS
from executor.ledger.gateway.messages import gateway, ledger

Status = grpc.StatusCode
UNREACHABLE = Failure(Status.UNAVAILABLE, "connection lost")
REFUSAL = 'chaincode response 400, {"code":"IMAGE_UNKNOWN","message":"a 1 is not registered"}'


def asked(peers, method):
    return [len(peer.asked[method]) for peer in peers]


def test_evaluate_asks_the_own_peer_and_no_other_organisation(client, peers):
    assert client.contract("image").evaluate("Get", "a", "1") == b'{"peer":"Org1MSP"}'
    (request,) = peers[0].asked["Evaluate"]
    assert request.target_organizations == ["Org1MSP"]
    assert asked(peers, "Evaluate") == [1, 0]


@pytest.mark.parametrize("status", ["UNAVAILABLE", "ABORTED", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED"])
def test_evaluate_is_repeated_at_the_next_peer(client, peers, status, caplog):
    peers[0].always("Evaluate", Failure(Status[status]))
    assert (
        client.contract("image").evaluate("Get")
        == client.contract("image").evaluate("Get")
        == b'{"peer":"Org2MSP"}'
    )
    assert peers[1].asked["Evaluate"][0].target_organizations == ["Org2MSP"]
    (told,) = [record.getMessage() for record in caplog.records if record.name == retry.__name__]
    assert "Org2MSP" in told


def test_a_slow_peer_is_left_for_the_next_one(client, peers):
    client.contract("image").evaluate("Get")  # connects, so that the next call arrives within its second
    released = threading.Event()

    def hold(request, context):
        client.deadlines = PATIENT  # the next peer has all the time it needs
        released.wait(WAIT)

    peers[0].then("Evaluate", hold)
    client.deadlines = replace(PATIENT, evaluate=1)
    assert client.contract("image").evaluate("Get") == b'{"peer":"Org2MSP"}'
    assert asked(peers, "Evaluate") == [2, 1]
    released.set()


def test_a_dead_address_is_passed_over(identity, peers):
    with (
        dead_peers("DeadMSP") as dead,
        Gateway(identity, [*dead, peers[1].peer], "channel", PATIENT) as client,
    ):
        assert client.contract("image").evaluate("Get") == b'{"peer":"Org2MSP"}'
        assert client.contract("image").submit("Register").answer == b'{"done":true}'


def test_e2_without_any_peer_the_ledger_is_unreachable(identity):
    with (
        dead_peers("A", "B") as dead,
        Gateway(identity, dead, "channel", PATIENT) as client,
        pytest.raises(EvaluateError) as raised,
    ):
        client.contract("image").evaluate("Get")
    assert raised.value.code == "LEDGER_UNREACHABLE"
    assert [detail.msp for detail in raised.value.details] == ["A", "B"]


def test_a_peer_with_a_certificate_of_another_authority_is_not_spoken_to(identity, peers):
    foreign = Peer(peers[0].peer.address, "Org1MSP", certificate(["127.0.0.1"])[0])
    with Gateway(identity, [foreign], "channel", PATIENT) as client, pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get")
    assert raised.value.code == "LEDGER_UNREACHABLE"
    assert asked(peers, "Evaluate") == [0, 0]


def test_a_refusal_is_an_answer_and_is_not_asked_for_elsewhere(client, peers):
    peers[0].then("Evaluate", Failure(Status.UNKNOWN, f"evaluate: {REFUSAL}", (("Org1MSP", REFUSAL),)))
    with pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get", "a", "1")
    phase = raised.value
    assert phase.refusal == Refusal("IMAGE_UNKNOWN", "a 1 is not registered")
    assert [(detail.address, detail.msp, detail.message) for detail in phase.details] == [
        ("peer.Org1MSP:7051", "Org1MSP", REFUSAL)
    ]
    assert phase.tx_id == peers[0].asked["Evaluate"][0].transaction_id
    assert asked(peers, "Evaluate") == [1, 0]


def test_a_refused_endorsement_is_not_ordered(client, peers):
    peers[0].then("Endorse", Failure(Status.ABORTED, "see details", (("Org1MSP", REFUSAL),)))
    with pytest.raises(EndorseError) as raised:
        client.contract("image").submit("Retire", "a", "1")
    assert raised.value.refusal.code == "IMAGE_UNKNOWN"
    assert asked(peers, "Endorse") == [1, 0]
    assert asked(peers, "Submit") == [0, 0]


def test_a_chaincode_that_stops_is_no_refusal(client, peers):
    stopping = 'chaincode response 500, {"code":"UNAVAILABLE","message":"stopping"}'
    peers[0].then("Evaluate", Failure(Status.ABORTED, "failed", (("Org1MSP", stopping),)))
    assert client.contract("image").evaluate("Get") == b'{"peer":"Org2MSP"}'


def test_c16_an_identity_the_channel_does_not_admit_is_not_authorised(client, peers):
    denied = "error validating proposal: access denied: channel [channel] creator org [Org1MSP]"
    peers[0].then("Evaluate", Failure(Status.FAILED_PRECONDITION, denied, (("Org1MSP", denied),)))
    with pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get")
    assert raised.value.refusal.code == ACCESS_DENIED
    assert "Org1MSP" in raised.value.refusal.message


def test_submit_returns_transaction_block_and_answer(client, peers):
    receipt = client.contract("image").submit("Register", "a", transient={"secret": b"\x00\xff"})
    assert (receipt.block, receipt.answer) == (7, b'{"done":true}')
    (submitted,) = peers[0].asked["Submit"]
    (status,) = peers[0].asked["CommitStatus"]
    assert submitted.transaction_id == receipt.tx_id
    assert gateway.CommitStatusRequest.FromString(status.request).transaction_id == receipt.tx_id


def test_endorsement_is_repeated_at_the_next_peer_which_then_orders(client, peers):
    peers[0].always("Endorse", UNREACHABLE)
    client.contract("image").submit("Register")
    assert asked(peers, "Endorse") == [1, 1]
    assert asked(peers, "Submit") == [0, 1]
    assert asked(peers, "CommitStatus") == [0, 1]


def test_peers_that_are_behind_get_time_to_catch_up(client, peers):
    behind = Failure(Status.ABORTED, "not enough", (("Org3MSP", "ProposalResponsePayloads do not match"),))
    unaware = Failure(Status.ABORTED, "not enough", (("Org3MSP", REFUSAL),))
    peers[0].then("Endorse", behind, unaware)
    client.contract("image").submit("Register")
    assert asked(peers, "Endorse") == [3, 0]
    assert asked(peers, "Submit") == [1, 0]


def test_what_others_keep_refusing_is_refused(client, peers):
    peers[0].always("Endorse", Failure(Status.ABORTED, "not enough", (("Org3MSP", REFUSAL),)))
    with pytest.raises(EndorseError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.refusal.code == "IMAGE_UNKNOWN"
    assert asked(peers, "Endorse") == [6, 0]


def test_a_lost_submission_is_resolved_by_its_status_and_not_sent_again(client, peers):
    for status in (Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED, Status.INTERNAL, Status.UNKNOWN):
        peers[0].then("Submit", Failure(status))
        receipt = client.contract("image").submit("Register")
        assert receipt.tx_id == peers[0].asked["Submit"][-1].transaction_id
    assert asked(peers, "Submit") == [4, 0]
    assert len({request.transaction_id for request in peers[0].asked["Submit"]}) == 4


def test_e1_another_peer_is_asked_for_the_status_when_the_first_dies(client, peers):
    def die(request, context):
        peers[0].server.stop(None)
        context.abort(Status.UNAVAILABLE, "dying")

    peers[0].then("Submit", die)
    assert client.contract("image").submit("Register").block == 7
    assert asked(peers, "Submit") == [1, 0]
    assert asked(peers, "CommitStatus") == [0, 1]


def test_status_is_asked_again_while_no_peer_answers(client, peers):
    for peer in peers:
        peer.then("CommitStatus", UNREACHABLE, UNREACHABLE)
    assert client.contract("image").submit("Register").block == 7
    assert asked(peers, "CommitStatus") == [3, 2]


def test_a_submission_nobody_knows_of_is_reported_as_unknown(client, peers):
    def wait(request, context):
        threading.Event().wait(context.time_remaining())
        context.abort(Status.DEADLINE_EXCEEDED, "not committed")

    for peer in peers:
        peer.always("CommitStatus", wait)
    peers[0].then("Submit", UNREACHABLE)
    client.deadlines = replace(PATIENT, commit=0.5, another_look=0.2)
    with pytest.raises(CommitStatusError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.code == "COMMIT_UNKNOWN"
    assert raised.value.tx_id == peers[0].asked["Submit"][0].transaction_id
    assert asked(peers, "Submit") == [1, 0]


def test_a_submission_the_orderers_reject_is_over(client, peers):
    large = "received unsuccessful response from orderer: message payload is 9 bytes and exceeds maximum"
    peers[0].then("Submit", Failure(Status.ABORTED, large), Failure(Status.FAILED_PRECONDITION))
    for code in ("TRANSACTION_TOO_LARGE", "SUBMIT_FAILED"):
        with pytest.raises(SubmitError) as raised:
            client.contract("image").submit("Register")
        assert raised.value.code == code
    assert asked(peers, "CommitStatus") == [0, 0]


@pytest.mark.parametrize("code", [CONFLICT, PHANTOM])
def test_e9_an_overtaken_transaction_is_made_anew(client, peers, code):
    peers[0].then("CommitStatus", committed(code), committed(code))
    receipt = client.contract("orchestration").submit("Accept", "p")
    ids = [request.transaction_id for request in peers[0].asked["Submit"]]
    assert len(set(ids)) == 3
    assert ids[-1] == receipt.tx_id


def test_e9_conflicts_without_end_are_given_up(client, peers):
    peers[0].always("CommitStatus", committed(CONFLICT))
    with pytest.raises(CommitError) as raised:
        client.contract("orchestration").submit("Accept", "p")
    assert (raised.value.code, raised.value.validation) == ("LEDGER_CONFLICT", "MVCC_READ_CONFLICT")
    assert asked(peers, "Submit") == [CONFLICT_ATTEMPTS, 0]


def test_an_invalid_transaction_is_not_repeated(client, peers):
    peers[0].then("CommitStatus", committed(POLICY, 12))
    with pytest.raises(CommitError) as raised:
        client.contract("image").submit("Register")
    found = raised.value
    assert (found.code, found.block) == ("TRANSACTION_INVALID", 12)
    assert found.validation == "ENDORSEMENT_POLICY_FAILURE"
    assert asked(peers, "Submit") == [1, 0]


def test_an_altered_transaction_is_never_signed(client, peers):
    def other_channel(payload):
        payload.header.channel_header = b""

    peers[0].then("Endorse", endorsed(edit=other_channel))
    with pytest.raises(EndorseError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.code == "TRANSACTION_ALTERED"
    assert asked(peers, "Submit") == [0, 0]


def test_status_that_may_not_be_read_is_not_waited_for(client, peers):
    peers[0].then("CommitStatus", Failure(Status.PERMISSION_DENIED, "no"))
    with pytest.raises(CommitStatusError) as raised:
        client.commit_status("0" * 64)
    assert raised.value.refusal.code == ACCESS_DENIED


def test_chain_info_and_blocks_come_from_qscc(client, peers):
    info = ledger.BlockchainInfo(height=9, currentBlockHash=b"\x01" * 32)
    peers[0].then("Evaluate", evaluated(info.SerializeToString()), evaluated(b"\x00\xff block"))
    found = client.chain_info()
    assert (found.height, found.current) == (9, b"\x01" * 32)
    assert client.block(3) == b"\x00\xff block"


def test_threads_share_a_client(client, peers):
    def echo(request, context):
        digest = sha256(request.proposed_transaction.proposal_bytes).hexdigest()
        return evaluated(json.dumps([request.transaction_id, digest]).encode())(request, context)

    peers[0].always("Evaluate", echo)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda number: client.contract("image").evaluate("Get", str(number)), range(64))
        )
    assert len(set(found)) == 64


def test_no_more_calls_run_at_once_than_a_peer_admits(identity, peers, monkeypatch):
    monkeypatch.setattr(peer_module, "CONCURRENT_CALLS", 3)
    gate = threading.Barrier(3, timeout=WAIT)

    def meet(request, context):
        gate.wait()
        return evaluated(b"{}")(request, context)

    peers[0].always("Evaluate", meet)
    with Gateway(identity, [peers[0].peer], "channel", PATIENT) as client, ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: client.contract("image").evaluate("Get"), range(12)))
    assert peers[0].most == 3


def test_a_message_beyond_the_limit_is_named_so(identity, monkeypatch):
    monkeypatch.setattr(peer_module, "OPTIONS", [("grpc.max_send_message_length", 2000)])
    peer = ScriptedPeer("Org1MSP")
    with Gateway(identity, [peer.peer], "channel", PATIENT) as client, pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get", "x" * 4000)
    peer.server.stop(None)
    assert raised.value.code == "TRANSACTION_TOO_LARGE"
