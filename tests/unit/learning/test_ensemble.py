"""ADD, GET_TOP and CROP, and the rankings behind them."""

import pytest

from learning.ensemble import Ensemble
from learning.errors import EnsembleError, ParameterError
from learning.kernel import KernelOptions
from learning.ranking import RANKINGS, KernelRanking, NewestRanking, RankingContext, SizeRanking, make
from protocol.identifiers import EstimatorId

FIRST = SizeRanking()


def context(purpose="share", seed=1, **changes) -> RankingContext:
    return RankingContext("node00", 0, purpose, seed, **changes)


def test_add_is_the_union_by_id_in_id_order(random_trees, estimators):
    mine, theirs = estimators(random_trees(3), "b"), estimators(random_trees(2, seed=1), "a")
    ensemble = Ensemble.of(reversed(mine)).add(theirs)
    assert [str(known) for known in ensemble.ids] == ["a/0000", "a/0001", "b/0000", "b/0001", "b/0002"]


def test_the_same_estimator_from_two_neighbours_is_added_once(random_trees, estimators):
    offered = estimators(random_trees(3))
    assert len(Ensemble.of(offered).add(offered).add(offered[:1])) == 3


def test_d15_the_same_id_with_other_content_is_refused(random_trees, estimators):
    honest, forged = estimators(random_trees(1)), estimators(random_trees(1, seed=9))
    with pytest.raises(EnsembleError) as refusal:
        Ensemble.of(honest).add(forged)
    assert refusal.value.code == "ENSEMBLE_CONFLICT"
    assert str(honest[0].tree.digest) in refusal.value.cause


def test_other_ids_with_the_same_content_are_both_kept_the_later_ranked_behind(random_trees, estimators):
    trees = random_trees(3)
    ensemble = Ensemble.of(estimators(trees, "a") + estimators(trees, "b"))
    assert len(ensemble) == 6
    top = ensemble.get_top(5, KernelRanking())
    assert {e.id.creator for e in top[:3]} == {"a"}


@pytest.mark.parametrize("name", RANKINGS)
def test_get_top_returns_the_smaller_of_k_and_n(random_trees, estimators, make_rows, name):
    ensemble = Ensemble.of(estimators(random_trees(5)))
    ranking = make(name, context(rows=make_rows(d=4)))
    assert [len(ensemble.get_top(k, ranking)) for k in (0, 1, 4, 5, 9)] == [0, 1, 4, 5, 5]
    assert Ensemble().get_top(3, ranking) == ()
    assert ensemble.get_top(7, ranking) == ensemble.estimators


@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_are_deterministic_and_a_longer_top_continues_a_shorter_one(
    random_trees, estimators, make_rows, name
):
    offered = estimators(random_trees(12))
    ranking = make(name, context(rows=make_rows(d=4)))
    again = make(name, context(rows=make_rows(d=4)))
    assert ranking.top(offered, 12) == again.top(offered, 12)
    assert ranking.top(offered, 5) == ranking.top(offered, 12)[:5]
    assert sorted(ranking.top(offered, 12)) == list(range(12))


def test_crop_keeps_the_top_in_id_order(random_trees, estimators):
    ensemble = Ensemble.of(estimators(random_trees(8)))
    cropped = ensemble.crop(3, FIRST)
    assert set(cropped) == set(ensemble.get_top(3, FIRST))
    assert list(cropped.ids) == sorted(cropped.ids)
    assert ensemble.crop(8, FIRST) == ensemble


def test_d13_single_leaves_rank_last_and_stay_while_there_is_room(random_trees, estimators, leaf):
    ensemble = Ensemble.of(estimators([leaf(0.0), *random_trees(2), leaf(1.0)]))
    assert len(ensemble.crop(4, KernelRanking())) == 4
    assert [e.id.counter for e in ensemble.get_top(3, KernelRanking())][-1] == 0
    assert [e.id.counter for e in ensemble.crop(2, KernelRanking())] == [1, 2]


def test_forty_equal_single_leaves_rank_by_id(estimators, leaf):
    ensemble = Ensemble.of(estimators([leaf(0.0)] * 40))
    assert [e.id.counter for e in ensemble.get_top(10, KernelRanking())] == list(range(10))


def test_size_and_newest_order_by_their_names(random_trees, estimators):
    offered = estimators(random_trees(10), first=5)
    sizes = [offered[i].tree.n_internal for i in SizeRanking().top(offered, 10)]
    assert sizes == sorted(sizes, reverse=True)
    assert NewestRanking().top(offered, 3) == [9, 8, 7]


def test_random_depends_on_seed_node_iteration_and_purpose(random_trees, estimators):
    offered = estimators(random_trees(30))
    orders = [
        make("random", at).top(offered, 30)
        for at in (context(), context(seed=2), context("crop"), RankingContext("node01", 0, "share", 1))
    ]
    assert len({tuple(order) for order in orders}) == 4


def test_supervised_prefers_trees_that_are_right_about_both_classes(make_rows, estimators, leaf):
    rows = make_rows(d=4)
    perfect = estimators([leaf(0.0), leaf(0.5), leaf(1.0)])
    order = make("supervised", context(rows=rows)).top(perfect, 3)
    assert order == [1, 0, 2], "a tree that always says normal is as bad as one that always says anomalous"


def test_supervised_without_rows_and_unknown_names_are_refused():
    with pytest.raises(ParameterError):
        make("supervised", context())
    with pytest.raises(ParameterError, match="kernel, size"):
        make("best", context())


def test_kernel_options_reach_the_ranking(random_trees, estimators):
    offered = estimators(random_trees(20, largest=15))
    raw = make("kernel", context()).top(offered, 20)
    normalised = make("kernel", context(kernel=KernelOptions(normalise=True))).top(offered, 20)
    assert raw != normalised


def test_origins_and_membership(random_trees, estimators):
    ensemble = Ensemble.of(estimators(random_trees(2), "b") + estimators(random_trees(3), "a"))
    assert ensemble.origins() == {"a": 3, "b": 2}
    assert EstimatorId("a", 2) in ensemble
    assert EstimatorId("a", 3) not in ensemble


def test_an_ensemble_is_immutable(random_trees, estimators):
    ensemble = Ensemble.of(estimators(random_trees(2)))
    with pytest.raises(AttributeError):
        ensemble.estimators = ()
