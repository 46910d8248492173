"""The defence against hostile members: quota, vote cap and home check."""

import numpy as np
import pytest

from learning.errors import ParameterError
from learning.ranking import SizeRanking
from learning.robust import HomeCheck, QuotaRanking, per_origin, vote_weights
from learning.rows import Rows
from protocol.trees.tree import Tree


def crowd(estimators, make_tree, sizes: dict[str, list[int]]):
    rng = np.random.default_rng(0)
    offered = []
    for creator, internals in sorted(sizes.items()):
        offered += estimators([make_tree(rng, n) for n in internals], creator)
    return offered


def creators(offered, order):
    return [offered[i].id.creator for i in order]


def test_d23_one_origin_with_the_biggest_trees_takes_no_more_than_its_quota(estimators, make_tree):
    offered = crowd(
        estimators, make_tree, {"hostile": [60] * 20, "b": [9] * 10, "c": [8] * 10, "d": [7] * 10}
    )
    assert set(creators(offered, SizeRanking().top(offered, 20))) == {"hostile"}
    kept = creators(offered, QuotaRanking(SizeRanking(), 2.0).top(offered, 20))
    assert [kept.count(name) for name in ("hostile", "b", "c", "d")] == [10, 10, 0, 0]
    kept = creators(offered, QuotaRanking(SizeRanking(), 1.0).top(offered, 20))
    assert [kept.count(name) for name in ("hostile", "b", "c", "d")] == [5, 5, 5, 5]


def test_the_quota_counts_only_origins_that_offer_a_real_tree(estimators, make_tree, leaf):
    offered = crowd(estimators, make_tree, {"a": [5] * 4, "b": [4] * 4})
    assert per_origin(offered, 4, 1.0) == 2
    puppets = [e for name in ("c", "d", "e") for e in estimators([leaf(0.0)], name)]
    assert per_origin(offered + puppets, 4, 1.0) == 2
    assert per_origin(puppets, 4, 1.0) == 4


def test_places_left_over_go_to_those_held_back_in_order(estimators, make_tree):
    offered = crowd(estimators, make_tree, {"a": [9, 8, 7, 6], "b": [1]})
    order = QuotaRanking(SizeRanking(), 1.0).top(offered, 4)
    assert [offered[i].tree.n_internal for i in order] == [9, 8, 1, 7]


def test_a_quota_ranking_returns_min_k_n_without_repeats(estimators, make_tree):
    offered = crowd(estimators, make_tree, {"a": [3] * 7, "b": [2] * 2})
    for k in (0, 1, 5, 9, 20):
        order = QuotaRanking(SizeRanking(), 1.5).top(offered, k)
        assert len(order) == len(set(order)) == min(k, 9)


@pytest.mark.parametrize("c", [0.5, float("nan"), float("inf")])
def test_a_quota_that_cannot_fill_the_ensemble_is_refused(c):
    with pytest.raises(ParameterError):
        QuotaRanking(SizeRanking(), c)


def shares(offered, cap):
    weights = vote_weights(offered, cap)
    total = {}
    for estimator, weight in zip(offered, weights, strict=True):
        total[estimator.id.creator] = total.get(estimator.id.creator, 0.0) + weight / weights.sum()
    return total


def test_d23_an_origin_with_most_trees_has_the_votes_of_its_cap(estimators, make_tree):
    sizes = {"hostile": [5] * 30} | {f"n{i:02d}": [3] * 3 for i in range(10)}
    offered = crowd(estimators, make_tree, sizes)
    assert shares(offered, None)["hostile"] == pytest.approx(0.5)
    voted = shares(offered, 0.1)
    assert voted["hostile"] == pytest.approx(6 / 36)
    assert voted["n00"] == pytest.approx(3 / 36)


def test_origins_at_the_cap_weigh_alike_and_small_ones_stay_small(estimators, make_tree):
    voted = shares(crowd(estimators, make_tree, {"a": [1] * 30, "b": [1] * 18, "c": [1] * 2}), 0.1)
    assert voted == pytest.approx({"a": 5 / 12, "b": 5 / 12, "c": 2 / 12})


def test_without_a_cap_or_below_it_every_tree_weighs_one(estimators, make_tree):
    offered = crowd(estimators, make_tree, {f"n{i}": [1] for i in range(10)})
    assert vote_weights(offered, None).tolist() == [1.0] * 10
    assert vote_weights(offered, 0.15) == pytest.approx([1.0] * 10)
    assert vote_weights([], 0.15).tolist() == []


@pytest.mark.parametrize("cap", [0.0, 1.5, -1.0, float("nan")])
def test_a_cap_out_of_range_is_refused(estimators, make_tree, cap):
    with pytest.raises(ParameterError):
        vote_weights(crowd(estimators, make_tree, {"a": [1]}), cap)


def split_at(threshold: float, left: float, right: float) -> Tree:
    return Tree.from_arrays([0, -1, -1], [threshold, 0, 0], [1, -1, -1], [2, -1, -1], [0, left, right])


@pytest.fixture
def rows() -> Rows:
    """A thousand normal rows below 0 and ten anomalies from 1 to 10."""
    X = np.concatenate([np.linspace(-10, -1, 1000), np.arange(1, 11)])[:, None]
    return Rows.of(X, np.arange(1010) >= 1000)


def test_home_check_takes_a_tree_that_finds_enough_quietly(rows):
    assert HomeCheck().reason_to_refuse(split_at(0.0, 0.0, 1.0), rows) is None
    assert HomeCheck().reason_to_refuse(split_at(7.5, 0.0, 1.0), rows) is None, "three of ten are enough"


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (split_at(0.0, 1.0, 1.0), "HOME_CHECK_ALARMS"),
        (split_at(-1.5, 0.0, 1.0), "HOME_CHECK_ALARMS"),
        (split_at(0.0, 0.0, 0.0), "HOME_CHECK_MISSES"),
        (split_at(8.5, 0.0, 1.0), "HOME_CHECK_MISSES"),
    ],
    ids=["always", "noisy", "never", "two-of-ten"],
)
def test_d23_home_check_refuses_by_rule_and_names_no_figure(rows, tree, reason):
    assert HomeCheck().reason_to_refuse(tree, rows) == reason


def test_a_node_with_few_anomalies_only_asks_for_a_sign_of_life(rows):
    few = Rows.of(rows.X[:1002], rows.y[:1002])
    assert HomeCheck().reason_to_refuse(split_at(1.5, 0.0, 1.0), few) is None
    assert HomeCheck().reason_to_refuse(split_at(5.0, 0.0, 1.0), few) == "HOME_CHECK_SILENT"


def test_a_node_of_anomalies_alone_has_no_normal_rows_to_disturb(rows):
    anomalies = Rows.of(rows.X[1000:], rows.y[1000:])
    assert HomeCheck().reason_to_refuse(split_at(0.0, 1.0, 1.0), anomalies) is None
