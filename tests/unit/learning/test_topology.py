"""Random graphs are undirected in every iteration, and the registry forgets what was overwritten."""

import pytest

from learning.errors import ParameterError
from learning.registry import Registry
from learning.topology import RandomGraph

NODES = tuple(f"n{i:02d}" for i in range(7))


def edges(graph, iteration, active=NODES):
    return [graph.neighbours(node, iteration, active) for node in NODES]


def test_neighbours_are_mutual_sorted_and_never_oneself_or_the_absent():
    graph = RandomGraph(NODES, 0.4, seed=3)
    for active in (NODES, NODES[1:5]):
        for iteration in range(4):
            for node, found in zip(NODES, edges(graph, iteration, active), strict=True):
                assert list(found) == sorted(set(found))
                assert node not in found
                assert set(found) <= set(active)
                assert node in active or not found
                assert all(node in graph.neighbours(other, iteration, active) for other in found)


def test_random_graphs_follow_the_seed_and_change_by_iteration():
    graph = RandomGraph(NODES, 0.5, 1)
    assert edges(graph, 0) == edges(RandomGraph(NODES[::-1], 0.5, 1), 0)
    assert edges(graph, 0) != edges(RandomGraph(NODES, 0.5, 2), 0)
    assert edges(graph, 0) != edges(graph, 1)


def test_random_graphs_at_the_ends_are_disconnected_and_full():
    assert edges(RandomGraph(NODES, 0.0, 1), 0) == [()] * 7
    assert edges(RandomGraph(NODES, 1.0, 1), 0) == [tuple(n for n in NODES if n != node) for node in NODES]


@pytest.mark.parametrize(
    ("nodes", "probability"), [(("a",), 1.5), (("a",), -0.1), (("a",), float("nan")), (("a", "a"), 0.5)]
)
def test_c10_impossible_random_graphs_are_refused(nodes, probability):
    with pytest.raises(ParameterError):
        RandomGraph(nodes, probability, 0)


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


def test_nobody_writes_to_its_own_registry():
    with pytest.raises(ParameterError):
        Registry("me").write("me", [])
