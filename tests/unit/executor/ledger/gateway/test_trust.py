"""No single peer is the ledger: what one says alone is not believed, and one that hangs delays nobody.

Four organisations: two make a fact, three endorse.
"""

import logging
import threading
from dataclasses import replace

import grpc
import pytest
from support.scripted_peers import (
    MSPS,
    PATIENT,
    POLICY,
    WAIT,
    Failure,
    client_of,
    committed,
    dead_peers,
    endorsed,
    evaluated,
    ordered,
    signer,
)

from executor.ledger.gateway import (
    CommitError,
    CommitStatusError,
    EndorseError,
    EvaluateError,
    Trust,
    TrustError,
    inquiry,
)
from executor.ledger.gateway import client as client_module
from executor.ledger.gateway.messages import common, ledger, transaction

UNREACHABLE = Failure(grpc.StatusCode.UNAVAILABLE, "gone")
TRUE, LIE = b'{"asked":true}', b'{"image":"mine"}'
NO = 'chaincode response 400, {"code":"MODEL_EXISTS","message":"it is there"}'


def asked(peers, method):
    return [len(peer.asked[method]) for peer in peers]


def down(peer):
    for method in ("Evaluate", "Endorse", "Submit", "CommitStatus"):
        peer.always(method, UNREACHABLE)


def refuses(peer):
    return Failure(grpc.StatusCode.ABORTED, "see details", ((peer.msp, NO),))


