"""Topologies are undirected in every round, and the registry forgets what was overwritten."""

import pytest

from learning import topology
from learning.errors import ParameterError
from learning.registry import Registry

NODES = [f"n{i:02d}" for i in range(7)]


@pytest.mark.parametrize(
    "graph",
    [
        topology.disconnected(NODES),
        topology.ring(NODES),
        topology.full(NODES),
        topology.explicit(NODES, [("n00", "n03"), ("n05", "n00")]),
        topology.random_graph(NODES, 0.4, seed=3),
        topology.random_graph(NODES, 0.4, seed=3, every_round=True),
        topology.changing({0: topology.ring(NODES), 2: topology.full(NODES)}),
    ],
    ids=["disconnected", "ring", "full", "explicit", "random", "random-by-round", "changing"],
)
def test_neighbours_are_mutual_sorted_and_never_oneself(graph):
    for round_ in range(4):
        for node in NODES:
            found = graph.neighbours(node, round_)
            assert list(found) == sorted(set(found))
            assert node not in found
            assert all(node in graph.neighbours(other, round_) for other in found)


def test_the_ring_follows_the_given_order():
    graph = topology.ring(["c", "a", "b", "d"])
    assert graph.neighbours("a", 0) == ("b", "c")
    assert graph.neighbours("c", 0) == ("a", "d")


def test_small_rings():
    assert topology.ring([]).neighbours("a", 0) == ()
    assert topology.ring(["a"]).neighbours("a", 0) == ()
    assert topology.ring(["a", "b"]).neighbours("a", 0) == ("b",)


def test_full_and_disconnected():
    assert topology.full(NODES).neighbours("n03", 0) == tuple(n for n in NODES if n != "n03")
    assert topology.disconnected(NODES).neighbours("n03", 0) == ()


def test_random_graphs_follow_the_seed_and_may_change_by_round():
    def edges(graph, round_):
        return [graph.neighbours(node, round_) for node in NODES]

    fixed, moving = (topology.random_graph(NODES, 0.5, 1, every_round=flag) for flag in (False, True))
    assert edges(fixed, 0) == edges(topology.random_graph(NODES, 0.5, 1), 0) == edges(fixed, 5)
    assert edges(fixed, 0) != edges(topology.random_graph(NODES, 0.5, 2), 0)
    assert edges(moving, 0) != edges(moving, 1)


def test_random_graphs_at_the_ends_are_disconnected_and_full():
    assert topology.random_graph(NODES, 0.0, 1).neighbours("n00", 0) == ()
    assert len(topology.random_graph(NODES, 1.0, 1).neighbours("n00", 0)) == 6


def test_a_changing_topology_holds_until_the_next():
    graph = topology.changing(
        {0: topology.ring(NODES), 2: topology.full(NODES), 3: topology.disconnected(NODES)}
    )
    assert [len(graph.neighbours("n00", round_)) for round_ in range(5)] == [2, 2, 6, 0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: topology.ring(["a", "a"]),
        lambda: topology.explicit(["a", "b"], [("a", "c")]),
        lambda: topology.explicit(["a", "b"], [("a", "a")]),
        lambda: topology.random_graph(["a"], 1.5, 0),
        lambda: topology.changing({1: topology.ring(["a"])}),
        lambda: topology.changing({}),
    ],
    ids=["twice", "stranger", "self", "probability", "late", "none"],
)
def test_c10_impossible_topologies_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_a_slot_holds_only_the_latest_share(random_trees, estimators):
    offered = estimators(random_trees(4), "a")
    registry = Registry("me")
    registry.write("b", estimators(random_trees(2), "b"))
    registry.write("a", offered[:3])
    registry.write("a", offered[3:])
    assert registry.slots()["a"] == (offered[3],)
    assert list(registry.slots()) == ["a", "b"]
    assert len(registry) == 3


def test_d14_an_empty_share_empties_the_slot(random_trees, estimators):
    registry = Registry("me")
    registry.write("a", estimators(random_trees(1), "a"))
    registry.write("a", [])
    assert registry.slots() == {"a": ()}
    registry.remove("a")
    assert registry.slots() == {}


def test_nobody_writes_to_its_own_registry():
    with pytest.raises(ParameterError):
        Registry("me").write("me", [])
