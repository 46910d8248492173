"""The ledger takes new trees in the format that the process names, and in no other."""

from dataclasses import replace

import pytest
from support.memory.federation import Federation
from support.memory.scenario import SPECIFICATION

from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import FORMAT_LIMITS, Tree

STUMPS = {
    number: Tree.from_arrays(
        [3, -1, -1], [0.1, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1.0],
        limits=replace(FORMAT_LIMITS, format=number),
    )
    for number in (1, 2)
}  # fmt: skip


def offered(number: int) -> tuple[Estimator, ...]:
    return (Estimator(EstimatorId("node01", 0), STUMPS[number]),)


@pytest.mark.parametrize("number", [1, 2])
def test_d19_a_tree_in_another_format_than_the_process_has_is_refused(number: int) -> None:
    node = Federation(SPECIFICATION | {"estimator_format": number}).players["node01"]
    node.open(0)
    assert node.share_code(offered(3 - number)) == "TREE_VERSION"
    assert node.share(offered(number))["created"] == ["node01/0000"]


def test_a_process_that_names_no_format_has_the_second() -> None:
    unsaid = {name: value for name, value in SPECIFICATION.items() if name != "estimator_format"}
    node = Federation(unsaid).players["node01"]
    node.open(0)
    assert node.share_code(offered(1)) == "TREE_VERSION"
    assert node.share(offered(2))["created"] == ["node01/0000"]
