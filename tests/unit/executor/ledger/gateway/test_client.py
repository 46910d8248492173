"""The Gateway client: how a call goes through its phases, what is repeated, and where it ends."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256

import grpc
import pytest
from support.scripted_peers import (
    CONFLICT,
    MSPS,
    PATIENT,
    PHANTOM,
    POLICY,
    WAIT,
    Failure,
    ScriptedPeer,
    certificate,
    client_of,
    committed,
    dead_peers,
    endorsed,
    evaluated,
    signer,
)

from executor.ledger.gateway import (
    ACCESS_DENIED,
    CommitError,
    CommitStatusError,
    EndorseError,
    EvaluateError,
    Peer,
    Refusal,
    SubmitError,
    Trust,
)
from executor.ledger.gateway import peer as peer_module
from executor.ledger.gateway.client import CONFLICT_ATTEMPTS
from executor.ledger.gateway.messages import gateway, ledger

Status = grpc.StatusCode
UNREACHABLE = Failure(Status.UNAVAILABLE, "connection lost")
REFUSAL = 'chaincode response 400, {"code":"IMAGE_UNKNOWN","message":"a 1 is not registered"}'


def refuses(msp):
    return Failure(Status.ABORTED, "see details", ((msp, REFUSAL),))


def brings(*msps):
    """A peer that collects endorsements of these organisations."""
    return endorsed(*(signer(msp) for msp in msps))


def asked(peers, method):
    return [len(peer.asked[method]) for peer in peers]


def test_a_plain_read_asks_the_own_peer_and_no_other_organisation(client, peers):
    assert client.contract("image").evaluate("Get", "a", "1") == b'{"asked":true}'
    (request,) = peers[0].asked["Evaluate"]
    assert request.target_organizations == ["Org1MSP"]
    assert asked(peers, "Evaluate") == [1, 0, 0, 0]


def test_e2_without_any_peer_the_ledger_is_unreachable(identity):
    with (
        dead_peers(*MSPS) as dead,
        client_of(identity, dead) as client,
        pytest.raises(EvaluateError) as raised,
    ):
        client.contract("image").evaluate("Get")
    assert raised.value.code == "LEDGER_UNREACHABLE"
    assert [detail.msp for detail in raised.value.details] == list(MSPS)


def test_a_peer_with_a_certificate_of_another_authority_is_not_spoken_to(identity, peers):
    foreign = Peer(peers[0].peer.address, "Org1MSP", certificate(["127.0.0.1"])[0])
    with client_of(identity, [foreign]) as client, pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get")
    assert raised.value.code == "LEDGER_UNREACHABLE"
    assert asked(peers, "Evaluate") == [0, 0, 0, 0]


def test_a_proxy_of_the_environment_is_not_asked(identity, peers, monkeypatch):
    """gRPC would take even an address on this host there."""
    with dead_peers("Org1MSP") as (nowhere,):
        for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://{nowhere.address}")
        with client_of(identity, [peer.peer for peer in peers]) as client:
            assert client.contract("image").evaluate("Get") == b'{"asked":true}'


def test_a_refusal_of_the_own_peer_is_an_answer_to_a_plain_read(client, peers):
    peers[0].then("Evaluate", Failure(Status.UNKNOWN, f"evaluate: {REFUSAL}", (("Org1MSP", REFUSAL),)))
    with pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get", "a", "1")
    phase = raised.value
    assert phase.refusal == Refusal("IMAGE_UNKNOWN", "a 1 is not registered")
    assert [(detail.address, detail.msp, detail.message) for detail in phase.details] == [
        ("peer.Org1MSP:7051", "Org1MSP", REFUSAL)
    ]
    assert phase.tx_id == peers[0].asked["Evaluate"][0].transaction_id
    assert asked(peers, "Evaluate") == [1, 0, 0, 0]


def test_a_refused_endorsement_is_not_ordered(client, peers):
    for peer in peers:
        peer.always("Endorse", refuses(peer.msp))
    with pytest.raises(EndorseError) as raised:
        client.contract("image").submit("Retire", "a", "1")
    assert raised.value.refusal.code == "IMAGE_UNKNOWN"
    assert asked(peers, "Submit") == [0, 0, 0, 0]


def test_a_chaincode_that_stops_is_no_refusal(client, peers):
    stopping = 'chaincode response 500, {"code":"UNAVAILABLE","message":"stopping"}'
    peers[0].then("Evaluate", Failure(Status.ABORTED, "failed", (("Org1MSP", stopping),)))
    assert client.contract("image").evaluate("Get") == b'{"asked":true}'
    assert asked(peers, "Evaluate") == [1, 1, 1, 0]


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
    # A majority endorses, more than a third reports, one hands over.
    assert asked(peers, "Endorse") == [1, 1, 1, 0]
    assert asked(peers, "CommitStatus") == [1, 1, 0, 0]
    assert asked(peers, "Submit") == [1, 0, 0, 0]


@pytest.mark.parametrize("silent", [False, True])
def test_what_is_for_an_audience_reaches_no_other_peer(client, peers, silent):
    """Also where one of them does not answer, and the transaction would need somebody else."""
    secret = {"transient": {"share": b"tree"}, "audience": MSPS[:3]}
    if silent:
        peers[1].always("Endorse", UNREACHABLE)
        with pytest.raises(EndorseError):
            client.contract("execution-record").submit("Share", **secret)
    else:
        client.contract("execution-record").submit("Share", **secret)
    assert asked(peers, "Endorse") == [1, 1, 1, 0]
    for peer in peers[:3]:
        (request,) = peer.asked["Endorse"]
        assert request.endorsing_organizations == [peer.msp]


def test_e2_without_the_own_peer_the_others_endorse_order_and_report(client, peers):
    for method in ("Endorse", "Submit", "CommitStatus"):
        peers[0].always(method, UNREACHABLE)
    client.contract("image").submit("Register")
    assert asked(peers, "Endorse") == [1, 1, 1, 1]
    assert asked(peers, "Submit") == [0, 1, 0, 0]


def test_peers_that_are_behind_get_time_to_catch_up(client, peers):
    peers[1].then("Endorse", refuses("Org2MSP"), refuses("Org2MSP"))
    peers[3].always("Endorse", UNREACHABLE)
    client.contract("image").submit("Register")
    assert asked(peers, "Endorse")[1] == 3
    assert asked(peers, "Submit") == [1, 0, 0, 0]


def test_a_lost_submission_is_resolved_by_its_status_and_not_sent_again(client, peers):
    for status in (Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED, Status.INTERNAL, Status.UNKNOWN):
        peers[0].then("Submit", Failure(status))
        receipt = client.contract("image").submit("Register")
        assert receipt.tx_id == peers[0].asked["Submit"][-1].transaction_id
    assert asked(peers, "Submit") == [4, 0, 0, 0]
    assert len({request.transaction_id for request in peers[0].asked["Submit"]}) == 4


def test_e1_other_peers_are_asked_for_the_status_when_the_own_one_dies(client, peers):
    def die(request, context):
        peers[0].server.stop(None)
        context.abort(Status.UNAVAILABLE, "dying")

    peers[0].then("Submit", die)
    assert client.contract("image").submit("Register").block == 7
    assert asked(peers, "Submit") == [1, 0, 0, 0]
    assert asked(peers, "CommitStatus") == [0, 1, 1, 0]


def test_status_is_asked_again_while_no_peer_answers(client, peers):
    for peer in peers:
        peer.then("CommitStatus", UNREACHABLE, UNREACHABLE)
    assert client.contract("image").submit("Register").block == 7
    assert all(count >= 2 for count in asked(peers, "CommitStatus"))


def test_a_submission_nobody_knows_of_is_reported_as_unknown(client, peers):
    def wait(request, context):
        threading.Event().wait(context.time_remaining())
        context.abort(Status.DEADLINE_EXCEEDED, "not committed")

    for peer in peers:
        peer.always("CommitStatus", wait)
    peers[0].then("Submit", UNREACHABLE)
    client.deadlines = replace(PATIENT, commit=0.5)
    with pytest.raises(CommitStatusError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.code == "COMMIT_UNKNOWN"
    assert raised.value.tx_id == peers[0].asked["Submit"][0].transaction_id


def test_a_submission_the_orderers_reject_is_over(client, peers):
    large = "received unsuccessful response from orderer: message payload is 9 bytes and exceeds maximum"
    for peer in peers:
        peer.then("Submit", Failure(Status.ABORTED, large), Failure(Status.FAILED_PRECONDITION))
    for code in ("TRANSACTION_TOO_LARGE", "SUBMIT_FAILED"):
        with pytest.raises(SubmitError) as raised:
            client.contract("image").submit("Register")
        assert raised.value.code == code
    assert asked(peers, "Submit") == [2, 2, 0, 0]
    assert asked(peers, "CommitStatus") == [0, 0, 0, 0]


@pytest.mark.parametrize("code", [CONFLICT, PHANTOM])
def test_e9_an_overtaken_transaction_is_made_anew(client, peers, code):
    for peer in peers:
        peer.then("CommitStatus", committed(code), committed(code))
    receipt = client.contract("orchestration").submit("Accept", "p")
    ids = [request.transaction_id for request in peers[0].asked["Submit"]]
    assert len(set(ids)) == 3
    assert ids[-1] == receipt.tx_id


def test_e9_conflicts_without_end_are_given_up(client, peers):
    for peer in peers:
        peer.always("CommitStatus", committed(CONFLICT))
    with pytest.raises(CommitError) as raised:
        client.contract("orchestration").submit("Accept", "p")
    assert (raised.value.code, raised.value.validation) == ("LEDGER_CONFLICT", "MVCC_READ_CONFLICT")
    assert asked(peers, "Submit") == [CONFLICT_ATTEMPTS, 0, 0, 0]


def test_an_invalid_transaction_is_not_repeated(client, peers):
    for peer in peers:
        peer.then("CommitStatus", committed(POLICY, 12))
    with pytest.raises(CommitError) as raised:
        client.contract("image").submit("Register")
    found = raised.value
    assert (found.code, found.block) == ("TRANSACTION_INVALID", 12)
    assert found.validation == "ENDORSEMENT_POLICY_FAILURE"
    assert asked(peers, "Submit") == [1, 0, 0, 0]


def test_status_that_may_not_be_read_is_not_waited_for(client, peers):
    for peer in peers:
        peer.then("CommitStatus", Failure(Status.PERMISSION_DENIED, "no"))
    with pytest.raises(CommitStatusError) as raised:
        client.commit_status("0" * 64)
    assert raised.value.refusal.code == ACCESS_DENIED


def test_chain_info_and_blocks_come_from_qscc(client, peers):
    info = ledger.BlockchainInfo(height=9, currentBlockHash=b"\x01" * 32)
    peers[0].then("Evaluate", evaluated(info.SerializeToString()), evaluated(b""))
    found = client.chain_info()
    assert (found.height, found.current) == (9, b"\x01" * 32)
    assert client.block(3) == b""


def test_threads_share_a_client(client, peers):
    def echo(request, context):
        digest = sha256(request.proposed_transaction.proposal_bytes).hexdigest()
        return evaluated(json.dumps([request.transaction_id, digest]).encode())(request, context)

    for peer in peers:
        peer.always("Evaluate", echo)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda number: client.contract("image").evaluate_agreed("Get", str(number)), range(64))
        )
    assert len(set(found)) == 64


def test_no_more_calls_run_at_once_than_a_peer_admits(identity, peers, monkeypatch):
    monkeypatch.setattr(peer_module, "CONCURRENT_CALLS", 3)
    gate = threading.Barrier(3, timeout=WAIT)

    def meet(request, context):
        gate.wait()
        return evaluated(b"{}")(request, context)

    peers[0].always("Evaluate", meet)
    with client_of(identity, [peers[0].peer]) as client, ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: client.contract("image").evaluate("Get"), range(12)))
    assert peers[0].most == 3


def test_a_message_beyond_the_limit_is_named_so(identity, monkeypatch):
    options = dict(peer_module.OPTIONS) | {"grpc.max_send_message_length": 2000}
    monkeypatch.setattr(peer_module, "OPTIONS", list(options.items()))
    peer = ScriptedPeer("Org1MSP")
    with client_of(identity, [peer.peer]) as client, pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate("Get", "x" * 4000)
    peer.server.stop(None)
    assert raised.value.code == "TRANSACTION_TOO_LARGE"


def test_who_knows_one_peer_alone_writes_with_the_endorsements_it_brings(identity, peers):
    """As most programs do: the service derives who endorses, and the own peer is trusted."""
    with client_of(identity, [peers[0].peer], Trust(own_peer=True)) as client:
        peers[0].always("Endorse", brings(*MSPS[:3]))
        assert client.contract("image").submit("Register").block == 7
        peers[0].always("Endorse", brings(*MSPS[:2]))
        with pytest.raises(EndorseError) as raised:
            client.contract("image").submit("Register")
    assert raised.value.code == "PEERS_DISAGREE"
    assert peers[0].asked["Endorse"][0].endorsing_organizations == []
