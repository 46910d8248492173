"""The ledger takes new estimators of the kind and in the format that the process names, and no others."""

import struct
from dataclasses import replace

import pytest
from support.memory.federation import Federation
from support.memory.scenario import SPECIFICATION

from protocol.identifiers import EstimatorId
from protocol.trees.boosted import Boosted
from protocol.trees.encoding_boosted import HEADER
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


BOOSTED_PROCESS = {name: value for name, value in SPECIFICATION.items() if name != "estimator_format"} | {
    "estimator_kind": "boosted"
}
BOOSTED = Boosted.from_arrays(
    -1.0,
    [
        {
            "feature": [3, -1, -1],
            "threshold": [0.1, 0, 0],
            "left": [1, -1, -1],
            "right": [2, -1, -1],
            "value": [0, -2.0, 3.0],
        }
    ]
    * 2,
)


def test_a_boosted_process_takes_boosted_estimators_by_the_same_rules() -> None:
    federation = Federation(BOOSTED_PROCESS)
    node = federation.players["node01"]
    node.open(0)
    estimator = Estimator(EstimatorId("node01", 0), BOOSTED)
    assert node.share((estimator,))["created"] == ["node01/0000"]


@pytest.mark.parametrize("number", [1, 2])
def test_d19_a_tree_is_refused_where_the_process_has_boosted_estimators(number: int) -> None:
    node = Federation(BOOSTED_PROCESS).players["node01"]
    node.open(0)
    assert node.share_code(offered(number)) == "TREE_VERSION"


def test_d19_a_boosted_estimator_is_refused_where_the_process_has_trees() -> None:
    node = Federation(SPECIFICATION).players["node01"]
    node.open(0)
    assert node.share_code((Estimator(EstimatorId("node01", 0), BOOSTED),)) == "TREE_VERSION"


@pytest.mark.parametrize(
    ("place", "raw", "code"),
    [
        (len(BOOSTED.to_bytes()) - 8, struct.pack("<d", float("nan")), "BOOSTED_LEAF"),
        (len(BOOSTED.to_bytes()) - 8, struct.pack("<d", 1e308), "BOOSTED_LEAF"),
        (HEADER.size - 8, struct.pack("<d", 1e308), "BOOSTED_BASE"),
        (2, struct.pack("<H", 10_000), "BOOSTED_TREES"),
    ],
)
def test_d_a_malformed_boosted_estimator_is_refused_by_the_ledger(place: int, raw: bytes, code: str) -> None:
    node = Federation(BOOSTED_PROCESS).players["node01"]
    node.open(0)
    forged = bytearray(BOOSTED.to_bytes())
    forged[place : place + len(raw)] = raw
    assert node.share_code((Estimator(EstimatorId("node01", 0), Forged(bytes(forged))),)) == code


class Forged(Boosted):
    """Bytes that pass for an estimator until somebody reads them."""

    def __init__(self, raw: bytes) -> None:
        object.__setattr__(self, "_raw", raw)
        object.__setattr__(self, "_digest", None)
