"""A node that runs ahead keeps nobody from coming back or from other neighbours; no past is rewritten."""

import pytest
from support.memory.federation import Federation, prepared
from support.memory.scenario import changed

from protocol.agreement.plan import Plan
from protocol.ledger.processes import ProcessRecord

P, HERE = "fraud-2026", "orchestration"
NODES = {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"}
FULL = {"kind": "full"}
THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {"nodes": NODES, "topology": FULL}
APART = {"kind": "explicit", "edges": [["node01", "node05"], ["node03", "node05"]]}


def run(federation, node, *iterations):
    player = federation.players[node]
    for iteration in iterations:
        player.open(iteration)
        player.share()
        player.complete(player.result(slots=()))


def ahead():
    """An asynchronous process in which one node has done everything, and the others nothing."""
    federation = Federation(changed("steps", 0, "synchronous", False, base=THREE))
    run(federation, "node05", 0, 1, 2, 3)
    return federation


def beside():
    """A synchronous process of two neighbours and a third that has none, and has done everything."""
    pair = {"kind": "explicit", "edges": [["node01", "node03"]]}
    federation = Federation(THREE | {"topology": pair})
    run(federation, "node05", 0, 1, 2, 3)
    return federation


@pytest.fixture
def federation():
    return prepared(ahead)()


@pytest.fixture
def pair():
    return prepared(beside)()


def join(iteration, node="node03"):
    return (HERE, "Join", P, node, NODES.get(node, "Org2MSP"), iteration)


def all_agree(federation, ask):
    for member in (federation.admin1, federation.admin2, federation.admin3):
        if member.organisation != ask["asked"]:
            last = federation.agree(member, ask)
    return last["change"]


def test_h9_a_node_that_runs_ahead_has_no_veto_against_who_comes_back(federation):
    federation.admin2.submit(HERE, "Leave", P, "node03", 0)
    assert federation.admin2.submit(*join(0))["change"] == 1
    run(federation, "node03", 0, 1)
    assert federation.context("node03", 2)["next"] == 2


def test_c6_nobody_comes_back_to_what_it_has_done_or_all_others_have(federation):
    run(federation, "node03", 0, 1)
    federation.admin2.submit(HERE, "Leave", P, "node03", 2)
    assert federation.admin2.code(*join(1)) == "ITERATION_RANGE"
    run(federation, "node01", 0, 1, 2)
    assert federation.admin2.code(*join(2)) == "ITERATION_RANGE"
    assert federation.admin2.submit(*join(3))["change"] == 1


def test_c6_nobody_comes_back_when_all_others_are_done(federation):
    federation.admin2.submit(HERE, "Leave", P, "node03", 0)
    run(federation, "node01", 0, 1, 2, 3)
    assert federation.admin2.code(*join(3)) == "ITERATION_RANGE"


def test_h9_a_node_apart_that_runs_ahead_has_no_veto_in_a_synchronous_step(pair):
    pair.admin2.submit(HERE, "Leave", P, "node03", 0)
    # node01 may have begun iteration 0 alone, and shall not have to wait in it.
    assert pair.admin2.code(*join(0)) == "ITERATION_RANGE"
    assert pair.admin2.submit(*join(1))["change"] == 1


def test_h9_nobody_comes_back_far_ahead_to_keep_its_neighbours_away():
    """It would begin the last iteration, and whoever leaves could never come back beside it."""
    federation = Federation(THREE)
    federation.admin3.submit(HERE, "Leave", P, "node05", 0)
    for iteration in (2, 3):
        assert federation.admin3.code(*join(iteration, "node05")) == "ITERATION_RANGE"
    federation.admin3.submit(*join(1, "node05"))
    federation.admin2.submit(HERE, "Leave", P, "node03", 0)
    begin(federation, "node05")
    # It has begun iteration 1 alone, where it waits for the others anyway.
    assert federation.admin2.code(*join(2)) == "ITERATION_RANGE"
    assert federation.admin2.submit(*join(1))["change"] == 3
    run(federation, "node01", 0)
    federation.players["node01"].open(1)
    federation.players["node01"].share()
    begin(federation, "node03")
    for player in federation.players.values():
        player.complete()
    # What was shared before node03 came back is not for it.
    assert [offer.sender for offer in federation.players["node03"].slots()] == ["node01"]


def begin(federation, node):
    """Open and share iteration 1 on a node that did nothing before."""
    player = federation.players[node]
    player.joined = 1
    player.open(1)
    player.share()


def test_h9_a_node_that_is_to_join_later_keeps_nobody_away_until_then():
    """It may have begun its first iteration already, far ahead of all others."""
    federation = Federation(THREE)
    ask = federation.admin1.submit(HERE, "Join", P, "node06", "Org2MSP", 3)
    assert all_agree(federation, ask) == 0
    federation.admin3.submit(HERE, "Leave", P, "node05", 0)
    assert federation.admin3.submit(*join(1, "node05"))["change"] == 2


def test_h9_who_comes_back_may_name_what_its_neighbours_begin_next():
    """Others may be behind: node01 has completed iteration 0, and begun the next one."""
    federation = Federation(THREE)
    federation.admin2.submit(HERE, "Leave", P, "node03", 0)
    for node in ("node01", "node05"):
        federation.players[node].open(0)
        federation.players[node].share()
    federation.players["node01"].complete()
    assert federation.admin2.code(*join(1)) == "ITERATION_RANGE"
    assert federation.admin2.code(*join(3)) == "ITERATION_RANGE"
    assert federation.admin2.submit(*join(2))["change"] == 1


def test_h9_who_was_to_leave_stays_by_its_own_word():
    federation = Federation(THREE)
    federation.admin2.submit(HERE, "Leave", P, "node03", 3)
    assert federation.admin2.submit(*join(3))["change"] == 1
    assert federation.context("node01", 3)["neighbours"] == ["node03", "node05"]


def test_c12_a_new_node_takes_no_part_before_the_iteration_that_was_agreed_on():
    """It would be an organisation of its own there, and members of begun tasks would change if it left."""
    federation = Federation(THREE)
    ask = federation.admin1.submit(HERE, "Join", P, "node06", "Org2MSP", 3)
    assert all_agree(federation, ask) == 0
    federation.admin2.submit(HERE, "Leave", P, "node06", 3)
    for iteration in (0, 1, 2):
        assert federation.admin2.code(*join(iteration, "node06")) == "ITERATION_RANGE"
        assert federation.admin2.code(HERE, "Leave", P, "node06", iteration) == "NODE_INACTIVE"
    again = federation.admin2.submit(*join(3, "node06"))
    assert (again["change"], again["needed"]) == (None, 2)
    assert federation.agree(federation.admin1, again)["change"] == 2
    assert "node06" not in members(federation, 2)
    assert "node06" in members(federation, 3)


def members(federation, iteration):
    record = ProcessRecord.from_dict(federation.auditor1.evaluate(HERE, "Get", P))
    return Plan(record.specification, record.course).members(iteration)


@pytest.mark.parametrize("iteration", [0, 3])
def test_c12_a_new_node_does_not_become_a_member_of_tasks_that_have_begun(federation, iteration):
    """Their parameters name the members, and the models that were made of them would no longer fit."""
    assert federation.admin1.code(*join(iteration, "node06")) == "ITERATION_RANGE"


def test_h9_a_node_that_runs_ahead_has_no_veto_against_other_neighbours(federation):
    """The others part from each other; what has begun keeps its neighbours."""
    ask = federation.admin1.submit(HERE, "ChangeTopology", P, 1, APART)
    assert all_agree(federation, ask) == 0
    assert [federation.context("node01", at)["neighbours"] for at in (0, 1)] == [
        ["node03", "node05"],
        ["node05"],
    ]
    assert federation.context("node05", 1)["neighbours"] == ["node01", "node03"]


@pytest.mark.parametrize(
    ("iteration", "topology"),
    [
        pytest.param(0, APART, id="of tasks that are next"),
        pytest.param(3, {"kind": "disconnected"}, id="of who has done all"),
        pytest.param(1, {"kind": "explicit", "edges": [["node01", "node03"]]}, id="of who is ahead"),
        pytest.param(4, FULL, id="beyond the end"),
    ],
)
def test_c6_no_task_that_may_have_begun_gets_other_neighbours(federation, iteration, topology):
    assert federation.admin1.code(HERE, "ChangeTopology", P, iteration, topology) == "ITERATION_RANGE"


def test_c6_agreement_to_a_topology_that_came_too_late_is_refused(federation):
    ask = federation.admin1.submit(HERE, "ChangeTopology", P, 1, APART)
    run(federation, "node01", 0)
    assert federation.admin2.code(*federation.agreement(ask)) == "ITERATION_RANGE"
