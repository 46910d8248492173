"""A node that runs ahead keeps nobody from coming back or from other neighbours; no past is rewritten."""

import pytest
from support.memory.federation import Federation, prepared
from support.memory.scenario import changed

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