def blamed(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.fixture
def hangs(client, monkeypatch):
    """Make a peer take calls and never answer them; nobody is waited for long any more."""
    released = threading.Event()

    def hang(peer, *methods):
        client.contract("image").evaluate_agreed("Get")
        for method in methods:
            peer.always(method, lambda request, context: released.wait(WAIT))
        # The others must answer within it, on a busy machine too.
        monkeypatch.setattr(inquiry, "HEDGE_SECONDS", 2)

    yield hang
    released.set()


@pytest.mark.parametrize(
    ("organisations", "needed"), [(1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 3), (7, 3), (9, 4), (20, 7)]
)
def test_more_than_a_third_and_at_least_two_make_a_fact(organisations, needed):
    assert Trust().needed(organisations) == needed
    assert Trust(agreement=1).needed(organisations) == 1


@pytest.mark.parametrize("agreement", [0, -1, 5])
def test_an_agreement_beyond_the_channel_is_refused(agreement):
    with pytest.raises(TrustError, match="has 4"):
        Trust(agreement=agreement).needed(4)


# What is read


def test_what_decides_is_read_from_enough_organisations(client, peers):
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    assert asked(peers, "Evaluate") == [1, 1, 0, 0]


def test_h2_the_own_peer_lies_and_is_not_believed(client, peers, caplog):
    peers[0].always("Evaluate", evaluated(LIE))
    client.deadlines = replace(PATIENT, own_lag=0.1)
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    (told,) = blamed(caplog)
    assert "Org1MSP" in told
    assert "contradicts Org2MSP" in told


def test_h2_who_trusts_the_own_peer_alone_believes_its_lies(identity, peers):
    peers[0].always("Evaluate", evaluated(LIE))
    with client_of(identity, [peer.peer for peer in peers], Trust(own_peer=True)) as client:
        assert client.contract("image").evaluate_agreed("Get") == LIE
    assert asked(peers, "Evaluate") == [1, 0, 0, 0]


def test_h1_one_foreign_peer_lies_and_is_outvoted(client, peers):
    peers[1].always("Evaluate", evaluated(LIE))
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    assert asked(peers, "Evaluate") == [1, 1, 1, 0]


def test_h1_one_foreign_peer_that_refuses_is_outvoted(client, peers):
    peers[1].always("Evaluate", refuses(peers[1]))
    assert client.contract("image").evaluate_agreed("Get") == TRUE


def test_h1_with_the_own_peer_down_others_are_believed_together(client, peers):
    down(peers[0])
    peers[1].always("Evaluate", evaluated(LIE))
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    assert client.contract("image").evaluate("List") == TRUE


def test_h1_with_the_own_peer_down_one_other_is_not_the_ledger(identity, peers):
    with dead_peers("Org1MSP", "Org3MSP", "Org4MSP") as dead:
        with client_of(identity, [dead[0], peers[1].peer, *dead[1:]]) as client:
            for read in (client.contract("image").evaluate, client.contract("image").evaluate_agreed):
                with pytest.raises(EvaluateError) as raised:
                    read("Get")
                assert raised.value.code == "LEDGER_UNREACHABLE"
                assert "only Org2MSP answered" in raised.value.cause
        with client_of(identity, [dead[0], peers[1].peer, *dead[1:]], Trust(peers=True)) as client:
            assert client.contract("image").evaluate("List") == TRUE
            with pytest.raises(EvaluateError):
                client.contract("image").evaluate_agreed("Get")


def test_h1_peers_that_keep_contradicting_each_other_are_named(client, peers):
    for number, peer in enumerate(peers):
        peer.always("Evaluate", evaluated(b"%d" % number))
    client.deadlines = replace(PATIENT, agree=0.2)
    with pytest.raises(EvaluateError) as raised:
        client.contract("image").evaluate_agreed("Get")
    assert raised.value.code == "PEERS_DISAGREE"
    assert [detail.msp for detail in raised.value.details] == list(MSPS)
    assert all("sha256:" in detail.message for detail in raised.value.details)
    assert len({detail.message for detail in raised.value.details}) == 4


def test_a_peer_that_lags_is_no_liar(client, peers, caplog):
    for peer in peers[1:]:
        peer.then("Evaluate", evaluated(b"the block before"))
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    assert not blamed(caplog)


def test_of_two_answers_the_own_peers_counts_while_others_lag(client, peers):
    """Two that are behind agree on what was: who has just written wants what is."""
    for peer in peers[1:]:
        peer.then("Evaluate", *[evaluated(b"the block before")] * 3)
    assert client.contract("image").evaluate_agreed("Get") == TRUE


def test_what_enough_refuse_is_refused(client, peers):
    for peer in peers[:2]:
        peer.always("Evaluate", refuses(peer))
    with pytest.raises(EvaluateError) as raised:
        client.contract("model").evaluate_agreed("Get")
    assert raised.value.refusal.code == "MODEL_EXISTS"


def test_e13_a_hanging_foreign_peer_delays_no_read_and_is_blamed_itself(client, peers, hangs, caplog):
    hangs(peers[1], "Evaluate")
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    assert any("Org2MSP" in told and "no answer" in told for told in blamed(caplog))
    # It is asked after the others for a while.
    before = asked(peers, "Evaluate")[1]
    assert client.contract("image").evaluate_agreed("Get") == TRUE
    assert asked(peers, "Evaluate")[1] == before


def test_e2_the_own_peer_hangs_and_others_answer(client, peers, hangs, caplog):
    hangs(peers[0], "Evaluate")
    assert client.contract("image").evaluate("Get") == TRUE
    assert any("Org1MSP" in told and "no answer" in told for told in blamed(caplog))


def test_block_numbers_never_go_back(client, peers):
    def height(number):
        return evaluated(ledger.BlockchainInfo(height=number).SerializeToString())

    peers[0].then("Evaluate", height(9)).always("Evaluate", height(8))
    assert client.chain_info().height == 9
    for peer in peers[1:]:
        peer.always("Evaluate", height(10))
    assert client.chain_info().height == 10
    for peer in peers[1:]:
        peer.always("Evaluate", height(9))
    client.deadlines = replace(PATIENT, agree=0)
    with pytest.raises(EvaluateError) as raised:
        client.chain_info()
    assert raised.value.code == "PEERS_DISAGREE"
    assert "Org1MSP: untrue: its chain was 9 high and is 8" in raised.value.cause


def test_a_block_is_the_same_whichever_orderer_signed_it(client, peers):
    down(peers[0])
    for number, peer in enumerate(peers):
        block = common.Block(header={"number": 3}, data={"data": [b"tx"]})
        block.metadata.metadata.extend([b"signature %d" % number, b"", b"\x00"])
        peer.always("Evaluate", evaluated(block.SerializeToString()))
    assert common.Block.FromString(client.block(3)).header.number == 3


# What is signed


FORGERIES = {
    "no endorsement": endorsed(),
    "of another organisation's peer": endorsed(signer("Org3MSP")),
    "by a user": endorsed(signer("Org2MSP", unit="client")),
    "by another authority": endorsed(signer("Org2MSP", issuer="Org9MSP")),
    "of another chaincode": endorsed(signer("Org2MSP"), chaincode="model"),
    "of a failure": endorsed(signer("Org2MSP"), status=500),
    "of another proposal": endorsed(signer("Org2MSP"), proposal_hash=b"x" * 32),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_h1_a_forged_endorsement_is_left_out_and_stops_nothing(client, peers, forgery, caplog):
    peers[1].always("Endorse", forgery)
    assert client.contract("image").submit("Register").answer == b'{"done":true}'
    envelope = peers[0].asked["Submit"][0].prepared_transaction
    assert endorsers(envelope) == ["Org1MSP", "Org3MSP", "Org4MSP"]
    (told,) = blamed(caplog)
    assert "Org2MSP" in told


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_h1_with_the_own_peer_down_a_forged_endorsement_is_not_signed(client, peers, forgery):
    down(peers[0])
    peers[1].always("Endorse", forgery)
    with pytest.raises(EndorseError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.code == "TRANSACTION_ALTERED"
    assert "Org2MSP" in [detail.msp for detail in raised.value.details if "untrue" in detail.message]
    assert asked(peers, "Submit") == [0, 0, 0, 0]


def test_h1_an_endorsement_of_another_answer_is_left_out(client, peers):
    peers[2].always("Endorse", endorsed(signer("Org3MSP"), answer=LIE))
    assert client.contract("image").submit("Register").answer == b'{"done":true}'
    assert "Org3MSP" not in endorsers(peers[0].asked["Submit"][0].prepared_transaction)


def test_h1_one_that_refuses_alone_stops_nothing(client, peers):
    peers[1].always("Endorse", refuses(peers[1]))
    assert client.contract("image").submit("Register").answer == b'{"done":true}'


def test_h2_the_own_peer_endorses_something_else_and_is_left_out(client, peers):
    peers[0].always("Endorse", endorsed(signer("Org1MSP"), answer=LIE))
    client.deadlines = replace(PATIENT, own_lag=0.1)
    assert client.contract("image").submit("Register").answer == b'{"done":true}'


def test_h2_what_the_own_peer_alone_refuses_is_not_refused(client, peers):
    """Some refusals are taken as success: a model that exists has been published."""
    peers[0].always("Endorse", refuses(peers[0]))
    for peer in peers[1:]:
        peer.always("Endorse", UNREACHABLE)
    with pytest.raises(EndorseError) as raised:
        client.contract("model").submit("Publish")
    assert raised.value.refusal is None


def test_h2_who_trusts_the_own_peer_is_refused_by_it_alone_and_by_no_other(identity, peers):
    with client_of(identity, [peer.peer for peer in peers], Trust(own_peer=True)) as client:
        peers[1].always("Endorse", refuses(peers[1]))
        assert client.contract("model").submit("Publish").answer == b'{"done":true}'
        peers[0].always("Endorse", refuses(peers[0]))
        with pytest.raises(EndorseError) as raised:
            client.contract("model").submit("Publish")
    assert raised.value.refusal.code == "MODEL_EXISTS"


def test_the_own_peer_endorses_if_it_is_up(client, peers, monkeypatch):
    monkeypatch.setattr(client_module, "OWN_SECONDS", WAIT)
    slow = threading.Event()

    def late(request, context):
        slow.wait(WAIT)
        return endorsed(signer("Org1MSP"))(request, context)

    peers[0].always("Endorse", late)
    peers[1].then("Endorse", UNREACHABLE)
    threading.Timer(0.3, slow.set).start()
    client.contract("image").submit("Register")
    assert "Org1MSP" in endorsers(peers[0].asked["Submit"][0].prepared_transaction)


def test_e13_a_hanging_foreign_peer_delays_no_write_and_is_blamed_itself(client, peers, hangs, caplog):
    hangs(peers[1], "Endorse", "CommitStatus")
    assert client.contract("image").submit("Register").answer == b'{"done":true}'
    assert any("Org2MSP" in told and "no answer" in told for told in blamed(caplog))


def endorsers(envelope):
    payload = common.Payload.FromString(envelope.payload)
    action = transaction.ChaincodeActionPayload.FromString(
        transaction.Transaction.FromString(payload.data).actions[0].payload
    )
    by = {signer(msp).creator: msp for msp in MSPS}
    return sorted(by[one.endorser] for one in action.action.endorsements)


# What is committed


def test_h1_one_organisations_word_is_no_commit(client, peers, monkeypatch):
    monkeypatch.setattr(inquiry, "PAUSES", (0.2,))
    for peer in peers:
        peer.always("CommitStatus", UNREACHABLE)
    peers[1].always("CommitStatus", committed())
    client.deadlines = replace(PATIENT, commit=2)
    with pytest.raises(CommitStatusError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.code == "COMMIT_UNKNOWN"
    assert "only Org2MSP answered" in raised.value.cause


def test_a_write_can_be_read_at_the_own_peer_at_once(client, peers, monkeypatch):
    """Its report is waited for, though enough others have reported."""
    monkeypatch.setattr(client_module, "OWN_SECONDS", WAIT)
    monkeypatch.setattr(inquiry, "HEDGE_SECONDS", 0.05)
    others, reported = threading.Semaphore(0), []

    def late(request, context):
        for _ in range(2):
            others.acquire(timeout=WAIT)
        reported.append("Org1MSP")
        return committed()(request, context)

    def soon(request, context):
        others.release()
        return committed()(request, context)

    peers[0].always("CommitStatus", late)
    for peer in peers[1:]:
        peer.always("CommitStatus", soon)
    client.contract("image").submit("Register")
    assert reported


def test_h2_the_own_peer_says_valid_and_others_know_better(client, peers):
    peers[0].always("CommitStatus", committed(block=7))
    for peer in peers[1:]:
        peer.always("CommitStatus", committed(POLICY, block=7))
    with pytest.raises(CommitError) as raised:
        client.contract("image").submit("Register")
    assert raised.value.validation == "ENDORSEMENT_POLICY_FAILURE"


def test_h1_reports_of_different_blocks_are_no_commit(client, peers):
    for number, peer in enumerate(peers):
        peer.always("CommitStatus", committed(block=7 + number))
    with pytest.raises(CommitStatusError) as raised:
        client.contract("image").submit("Register")
    assert (raised.value.code, len(raised.value.tx_id)) == ("PEERS_DISAGREE", 64)
    assert "VALID in block 10" in raised.value.cause


def test_a_commit_below_the_chain_that_was_before_it_is_not_believed(client, peers):
    client.contract("image").submit("Register")
    for peer in peers[:2]:
        peer.always("CommitStatus", committed(block=3))
    assert client.contract("image").submit("Register").block == 8


def test_h1_a_peer_that_swallows_the_transaction_stops_nothing(client, peers):
    """Handed over by the next peer; it has one id and is written once."""
    taken = threading.Event()

    def know(request, context):
        if not taken.wait(context.time_remaining()):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "unknown")
        return committed()(request, context)

    def order(request, context):
        taken.set()
        return ordered(request, context)

    for peer in peers:
        peer.always("CommitStatus", know)
    for peer in peers[1:]:
        peer.always("Submit", order)
    client.deadlines = replace(PATIENT, another_peer=0.3)
    receipt = client.contract("image").submit("Register")
    assert asked(peers, "Submit")[0] == 1
    handed = [request.transaction_id for peer in peers for request in peer.asked["Submit"]]
    assert set(handed) == {receipt.tx_id}


def test_h1_a_liar_beside_peers_that_are_slow_stops_nothing(client, peers):
    """Of the honest, one knows at once, and the others only when there is time to wait for them."""
    down(peers[0])
    peers[1].always("CommitStatus", committed(block=10**6))

    def slow(request, context):
        if context.time_remaining() < WAIT:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "not yet")
        return committed()(request, context)

    peers[3].always("CommitStatus", slow)
    client.deadlines = replace(PATIENT, commit=4 * WAIT, another_peer=0.3)
    assert client.contract("image").submit("Register").block < 10**6
    assert len(peers[3].asked["CommitStatus"]) > 1


def test_h1_one_peer_that_says_not_ordered_is_not_believed(client, peers):
    peers[0].then("Submit", Failure(grpc.StatusCode.ABORTED, "not ordered"))
    assert client.contract("image").submit("Register").block == 7
    assert asked(peers, "Submit") == [1, 1, 0, 0]
