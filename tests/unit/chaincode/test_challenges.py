"""Challenges on the real contracts: who may doubt, answer and judge, and that nobody is held up by it."""

import json

import pytest
from support.memory.federation import DIGESTS, EXECUTION, Federation, changed, prepared
from support.memory.scenario import ORGANISATIONS

from protocol.agreement.collections import own
from protocol.ledger.challenges import MAX_OPEN, ChallengeEvidence, Standing

P = "fraud-2026"
TASK = (P, "node01", 0)
EVIDENCE = DIGESTS[3]


def after_one_round():
    federation = Federation()
    federation.play(0)
    return federation


@pytest.fixture
def federation():
    return prepared(after_one_round)()


@pytest.fixture
def challenged(federation):
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [], "too good")
    return federation


@pytest.fixture
def answered(challenged):
    challenged.admin1.submit(EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", "Org3MSP", EVIDENCE)
    return challenged


def recorded(federation):
    """What the ledger has of the task, as a replay that gives the same would say."""
    found = federation.auditor1.evaluate(EXECUTION, "GetTask", *TASK)
    share, result = (found[part]["signed"]["payload_digest"] for part in ("offered", "outcome"))
    return {"share": share, "result": result, "differing": []}


def listed(federation):
    (found,) = federation.auditor3.evaluate(EXECUTION, "ListChallenges", P)["items"]
    return ChallengeEvidence.from_dict(found)


def judge(federation, replayed, who="auditor3"):
    return getattr(federation, who).submit(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", replayed)


def test_a_challenge_names_what_is_doubted_and_every_third_organisation(challenged):
    found = listed(challenged)
    assert found.standing is Standing.UNANSWERED
    assert found.challenge.auditors == ("Org3MSP",)
    assert (found.challenge.organisation, found.challenge.challenged) == ("Org2MSP", "Org1MSP")
    said = recorded(challenged)
    assert (str(found.challenge.share), str(found.challenge.result)) == (said["share"], said["result"])


def test_a_challenge_goes_by_answer_and_verdict(answered):
    assert listed(answered).standing is Standing.ANSWERED
    given = judge(answered, recorded(answered))
    assert given["verdict"] == "same"
    found = listed(answered)
    assert found.standing is Standing.SAME
    assert str(found.answers[0].evidence) == EVIDENCE
    mine = [(name, json.loads(raw)) for chaincode, name, raw in answered.events if chaincode == EXECUTION]
    assert [name for name, _ in mine[-3:]] == ["TaskChallenged", "ChallengeAnswered", "ChallengeJudged"]
    assert mine[-1][1] == {
        "version": 1, "process": P, "node": "node01", "iteration": 0, "organisation": "Org2MSP",
        "challenged": "Org1MSP", "auditor": "Org3MSP", "verdict": "same",
    }  # fmt: skip


def test_h17_a_replay_with_other_trees_is_a_verdict_against_the_task(answered):
    other = recorded(answered) | {"result": DIGESTS[9], "differing": ["node01/0000"]}
    assert judge(answered, other)["verdict"] == "differs"
    assert listed(answered).standing is Standing.DIFFERS


def test_h17_data_that_do_not_open_the_commitment_are_a_verdict_too(answered):
    assert judge(answered, {})["verdict"] == "unopened"
    assert listed(answered).standing is Standing.UNOPENED


def test_h17_no_other_verdict_can_be_given_than_the_digests_say(answered):
    same = recorded(answered)
    refused = answered.auditor3.code(
        EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", same | {"differing": ["node01/0000"]}
    )
    assert refused == "RECORD_VALUE"
    many = same | {"result": DIGESTS[9], "differing": [f"node01/{number:04d}" for number in range(21)]}
    assert answered.auditor3.code(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", many) == "RECORD_VALUE"


def test_h17_the_owner_and_the_challenger_judge_nothing(answered):
    for who in ("auditor1", "auditor2"):
        code = getattr(answered, who).code(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", {})
        assert code == "CHALLENGE_AUDITOR"
    assert answered.admin3.code(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", {}) == "ACCESS_ROLE"


@pytest.mark.parametrize("auditors", [["Org1MSP"], ["Org2MSP"], ["Org3MSP", "Org2MSP"], ["Org9MSP"]])
def test_h17_a_challenge_that_nobody_could_answer_fairly_is_refused(federation, auditors):
    """An auditor of the challenger's own would read the owner's data; one who is not there, never judge."""
    assert federation.auditor2.code(EXECUTION, "Challenge", *TASK, auditors) == "CHALLENGE_AUDITOR"


def test_only_the_owner_answers(challenged):
    call = (EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", "Org3MSP", EVIDENCE)
    assert challenged.admin2.code(*call) == "ACCESS_ORGANISATION"
    assert challenged.auditor1.code(*call) == "ACCESS_ROLE"
    challenged.nodes["node01"].submit(*call)


def test_h17_the_graver_of_two_verdicts_counts():
    organisations = [*ORGANISATIONS, "Org4MSP"]
    federation = Federation()
    federation.organisations = organisations
    federation.collections |= {own("Org4MSP"): ("Org4MSP",)}
    fourth = federation.member("auditor", "Org4MSP", role="auditor")
    federation.play(0)
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [])
    for auditor in ("Org3MSP", "Org4MSP"):
        federation.admin1.submit(EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", auditor, EVIDENCE)
    judge(federation, {})
    fourth.submit(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", recorded(federation))
    assert listed(federation).standing is Standing.UNOPENED


def test_h17_challenges_are_bounded_and_stop_no_other_challenger():
    nodes = {f"node{number:02d}": "Org1MSP" for number in range(1, MAX_OPEN + 2)} | {"node31": "Org2MSP"}
    federation = Federation(changed("nodes", nodes) | {"process": P})
    for node in nodes:
        federation.players[node].open(0)
        federation.players[node].share(())
    for number in range(1, MAX_OPEN + 1):
        federation.auditor2.submit(EXECUTION, "Challenge", P, f"node{number:02d}", 0, [])
    ninth = (EXECUTION, "Challenge", P, f"node{MAX_OPEN + 1:02d}", 0, [])
    assert federation.auditor2.code(*ninth) == "CHALLENGE_QUOTA"
    federation.auditor3.submit(*ninth)  # another organisation, and another owner, have quotas of their own
    federation.auditor3.submit(EXECUTION, "Challenge", P, "node31", 0, [])
    federation.admin1.submit(EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", "Org3MSP", EVIDENCE)
    federation.auditor3.submit(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", {})
    federation.auditor2.submit(*ninth)


def test_h17_a_challenge_holds_up_nothing(challenged):
    """The node goes on, and a challenge in the same block as its next step invalidates neither."""
    player = challenged.players["node01"]
    both = [
        player.member.endorse(*player.call_open(1)),
        challenged.auditor3.endorse(EXECUTION, "Challenge", *TASK, []),
    ]
    assert challenged.commit(both) == ["VALID", "VALID"]


def test_a_share_without_a_result_can_be_challenged():
    federation = prepared()()
    player = federation.players["node01"]
    player.open(0)
    player.share()
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [])
    assert listed(federation).challenge.result is None
