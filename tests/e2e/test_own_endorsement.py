"""What a coalition can write about another organisation's node on live peers: nothing without that one."""

import pytest
from support.channel import (
    DIGESTS,
    IMAGE,
    Member,
    admin1,
    admin2,
    agreement,
    auditor1,
    auditor2,
    register,
    scientist2,
    unique,
)
from support.coalition import POLICY_FAILURE, chosen, without
from support.federation import nodes, proposed_process, running_process
from support.gateway import VALID
from support.player import EXECUTION, Player, shared

pytestmark = pytest.mark.usefixtures("network")


def test_h1_a_coalition_cannot_act_for_a_node_without_its_organisation() -> None:
    """The majority that endorses runs the true chaincode and holds the node's key: it is not enough."""
    process = running_process(iterations=1)
    first, second = (Player(member, process) for member in nodes())
    opening = (first.call_open(), {})
    assert without(first.member, opening) == POLICY_FAILURE
    assert chosen(first.member, opening) == VALID
    assert chosen(second.member, (second.call_open(), {})) == VALID
    for player in (first, second):
        assert without(player.member, player.call_share()) == POLICY_FAILURE
        assert chosen(player.member, player.call_share()) == VALID
    for player in (first, second):
        result = player.call_complete()
        assert without(player.member, result) == POLICY_FAILURE
        assert chosen(player.member, result) == VALID


def test_h1_a_coalition_cannot_accept_a_process_for_another_organisation() -> None:
    acceptance = (("orchestration", "Accept", proposed_process()), {})
    assert without(admin1, acceptance) == POLICY_FAILURE
    assert chosen(admin1, acceptance) == VALID


def test_h1_a_coalition_cannot_ask_agree_withdraw_or_vote_for_another_organisation() -> None:
    """The peers of all others run the true chaincode, and hold the key of somebody of the missing one."""
    process = running_process(iterations=2, abort="majority")
    silent = nodes()[1].identity
    ask = (("orchestration", "ChangeTopology", process, 1, {"kind": "full"}), {})
    leave_out = (("orchestration", "LeaveOut", process, silent, "why"), {})
    leave_out_all = (("orchestration", "LeaveOutOrganisation", process, "Org2MSP", "why"), {})
    abort = (("orchestration", "Abort", process, "why"), {})
    for word in (ask, leave_out, leave_out_all, abort):
        assert without(admin1, word) == POLICY_FAILURE
    assert auditor1.evaluate("orchestration", "Asks", process)["items"] == []
    for word in (ask, leave_out, leave_out_all, abort):
        assert chosen(admin1, word) == VALID
    votes = auditor1.evaluate("orchestration", "Votes", process)
    assert (sorted(votes["abort"]["voted"]), len(votes["absences"])) == (["Org1MSP"], 2)
    agree = (agreement(process), {})
    assert without(admin2, agree) == POLICY_FAILURE
    withdraw = (("orchestration", "Withdraw", process, 0), {})
    assert without(admin1, withdraw) == POLICY_FAILURE
    assert chosen(admin2, agree) == VALID
    (change,) = auditor1.evaluate("orchestration", "Changes", process)["items"]
    assert sorted(change["agreed"]) == ["Org1MSP", "Org2MSP"]


def test_h1_a_coalition_cannot_challenge_answer_or_judge_for_another_organisation() -> None:
    """The peers of all others run the true chaincode, and hold the key of somebody of the missing one."""
    process = running_process(iterations=1)
    first, *_ = shared([Player(member, process) for member in nodes()])
    task = (process, first.node, 0)
    challenge = ((EXECUTION, "Challenge", *task, [], "too good"), {})
    assert without(auditor2, challenge) == POLICY_FAILURE
    assert chosen(auditor2, challenge) == VALID
    answer = ((EXECUTION, "AnswerChallenge", *task, "Org2MSP", "Org3MSP", DIGESTS[3]), {})
    assert without(admin1, answer) == POLICY_FAILURE
    assert chosen(admin1, answer) == VALID
    verdict = ((EXECUTION, "JudgeChallenge", *task, "Org2MSP", {}), {})
    auditor3 = Member("org3", "auditor")
    assert without(auditor3, verdict) == POLICY_FAILURE
    assert chosen(auditor3, verdict) == VALID
    (found,) = auditor1.evaluate(EXECUTION, "ListChallenges", process)["items"]
    assert [each["verdict"] for each in found["verdicts"]] == ["unopened"]


def test_h1_a_coalition_cannot_say_what_an_image_gave_another_organisation() -> None:
    version = unique("1")
    register(version)
    statement = (("image", "Attest", IMAGE, version, DIGESTS[2]), {})
    assert without(scientist2, statement) == POLICY_FAILURE
    assert auditor1.evaluate("image", "ListRebuilds", IMAGE, version)["items"] == []
    assert chosen(scientist2, statement) == VALID
    (found,) = auditor1.evaluate("image", "ListRebuilds", IMAGE, version)["items"]
    assert (found["organisation"], found["same"]) == ("Org2MSP", True)
