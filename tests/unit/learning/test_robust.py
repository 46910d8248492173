"""The home check: what a node tries on its own rows before it holds a foreign tree."""

import numpy as np
import pytest

from learning.errors import ParameterError
from learning.fit_options import FitOptions
from learning.reach import OwnFit, Reach, own_reach
from learning.robust import HOME_CHECK, HomeCheck
from learning.rows import Rows
from protocol.trees.tree import Tree, TreeLimits

AT = 0.3
OWN = OwnFit("node01", 0, FitOptions("balanced"), TreeLimits(1))
ABSOLUTE = HomeCheck(of_own=None)


def reason(check: HomeCheck, tree: Tree, rows: Rows, threshold: float = AT) -> str | None:
    (found,) = check.reasons_to_refuse([tree], rows, threshold, OWN)
    return found


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
    assert reason(ABSOLUTE, tree, rows) is None


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
    assert reason(ABSOLUTE, tree, rows) == HOME_CHECK


def test_a_node_with_few_anomalies_only_asks_for_a_sign_of_life(rows):
    few = Rows.of(rows.X[:1002], rows.y[:1002])
    assert reason(ABSOLUTE, split_at(1.5, 0.0, 1.0), few) is None
    assert reason(ABSOLUTE, split_at(5.0, 0.0, 1.0), few) == HOME_CHECK
    faint = split_at(1.5, 0.0, 0.4)
    assert reason(ABSOLUTE, faint, few) is None
    assert reason(ABSOLUTE, faint, few, 0.5) == HOME_CHECK, "0.4 decides nothing at 0.5"


def test_a_node_of_anomalies_alone_has_no_normal_rows_to_disturb(rows):
    anomalies = Rows.of(rows.X[1000:], rows.y[1000:])
    assert reason(ABSOLUTE, split_at(0.0, 1.0, 1.0), anomalies) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"max_alarms": 1.5},
        {"min_found": -0.1},
        {"enough_anomalies": 0},
        {"of_own": 0.0},
        {"of_own": 1.5},
        {"of_own": float("nan")},
    ],
    ids=str,
)
def test_a_home_check_out_of_range_is_refused(changes):
    with pytest.raises(ParameterError):
        HomeCheck(**changes)


@pytest.fixture
def hard() -> Rows:
    """Rows whose anomalies lie among the normal ones three times in four, so that nobody tells those."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 1))
    y = np.arange(2000) >= 1800
    X[1800:1850] += 20.0
    return Rows.of(X, y)


def test_where_own_trees_find_little_so_may_foreign_ones(hard):
    quarter = split_at(10.0, 0.0, 1.0)
    assert reason(ABSOLUTE, quarter, hard) == HOME_CHECK
    reach = own_reach(hard, OWN)
    assert reach is not None
    assert 0.2 < reach.anomalous < 0.5, "a quarter is easy, the rest a guess"
    assert 0.01 < reach.normal < 0.2
    assert reason(HomeCheck(of_own=0.7), quarter, hard) is None


@pytest.mark.parametrize(
    "tree",
    [
        split_at(0.0, 1.0, 1.0),
        split_at(0.0, 0.0, 0.0),
        split_at(0.0, 0.5, 0.5000001),
        split_at(1000.0, 0.0, 1.0),
        split_at(10.0, 0.0, 0.29),
    ],
    ids=["always", "never", "grey", "nobody", "never-decides"],
)
def test_h16_what_tells_no_row_is_refused_where_own_trees_find_little(hard, tree):
    assert reason(HomeCheck(of_own=0.7), tree, hard) == HOME_CHECK


def test_where_own_trees_do_well_the_bounds_stay(rows):
    check = HomeCheck(of_own=0.7)
    assert own_reach(rows, OWN) == Reach(0.0, 1.0)
    for tree in (split_at(6.5, 0.0, 1.0), split_at(0.0, 0.02, 1.0)):
        assert reason(check, tree, rows) == HOME_CHECK


def test_own_reach_is_the_same_for_the_same_rows_and_is_on_rows_that_are_new(hard):
    assert own_reach(hard, OWN) == own_reach(hard, OWN)
    # Trees grown until pure know every row that they trained on.
    assert own_reach(hard, OWN).anomalous < 0.9


def test_without_two_anomalies_there_is_no_own_reach(rows):
    assert own_reach(Rows.of(rows.X[:1001], rows.y[:1001]), OWN) is None
    assert own_reach(Rows.of(rows.X[1000:], rows.y[1000:]), OWN) is None
