"""What the federation's benchmark calls growth: that of the nodes' work, not of the executors' start."""

import pytest

from bench.federation import ITERATIONS, LARGEST_GROWTH, Measured, exponent

SIZES = (4, 8, 16, 32)
START = 20.0
"""Seconds that executors take to start and end, however many nodes there are."""


def measured(nodes: int, growth: float) -> Measured:
    """A run in which one iteration of a node takes a second, and more by a power of the nodes."""
    work = nodes * ITERATIONS * (nodes / SIZES[0]) ** growth
    parts = {"commits": work / 2, "learning": work / 2, "done": 0.0, "executor": START}
    return Measured(nodes, work + START, parts, 1, 1)


@pytest.mark.parametrize("growth", [0.0, 0.05, 0.3, 1.0])
def test_the_exponent_is_that_of_the_nodes_work(growth: float) -> None:
    assert exponent([measured(nodes, growth) for nodes in SIZES]) == pytest.approx(growth)


def test_a_start_that_is_the_same_for_all_sizes_does_not_hide_growth() -> None:
    """Divided among the tasks of many nodes, it would take off more than nodes add."""
    runs = [measured(nodes, 0.3) for nodes in SIZES]
    assert exponent(runs) > LARGEST_GROWTH
    assert [run.node_seconds for run in runs] == sorted(run.node_seconds for run in runs)
    whole = [run.seconds / run.tasks for run in runs]
    assert whole[0] > whole[-1]
