"""What it takes to check a change of a running process: every peer does it for whoever asks."""

import copy
from collections import Counter

import pytest
from support.memory.scenario import SPECIFICATION

from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.onset import check_onset
from protocol.agreement.plan import Plan
from protocol.agreement.process import Specification
from protocol.agreement.progress import Progress
from protocol.agreement.topology import Neighbourhoods, Topology
from protocol.errors import StateError

NODES = [f"node{number:04}" for number in range(1_000)]
FULL, RING = {"kind": "full"}, {"kind": "ring"}
AHEAD = NODES[-1]


def running(nodes=NODES, iterations=1_000, *, rewired=True, synchronous=False, changes=(), done=None):
    """A process of many nodes and topologies, in which one node has begun the last iteration."""
    record = copy.deepcopy(SPECIFICATION)
    record["steps"][0] |= {"iterations": iterations, "synchronous": synchronous}
    record |= {"organisations": ["Org1MSP"], "nodes": dict.fromkeys(nodes, "Org1MSP"), "topology": FULL}
    record["topology_changes"] = [
        {"iteration": at, "topology": (FULL, RING)[at % 2]}
        for at in range(1, min(iterations, 1_000) if rewired else 1)
    ]
    plan = Plan.of(Specification.from_dict(record), changes)
    return Progress(plan, {nodes[-1]: iterations - 2} if done is None else done)


@pytest.fixture
def lookups(monkeypatch):
    """Count how often neighbours, active nodes and topologies are looked up."""
    found = Counter()
    places = ((Topology, "neighbours"), (Neighbourhoods, "same"), (Plan, "active"), (Plan, "topology"))
    for kind, name in places:
        monkeypatch.setattr(kind, name, counted(getattr(kind, name), name, found))
    return found


def counted(call, name, found):
    def wrapped(*arguments):
        found[name] += 1
        return call(*arguments)

    return wrapped


def topology(iteration, subject):
    return Change(ChangeKind.TOPOLOGY, iteration, subject)


def join(iteration, node):
    return Change(ChangeKind.JOIN, iteration, {"node": node, "organisation": "Org1MSP"})


def leave(iteration, node):
    return Change(ChangeKind.LEAVE, iteration, {"node": node, "reason": ""})


def test_h5_a_topology_that_changes_nothing_looks_up_nobodys_neighbours(lookups):
    check_onset(topology(0, FULL), running())
    assert lookups == {"topology": 2}


def test_h5_a_topology_is_compared_with_the_one_that_it_replaces_and_no_later_one(lookups):
    progress = running(NODES[:3])
    check_onset(topology(0, RING), progress)
    assert lookups == {"topology": 2, "active": 1, "same": 3}


def test_h5_only_those_are_looked_up_that_have_begun(lookups):
    """Between two topologies many leave, and one node is ahead of all these turns."""
    nodes = NODES[:300]
    changes = [leave(at, node) for at, node in enumerate(nodes[3:-1], start=1)]
    progress = running(nodes, rewired=False, changes=changes)
    ahead = {"kind": "explicit", "edges": [[node, nodes[-1]] for node in nodes[:-1]]}
    check_onset(topology(1, ahead), progress)
    assert lookups["same"] == lookups["active"] == len(changes)
    assert lookups["neighbours"] == 0


def test_h5_who_comes_back_is_looked_up_once_for_each_turn(lookups):
    nodes = NODES[:10]
    progress = running(nodes, 100, synchronous=True, changes=[leave(0, nodes[0])], done={nodes[-1]: 0})
    with pytest.raises(StateError, match="may have begun iteration 1"):
        check_onset(join(1, nodes[0]), progress)
    assert lookups["neighbours"] <= 2


def test_h5_what_would_take_too_long_is_refused_before_it_is_looked_up(lookups):
    leaves = [leave(1_000 + at, NODES[at]) for at in range(10)]
    topologies = [topology(at, FULL) for at in range(1, 60)]
    gone = leave(0, NODES[0])
    crowded, rewired = (
        running(iterations=1_100, changes=[gone, *leaves[1:]]),
        running(NODES[:3], 100, changes=[gone, *topologies]),
    )
    for progress in (crowded, rewired):
        with pytest.raises(StateError, match="too many") as refused:
            check_onset(join(0, NODES[0]), progress)
        assert refused.value.code == "ITERATION_RANGE"
    assert lookups["neighbours"] == lookups["active"] == 0


@pytest.mark.parametrize("iteration", [1, 4])
def test_c6_nobody_leaves_from_what_it_has_completed_on_or_after_the_end(iteration):
    progress = running(NODES[:2], 4, done={NODES[0]: 1})
    with pytest.raises(StateError, match="ITERATION_RANGE"):
        check_onset(leave(iteration, NODES[0]), progress)
    check_onset(leave(2, NODES[0]), progress)
