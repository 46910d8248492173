"""The home check: what a node tries on its own rows before it holds a foreign tree."""

import numpy as np
import pytest

from learning.errors import ParameterError
from learning.robust import HOME_CHECK, HomeCheck
from learning.rows import Rows
from protocol.trees.tree import Tree

AT = 0.3


def split_at(threshold: float, left: float, right: float) -> Tree:
    return Tree.from_arrays([0, -1, -1], [threshold, 0, 0], [1, -1, -1], [2, -1, -1], [0, left, right])


@pytest.fixture
def rows() -> Rows:
    """A thousand normal rows below 0 and ten anomalies from 1 to 10."""
    X = np.concatenate([np.linspace(-10, -1, 1000), np.arange(1, 11)])[:, None]
    return Rows.of(X, np.arange(1010) >= 1000)


@pytest.mark.parametrize(
    "tree", [split_at(0.0, 0.0, 1.0), split_at(0.0, 0.01, 0.5), split_at(5.5, 0.0, 1.0)], ids=repr
)
def test_home_check_takes_a_tree_that_finds_half_quietly(rows, tree):
    assert HomeCheck().reason_to_refuse(tree, rows, AT) is None


@pytest.mark.parametrize(
    "tree",
    [
        split_at(0.0, 1.0, 1.0),
        split_at(-1.5, 0.0, 1.0),
        split_at(0.0, 0.0, 0.0),
        split_at(6.5, 0.0, 1.0),
        split_at(0.0, 0.5, 0.5000001),
        split_at(0.0, 0.02, 1.0),
        split_at(0.0, 0.0, 0.49),
    ],
    ids=["always", "noisy", "never", "four-of-ten", "grey", "murmuring", "half-hearted"],
)
def test_h16_a_hostile_tree_is_refused_with_one_word_for_every_rule(rows, tree):
    assert HomeCheck().reason_to_refuse(tree, rows, AT) == HOME_CHECK


def test_a_node_with_few_anomalies_only_asks_for_a_sign_of_life(rows):
    few = Rows.of(rows.X[:1002], rows.y[:1002])
    assert HomeCheck().reason_to_refuse(split_at(1.5, 0.0, 1.0), few, AT) is None
    assert HomeCheck().reason_to_refuse(split_at(5.0, 0.0, 1.0), few, AT) == HOME_CHECK
    faint = split_at(1.5, 0.0, 0.4)
    assert HomeCheck().reason_to_refuse(faint, few, AT) is None
    assert HomeCheck().reason_to_refuse(faint, few, 0.5) == HOME_CHECK, "0.4 decides nothing at 0.5"


def test_a_node_of_anomalies_alone_has_no_normal_rows_to_disturb(rows):
    anomalies = Rows.of(rows.X[1000:], rows.y[1000:])
    assert HomeCheck().reason_to_refuse(split_at(0.0, 1.0, 1.0), anomalies, AT) is None


@pytest.mark.parametrize(
    "changes", [{"max_alarms": 1.5}, {"min_found": -0.1}, {"enough_anomalies": 0}], ids=str
)
def test_a_home_check_out_of_range_is_refused(changes):
    with pytest.raises(ParameterError):
        HomeCheck(**changes)
