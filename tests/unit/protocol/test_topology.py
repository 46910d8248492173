"""Neighbours: equal for every party, symmetric, among the active nodes; the simulator asks here too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.errors import AttestreeError

NODES = tuple(f"node{number:02d}" for number in range(6))
EDGES = (("node01", "node00"), ("node02", "node05"), ("node00", "node03"))
RULES = [Topology(Kind.DISCONNECTED), Topology(Kind.RING), Topology(Kind.FULL), Topology.explicit(EDGES)]


@pytest.mark.parametrize(
    ("topology", "neighbours"),
    [
        (RULES[0], [(), (), (), (), (), ()]),
        (RULES[1], [(1, 5), (0, 2), (1, 3), (2, 4), (3, 5), (0, 4)]),
        (RULES[2], [tuple(other for other in range(6) if other != node) for node in range(6)]),
        (RULES[3], [(1, 3), (0,), (5,), (0,), (), (2,)]),
    ],
    ids=["disconnected", "ring", "full", "explicit"],
)
def test_neighbours_are_those_of_the_rule(topology, neighbours):
    for node, expected in zip(NODES, neighbours, strict=True):
        assert topology.neighbours(node, NODES) == tuple(NODES[other] for other in expected)


def test_a_topology_holds_until_the_next_change():
    schedule = Schedule(RULES[0], ((2, RULES[1]), (5, RULES[2])))
    for iteration, rule in enumerate([0, 0, 1, 1, 1, 2, 2, 2]):
        for node in NODES:
            expected = RULES[rule].neighbours(node, NODES)
            assert schedule.neighbours(node, iteration, NODES) == expected


def test_ring_closes_around_a_node_that_left():
    assert Topology(Kind.RING).neighbours("node00", ("node00", "node02", "node03")) == ("node02", "node03")


@pytest.mark.parametrize(
    ("active", "expected"), [(("a",), ()), (("a", "b"), ("b",)), (("a", "b", "c"), ("b", "c"))]
)
def test_small_rings_have_no_double_edges(active, expected):
    assert Topology(Kind.RING).neighbours("a", active) == expected


@given(st.sets(st.sampled_from(NODES)), st.sampled_from(RULES))
def test_being_a_neighbour_is_mutual_and_never_with_oneself_or_the_absent(active, topology):
    for node in NODES:
        others = topology.neighbours(node, active)
        assert list(others) == sorted(set(others))
        assert node not in others
        assert set(others) <= active
        assert node in active or not others
        assert all(node in topology.neighbours(other, active) for other in others)


@given(st.permutations(NODES), st.sampled_from(RULES))
def test_the_order_in_which_nodes_are_given_changes_nothing(nodes, topology):
    for node in NODES:
        assert topology.neighbours(node, nodes) == topology.neighbours(node, NODES)


def test_edges_have_one_spelling():
    turned = Topology.from_dict({"kind": "explicit", "edges": [[b, a] for a, b in reversed(EDGES)]})
    assert turned == RULES[3]
    assert Topology.from_dict(turned.to_dict()) == turned


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (None, "TOPOLOGY_KIND"),
        ([], "TOPOLOGY_KIND"),
        ({}, "TOPOLOGY_KIND"),
        ({"kind": 1}, "TOPOLOGY_KIND"),
        ({"kind": "star"}, "TOPOLOGY_KIND"),
        ({"kind": "ring", "edges": []}, "TOPOLOGY_KIND"),
        ({"kind": "explicit"}, "TOPOLOGY_KIND"),
        ({"kind": "explicit", "edges": {}}, "TOPOLOGY_EDGE"),
        ({"kind": "explicit", "edges": ["ab"]}, "TOPOLOGY_EDGE"),
        ({"kind": "explicit", "edges": [["a"]]}, "TOPOLOGY_EDGE"),
        ({"kind": "explicit", "edges": [["a", "a"]]}, "TOPOLOGY_EDGE"),
        ({"kind": "explicit", "edges": [["a", "b"], ["b", "a"]]}, "TOPOLOGY_EDGE"),
        ({"kind": "explicit", "edges": [["a", 1]]}, "NAME_TYPE"),
        ({"kind": "explicit", "edges": [["a", "B"]]}, "NAME_SYNTAX"),
    ],
)
def test_topology_that_is_none_is_refused(record, code):
    with pytest.raises(AttestreeError) as refusal:
        Topology.from_dict(record)
    assert refusal.value.code == code


def test_too_many_edges_are_refused():
    names = [f"n{number}" for number in range(300)]
    with pytest.raises(AttestreeError, match="TOPOLOGY_EDGE"):
        Topology.explicit([(a, b) for a in names for b in names if a < b])


@pytest.mark.parametrize("starts", [(0,), (2, 2), (3, 2)])
def test_changes_out_of_order_are_refused(starts):
    with pytest.raises(AttestreeError, match="TOPOLOGY_CHANGE"):
        Schedule(RULES[0], tuple((start, RULES[1]) for start in starts))


def test_a_change_at_the_same_iteration_replaces_the_earlier():
    schedule = Schedule(RULES[0], ((2, RULES[1]),)).changed(2, RULES[2]).changed(1, RULES[1])
    assert [schedule.at(iteration) for iteration in range(4)] == [RULES[0], RULES[1], RULES[2], RULES[2]]


@given(st.sampled_from(RULES), st.sets(st.sampled_from(NODES)))
def test_links_are_the_pairs_of_neighbours(topology, active):
    pairs = {(node, other) for node in active for other in topology.neighbours(node, active) if node < other}
    assert topology.links(active) == pairs
