"""From what on a silence counts: what advances the process, and no sign of life that does not."""

from datetime import timedelta

import pytest
from support.memory.federation import EXECUTION, Federation, prepared
from support.memory.ledger import VALID
from support.memory.scenario import changed

P, HERE = "fraud-2026", "orchestration"
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {
    "nodes": {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"},
    "topology": {"kind": "full"},
}
ORGANISATION = (HERE, "LeaveOutOrganisation", P, "Org3MSP", "gone")


def three():
    return Federation(THREE)


@pytest.fixture
def consortium():
    """Three organisations with a node each, four iterations, and nothing done yet."""
    return prepared(three)()


def vote(member, node="node05", **more):
    return member.submit(HERE, "LeaveOut", P, node, "nothing comes", **more)


def left_out(federation, node="node05"):
    """Have two of three vote; returns the change that it comes to, or None."""
    return [vote(member, node)["change"] for member in (federation.admin1, federation.admin2)][-1]


def seen(federation, *calls):
    """Have two of three vote at once: from there on each counts by its own clock."""
    for call in calls or [(HERE, "LeaveOut", P, "node05", "nothing comes")]:
        for member in (federation.admin1, federation.admin2):
            assert member.submit(*call)["vote"]["counts"] is False


def share(federation, *nodes):
    for node in nodes:
        federation.players[node].open(0)
        federation.players[node].share()


def first_share(federation, node):
    return federation.auditor1.evaluate(EXECUTION, "FirstShare", P, node, 0)["by"]


def refuse(player):
    player.member.submit(EXECUTION, "Refuse", P, player.node, 0, "IMAGE_MISMATCH", {"found": "x"})


def open_and_fail(player):
    player.open(0)
    player.member.submit(EXECUTION, "Fail", P, player.node, 0, "OOM", "too much")


def open_again(player):
    player.open(0)


# Signs of life


@pytest.mark.parametrize("sign", [refuse, open_and_fail])
def test_h10_signs_of_life_once_a_period_gain_a_node_that_never_shares_nothing(consortium, sign):
    share(consortium, "node01", "node03")
    seen(consortium)
    consortium.time += DAY - HOUR
    sign(consortium.players["node05"])
    consortium.time += 2 * HOUR
    assert left_out(consortium) == 0


@pytest.mark.parametrize("sign", [refuse, open_and_fail, open_again])
def test_h10_a_sign_of_life_between_the_votes_voids_none_that_counts(consortium, sign):
    seen(consortium)
    consortium.time += DAY + HOUR
    first = vote(consortium.admin1)
    assert (first["voted"], first["change"]) == (["Org1MSP"], None)
    sign(consortium.players["node05"])
    second = vote(consortium.admin2)
    assert (second["voted"], second["change"]) == (["Org1MSP", "Org2MSP"], 0)


@pytest.mark.parametrize("shared", [False, True], ids=["before", "after"])
def test_h10_a_sign_of_life_in_the_same_block_invalidates_no_vote(consortium, shared):
    """A vote reads of a task what is written once: its share."""
    share(consortium, "node01", "node03", *["node05"] * shared)
    consortium.time += DAY + HOUR
    voted = consortium.admin1.endorse(HERE, "LeaveOut", P, "node05", "nothing comes")
    kind, more = ("Fail", ("OOM", "too much")) if shared else ("Refuse", ("IMAGE_MISMATCH", {"found": "x"}))
    sign = consortium.players["node05"].member.endorse(EXECUTION, kind, P, "node05", 0, *more)
    assert consortium.commit([sign, voted]) == [VALID, VALID]
    assert not [key for space, key in voted.reads if space == EXECUTION and "\0share\0" not in key]


def test_h10_a_share_in_the_same_block_invalidates_the_vote(consortium):
    share(consortium, "node01", "node03")
    consortium.time += DAY + HOUR
    consortium.players["node05"].open(0)
    voted = consortium.admin1.endorse(HERE, "LeaveOut", P, "node05", "nothing comes")
    arguments, options = consortium.players["node05"].call_share()
    shared = consortium.players["node05"].member.endorse(*arguments, **options)
    assert [verdict == VALID for verdict in consortium.commit([shared, voted])] == [True, False]


def test_h10_who_first_shared_is_told_without_the_trees(consortium):
    assert first_share(consortium, "node05") is None
    share(consortium, "node05")
    found = consortium.auditor1.evaluate(EXECUTION, "GetTask", P, "node05", 0)["offered"]
    assert first_share(consortium, "node05") == found["signed"]["by"]


def test_h10_the_share_makes_an_earlier_vote_void(consortium):
    share(consortium, "node01", "node03")
    seen(consortium)
    consortium.time += DAY + HOUR
    assert vote(consortium.admin1)["vote"]["counts"] is True
    share(consortium, "node05")
    second = vote(consortium.admin2)
    assert (second["vote"]["counts"], second["voted"], second["change"]) == (False, [], None)


def test_h10_the_same_share_sent_again_and_again_gains_nothing(consortium):
    """It advances the process once; each later launch only signs it with another key."""
    share(consortium, "node01", "node03", "node05")
    player = consortium.players["node05"]
    assert left_out(consortium) is None
    consortium.time += DAY - HOUR
    player.member.submit(EXECUTION, "Fail", P, "node05", 0, "OOM", "too much")
    share(consortium, "node05")
    consortium.time += 2 * HOUR
    assert left_out(consortium) == 0


def test_h10_what_one_node_gains_in_an_iteration_is_two_periods(consortium):
    """One until it has shared, and one until it has completed."""
    share(consortium, "node01", "node03")
    began = consortium.time
    consortium.time += DAY - HOUR
    share(consortium, "node05")
    assert left_out(consortium) is None
    player = consortium.players["node05"]
    for _ in range(3):
        player.member.submit(EXECUTION, "Fail", P, "node05", 0, "OOM", "too much")
        consortium.time += 8 * HOUR
        share(consortium, "node05")
    consortium.time = began + 2 * DAY
    assert left_out(consortium) == 0


# Waiting


def test_h10_who_waits_for_another_nodes_share_is_not_silent(consortium):
    share(consortium, "node05")
    consortium.time += 2 * DAY
    assert consortium.admin1.code(HERE, "LeaveOut", P, "node05", "x") == "NODE_WAITING"
    assert consortium.admin1.code(*ORGANISATION) == "NODE_WAITING"


def test_h10_who_waited_is_silent_since_the_last_share_that_it_waited_for(consortium):
    share(consortium, "node05", "node01")
    consortium.time += 2 * DAY
    share(consortium, "node03")
    shared = consortium.auditor1.evaluate(EXECUTION, "GetTask", P, "node03", 0)["offered"]
    for member in (consortium.admin1, consortium.admin2):
        early = vote(member)["vote"]
        assert (early["counts"], early["last"]["tx"]) == (False, shared["signed"]["by"]["tx"])
    consortium.time += DAY
    assert left_out(consortium) == 0


def test_h10_a_share_that_claims_an_old_time_makes_nobody_silent_who_waited_for_it(consortium):
    """Who waited could not know that it came, so each voter counts from its own first vote after it."""
    share(consortium, "node05", "node01")
    started = consortium.time
    consortium.time += 5 * DAY
    late = consortium.players["node03"]
    late.open(0, time=started)
    late.share(time=started)
    found = [vote(member) for member in (consortium.admin1, consortium.admin2)]
    assert [(said["vote"]["counts"], said["change"]) for said in found] == [(False, None)] * 2


def test_h10_the_share_of_a_node_of_the_same_organisation_is_its_own_claim():
    nodes = {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP", "node06": "Org3MSP"}
    pairs = {"kind": "explicit", "edges": [["node01", "node03"], ["node05", "node06"]]}
    federation = Federation(THREE | {"nodes": nodes, "topology": pairs})
    share(federation, "node05", "node06")
    federation.time += DAY + HOUR
    assert left_out(federation) == 0


def test_h10_in_an_asynchronous_step_nobody_waits():
    federation = Federation(changed("steps", 0, "synchronous", False, base=THREE))
    share(federation, "node05")
    federation.time += DAY + HOUR
    assert left_out(federation) == 0


def test_h10_an_organisation_with_one_node_that_waits_and_one_that_owes_is_silent():
    nodes = THREE["nodes"] | {"node06": "Org3MSP"}
    federation = Federation(THREE | {"nodes": nodes})
    share(federation, "node01", "node03", "node05")
    seen(federation, ORGANISATION)
    federation.time += DAY + HOUR
    changes = [member.submit(*ORGANISATION)["change"] for member in (federation.admin1, federation.admin2)]
    assert changes == [None, 0]


def test_h10_who_comes_back_to_what_it_has_shared_is_silent_since_it_came_back():
    federation = Federation(changed("steps", 0, "synchronous", False, base=THREE))
    share(federation, "node05")
    federation.admin3.submit(HERE, "Leave", P, "node05", 0)
    federation.time += 2 * DAY
    federation.admin3.submit(HERE, "Join", P, "node05", "Org3MSP", 0)
    assert vote(federation.admin1)["vote"]["counts"] is False
    federation.time += DAY
    assert left_out(federation) == 2


# Organisations that owe nothing


def test_h9_an_organisation_that_has_done_all_its_work_is_not_left_out():
    once = {"steps": changed("steps", 0, "iterations", 1)["steps"]}
    federation = Federation(THREE | once | {"topology": {"kind": "disconnected"}, "model_access": "all"})
    player = federation.players["node05"]
    player.open(0)
    player.complete()
    federation.time += 2 * DAY
    assert federation.admin1.code(*ORGANISATION) == "NODE_INACTIVE"
    status = federation.auditor1.evaluate(HERE, "Status", P)
    assert status["present"] == ["Org1MSP", "Org2MSP", "Org3MSP"]


# Claimed times


def test_h10_a_start_that_claims_a_time_to_come_hides_nobodys_share():
    """One member starts the process, and shall not have others' shares count for nothing by its clock."""
    federation = Federation(THREE, started=False)
    for member in (federation.admin1, federation.admin2, federation.admin3):
        member.submit(HERE, "Accept", P)
    federation.admin1.submit(HERE, "Start", P, time=federation.time + 90 * DAY)
    vote(federation.admin1)
    federation.time += 20 * HOUR
    share(federation, "node01", "node03", "node05")
    federation.time += 5 * HOUR
    late = vote(federation.admin1)["vote"]
    shared = [first_share(federation, node) for node in federation.players]
    assert late["counts"] is False
    assert late["last"]["tx"] in [by["tx"] for by in shared]


def test_h10_a_start_that_claims_an_old_time_makes_nobody_silent():
    """One member starts the process, and shall not have all others silent from the beginning by its clock."""
    federation = Federation(THREE, started=False)
    for member in (federation.admin1, federation.admin2, federation.admin3):
        member.submit(HERE, "Accept", P)
    agreed = federation.time
    federation.time += 5 * DAY
    federation.admin1.submit(HERE, "Start", P, time=agreed)
    assert left_out(federation) is None
    federation.time += DAY
    assert left_out(federation) == 0


def test_h10_an_agreement_to_a_join_that_claims_an_old_time_makes_no_node_silent():
    """Also where the organisation of the node asked days before the last of the others agreed."""
    federation = Federation(THREE)
    federation.play(0)
    ask = federation.admin3.submit(HERE, "Join", P, "node06", "Org3MSP", 2)
    asked = federation.time
    federation.time += 5 * DAY
    for member in (federation.admin1, federation.admin2):
        joined = federation.agree(member, ask, time=asked)
    assert joined["change"] == 0
    assert left_out(federation, "node06") is None
    federation.time += DAY
    assert left_out(federation, "node06") == 1


def test_h10_who_comes_back_by_its_own_word_is_silent_since_it_says():
    federation = Federation(THREE)
    federation.admin3.submit(HERE, "Leave", P, "node05", 0)
    federation.admin3.submit(HERE, "Join", P, "node05", "Org3MSP", 1)
    federation.time += DAY + HOUR
    assert left_out(federation) == 2


def test_h10_who_has_completed_an_iteration_since_the_start_is_silent_since_then():
    """It is its own claim: voters need not have voted before."""
    federation = Federation(THREE)
    federation.play(0)
    federation.time += DAY + HOUR
    assert left_out(federation) == 0
