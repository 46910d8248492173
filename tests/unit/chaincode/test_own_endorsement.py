"""What a coalition can write about another organisation's node: each record, and who must endorse it."""

from datetime import timedelta

import pytest
from support.memory.federation import DIGESTS, EXECUTION, MODEL, Federation, played, prepared
from support.memory.ledger import POLICY_FAILURE, VALID, InvalidatedError
from support.memory.scenario import IMAGE, changed

from chaincode.common.own import endorsement_by
from chaincode.shim import all_of, n_of, peer_of
from protocol.agreement import collections
from protocol.ledger import keys

P, NODE = "fraud-2026", "node01"
OWN, COALITION = "Org1MSP", ("Org2MSP", "Org3MSP")
WITH_OWN = ("Org1MSP", "Org3MSP")


@pytest.fixture
def federation():
    return prepared()()


@pytest.fixture
def node(federation):
    return federation.players[NODE]


def shared(federation):
    for player in federation.players.values():
        player.open(0)
        player.share()


def test_h1_an_opening_needs_the_nodes_organisation(node):
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.open(0, endorsers=COALITION)
    node.open(0, endorsers=WITH_OWN)


def test_h1_shares_and_results_need_the_nodes_organisation(federation, node):
    shared(federation)
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.complete(endorsers=COALITION)
    node.complete(endorsers=WITH_OWN)


def test_h1_a_share_needs_the_nodes_organisation(node):
    node.open(0)
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.share(endorsers=COALITION)
    node.share(endorsers=WITH_OWN)


@pytest.mark.parametrize(
    "call",
    [
        ("Fail", P, NODE, 0, "OOM", "memory"),
        ("Refuse", P, NODE, 0, "IMAGE_MISMATCH", {}),
    ],
)
def test_h1_ending_a_task_needs_the_nodes_organisation(node, call):
    node.open(0)
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.member.submit(EXECUTION, *call, endorsers=COALITION)
    node.member.submit(EXECUTION, *call, endorsers=WITH_OWN)


def test_h1_a_refusal_of_what_was_never_opened_needs_the_nodes_organisation(node):
    call = (EXECUTION, "Refuse", P, NODE, 0, "IMAGE_MISMATCH", {})
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.member.submit(*call, endorsers=COALITION)
    node.member.submit(*call, endorsers=WITH_OWN)
    node.open(0, endorsers=WITH_OWN)


def test_h1_the_own_organisation_alone_writes_nothing_either(federation, node):
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.open(0, endorsers=(OWN,))
    node.open(0)
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        node.share(endorsers=(OWN,))


def test_h1_what_a_round_leaves_is_sealed_against_altered_chaincode(federation):
    """Whatever the others run, each of these keys takes nothing new without the organisation it is about."""
    shared(federation)
    for player in federation.players.values():
        player.complete()
    wanted = all_of(peer_of(OWN), n_of(1, *map(peer_of, COALITION))).to_bytes()
    for place in (
        (EXECUTION, keys.task(P, NODE, 0)),
        (EXECUTION, keys.share(P, 0, NODE)),
        (EXECUTION, keys.result(P, 0, NODE)),
        (EXECUTION, keys.head(P, NODE)),
        ("orchestration", keys.progress(P, NODE)),
    ):
        assert federation.policies[place] == wanted, place


def test_h1_a_published_model_and_its_grants_are_sealed():
    federation = played()
    federation.players[NODE].publish()
    for key in (keys.model(P, NODE), keys.access(P, NODE)):
        assert (MODEL, key) in federation.policies
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        federation.admin1.submit(MODEL, "Grant", P, NODE, "Org3MSP", endorsers=COALITION)
    federation.admin1.submit(MODEL, "Grant", P, NODE, "Org3MSP", endorsers=WITH_OWN)


def test_h1_an_acceptance_needs_the_organisation_that_accepts():
    federation = Federation(started=False)
    call = ("orchestration", "Accept", P)
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        federation.admin1.submit(*call, endorsers=COALITION)
    federation.admin1.submit(*call, endorsers=WITH_OWN)


def test_h1_a_process_that_others_accepted_in_ones_name_does_not_start():
    federation = Federation(started=False)
    for admin in (federation.admin1, federation.admin2):
        admin.submit("orchestration", "Accept", P)
    del federation.state[f"orchestration${collections.own(OWN)}", keys.process(P)]
    assert federation.admin2.code("orchestration", "Start", P) == "RECORD_UNVOUCHED"


@pytest.mark.parametrize("mark", [None, b"2 another key"])
def test_h1_a_task_that_others_opened_in_ones_name_is_no_task(federation, node, mark):
    """Altered chaincode of a majority can put a first record there, and not the mark of the organisation."""
    node.open(0)
    place = f"{EXECUTION}${collections.own(OWN)}", keys.task(P, NODE, 0)
    federation.state.pop(place) if mark is None else federation.state.update({place: mark})
    assert node.share_code() == "RECORD_UNVOUCHED"
    assert federation.auditor1.code(EXECUTION, "GetTask", P, NODE, 0) == "RECORD_UNVOUCHED"


def test_others_need_nothing_of_a_silent_organisation(federation):
    """An organisation whose peer is down keeps its own nodes from going on, and nobody else's."""
    others = ("Org2MSP", "Org3MSP")
    for name in ("node03", "node04"):
        federation.players[name].open(0, endorsers=others)
        federation.players[name].share(endorsers=others)


@pytest.mark.parametrize(("organisations", "needed"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (8, 4)])
def test_own_and_others_together_are_a_majority(organisations, needed):
    class Listed:
        def organisations(self, chaincode):
            return tuple(f"Org{number}MSP" for number in range(1, organisations + 1))

    policy = endorsement_by(Listed(), "probe", OWN)
    others = policy.rules[1].count if policy.rules else 0
    assert others == needed
    assert 1 + others == organisations // 2 + 1


# Asks, agreements and votes

HERE = "orchestration"


@pytest.fixture
def consortium():
    """A running process of three organisations, a node each."""
    return prepared(lasting)()


def lasting():
    return Federation(THREE)


THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {
    "nodes": {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"},
    "topology": {"kind": "full"},
}
WORDS = {
    "an ask": ("ChangeTopology", P, 2, {"kind": "ring"}),
    "a leave": ("Leave", P, NODE, 2),
    "a vote about a node": ("LeaveOut", P, "node05", "silent"),
    "a vote about an organisation": ("LeaveOutOrganisation", P, "Org3MSP", "silent"),
    "a vote to abort": ("Abort", P, "why"),
}


def forged(endorsed):
    """What altered chaincode of a majority would write: the same, and not the organisation's mark."""
    marks = [place for place in endorsed.writes if "$" in place[0]]
    assert marks
    for place in marks:
        del endorsed.writes[place]
    endorsed.endorsers = COALITION
    return endorsed


@pytest.mark.parametrize("call", WORDS.values(), ids=WORDS)
def test_h1_asks_and_votes_need_the_organisation_that_speaks(consortium, call):
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        consortium.admin1.submit(HERE, *call, endorsers=COALITION)
    consortium.admin1.submit(HERE, *call, endorsers=WITH_OWN)


def test_h1_an_agreement_and_a_withdrawal_need_the_organisation_that_speaks(consortium):
    ask = consortium.admin2.submit(HERE, *WORDS["an ask"])
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        consortium.agree(consortium.admin1, ask, endorsers=COALITION)
    consortium.agree(consortium.admin1, ask, endorsers=WITH_OWN)
    own = consortium.admin1.submit(HERE, *WORDS["an ask"])
    withdrawal = (HERE, "Withdraw", P, own["number"])
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        consortium.admin1.submit(*withdrawal, endorsers=COALITION)
    consortium.admin1.submit(*withdrawal, endorsers=WITH_OWN)


def test_h1_an_agreement_that_others_wrote_is_none_and_does_not_silence_its_organisation(consortium):
    ask = consortium.admin2.submit(HERE, *WORDS["an ask"])
    call = consortium.agreement(ask)
    assert consortium.commit([forged(consortium.admin1.endorse(*call))]) == [VALID]
    assert consortium.agree(consortium.admin3, ask)["missing"] == [OWN]
    assert consortium.agree(consortium.admin1, ask)["change"] == 0


def test_h1_a_vote_to_abort_that_others_wrote_does_not_count(consortium):
    call = (HERE, *WORDS["a vote to abort"])
    assert consortium.commit([forged(consortium.admin1.endorse(*call))]) == [VALID]
    assert consortium.auditor2.evaluate(HERE, "Votes", P)["abort"]["voted"] == {}
    assert sorted(consortium.admin2.submit(*call)["voted"]) == ["Org2MSP"]
    assert consortium.admin1.submit(*call)["status"] == "aborted"


@pytest.mark.parametrize("kind", ["a vote about a node", "a vote about an organisation"])
def test_h1_a_vote_to_leave_out_that_others_wrote_does_not_count(consortium, kind):
    call, time = (HERE, *WORDS[kind]), consortium.time + timedelta(days=2)
    assert consortium.admin2.submit(*call)["voted"] == []
    assert consortium.commit([forged(consortium.admin1.endorse(*call, time=time))]) == [VALID]
    assert [vote["by"]["organisation"] for vote in absences(consortium)] == ["Org2MSP"]
    assert consortium.admin2.submit(*call, time=time)["voted"] == ["Org2MSP"]
    assert consortium.admin1.submit(*call, time=time)["change"] is None
    assert consortium.admin1.submit(*call, time=time + timedelta(days=1))["change"] == 0


def absences(federation):
    return federation.auditor2.evaluate(HERE, "Votes", P)["absences"]


def test_h1_an_ask_that_others_wrote_is_neither_shown_nor_agreed_to(consortium):
    made = forged(consortium.admin1.endorse(HERE, *WORDS["an ask"]))
    assert consortium.commit([made]) == [VALID]
    assert consortium.auditor2.evaluate(HERE, "Asks", P)["items"] == []
    assert consortium.admin2.code(*consortium.agreement(made.json)) == "RECORD_UNVOUCHED"


def test_h1_a_withdrawal_that_others_wrote_is_told_from_the_organisations_own(consortium):
    ask = consortium.admin1.submit(HERE, *WORDS["an ask"])
    taken = forged(consortium.admin1.endorse(HERE, "Withdraw", P, ask["number"]))
    assert consortium.commit([taken]) == [VALID]
    assert consortium.admin2.code(*consortium.agreement(ask)) == "RECORD_UNVOUCHED"


def test_h1_no_node_runs_an_image_that_others_agreed_to_in_its_organisations_name(consortium):
    consortium.register(version="1.0.1")
    ask = consortium.admin2.submit(HERE, "UpdateImage", P, 0, "1.0.1")
    assert consortium.commit([forged(consortium.admin1.endorse(*consortium.agreement(ask)))]) == [VALID]
    assert consortium.agree(consortium.admin3, ask)["change"] == 0
    assert consortium.context(NODE, 0)["image"]["agreed"] is False
    assert consortium.context("node05", 0)["image"]["agreed"] is True
    assert consortium.context("node03", 0)["image"]["agreed"] is True


# Challenges, answers and verdicts, and what an image's source gave

TASK, BY = (P, NODE, 0), "Org2MSP"
CHALLENGE = (EXECUTION, "Challenge", *TASK, [], "too good")
ANSWER = (EXECUTION, "AnswerChallenge", *TASK, BY, "Org3MSP", DIGESTS[3])
VERDICT = (EXECUTION, "JudgeChallenge", *TASK, BY, {})
ATTEST = ("image", "Attest", *IMAGE, DIGESTS[2])


def lone_share():
    federation = Federation()
    federation.players[NODE].open(0)
    federation.players[NODE].share()
    return federation


@pytest.fixture
def doubted():
    """A task that has shared, and that Org2MSP may doubt before an auditor of Org3MSP."""
    return prepared(lone_share)()


def others(organisation):
    return tuple(name for name in ("Org1MSP", "Org2MSP", "Org3MSP") if name != organisation)


def forged_by_others(channel, member, call):
    """What altered chaincode of the others would write in an organisation's name, without its mark."""
    endorsed = forged(member.endorse(*call))
    endorsed.endorsers = others(member.organisation)
    assert channel.commit([endorsed]) == [VALID]


def challenges(channel):
    return channel.auditor1.evaluate(EXECUTION, "ListChallenges", P)["items"]


def test_h1_a_challenge_its_answer_and_its_verdict_need_the_organisation_that_speaks(doubted):
    for member, call in (
        (doubted.auditor2, CHALLENGE),
        (doubted.admin1, ANSWER),
        (doubted.auditor3, VERDICT),
    ):
        with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
            member.submit(*call, endorsers=others(member.organisation))
        member.submit(*call, endorsers=(member.organisation, others(member.organisation)[0]))


def test_h1_a_challenge_that_others_raised_in_ones_name_is_none_and_does_not_silence_one(doubted):
    forged_by_others(doubted, doubted.auditor2, CHALLENGE)
    assert challenges(doubted) == []
    assert doubted.admin1.code(*ANSWER) == "CHALLENGE_UNKNOWN"
    doubted.auditor2.submit(*CHALLENGE)
    assert len(challenges(doubted)) == 1


def test_h1_an_answer_that_others_gave_in_the_owners_name_opens_nothing(doubted):
    """An auditor could call the task unopened by evidence that its owner never gave."""
    doubted.auditor2.submit(*CHALLENGE)
    forged_by_others(doubted, doubted.admin1, ANSWER)
    assert challenges(doubted)[0]["answers"] == []
    assert doubted.auditor3.code(*VERDICT) == "CHALLENGE_UNANSWERED"
    doubted.admin1.submit(*ANSWER)
    assert doubted.auditor3.submit(*VERDICT)["verdict"] == "unopened"


def test_h1_a_verdict_that_others_gave_in_an_auditors_name_does_not_count(doubted):
    doubted.auditor2.submit(*CHALLENGE)
    doubted.admin1.submit(*ANSWER)
    forged_by_others(doubted, doubted.auditor3, VERDICT)
    assert challenges(doubted)[0]["verdicts"] == []
    doubted.auditor3.submit(*VERDICT)
    assert len(challenges(doubted)[0]["verdicts"]) == 1


def test_h1_a_rebuild_needs_the_organisation_that_speaks(doubted):
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        doubted.scientist1.submit(*ATTEST, endorsers=COALITION)
    doubted.scientist1.submit(*ATTEST, endorsers=WITH_OWN)


def test_h1_a_rebuild_that_others_claimed_in_ones_name_starts_no_process():
    channel = Federation(changed("image_attestations", 1), started=False)
    for admin in (channel.admin1, channel.admin2):
        admin.submit("orchestration", "Accept", P)
    forged_by_others(channel, channel.scientist1, ATTEST)
    assert channel.auditor2.evaluate("image", "ListRebuilds", *IMAGE)["items"] == []
    assert channel.admin1.code("orchestration", "Start", P) == "IMAGE_UNATTESTED"
    channel.scientist1.submit(*ATTEST)
    assert channel.admin1.submit("orchestration", "Start", P)["status"] == "running"
