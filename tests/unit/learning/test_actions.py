"""FIT, SHARE and GET on a node's state, as the container will call them."""

from dataclasses import replace

import numpy as np
import pytest

from learning import actions
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.kernel import KernelOptions
from learning.parameters import Defaults, Parameters
from learning.robust import HomeCheck
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator

SMALL = Parameters.paper(n_new=4, n_max=6, n_share=3)
NEW = NodeState("node00", 5)


@pytest.fixture
def rows(make_rows):
    return make_rows(d=4)


def test_fit_adds_n_new_counts_on_and_crops(rows):
    once = actions.fit(NEW, rows, SMALL)
    assert [str(known) for known in once.ensemble.ids] == [f"node00/{i:04d}" for i in range(4)]
    assert once.counter == 4
    twice = actions.fit(replace(once, iteration=1), rows, SMALL)
    assert twice.counter == 8
    assert len(twice.ensemble) == 6


def test_fit_takes_cached_trees_only_under_the_right_ids(rows, random_trees, estimators):
    fitted = estimators(random_trees(4))
    assert actions.fit(NEW, rows, SMALL, fitted).ensemble == Ensemble.of(fitted)
    for wrong in (fitted[:3], estimators(random_trees(4), first=1), estimators(random_trees(4), "node01")):
        with pytest.raises(ParameterError):
            actions.fit(NEW, rows, SMALL, wrong)


def test_share_offers_the_top_and_changes_nothing(rows):
    state = actions.fit(NEW, rows, SMALL)
    offered = actions.share(state, SMALL, rows)
    assert len(offered) == 3
    assert set(offered) <= set(state.ensemble)
    assert actions.share(NEW, SMALL, rows) == ()


def test_get_adds_all_slots_once_crops_and_ends_the_iteration(rows, random_trees, estimators):
    state = actions.fit(NEW, rows, SMALL)
    foreign = estimators(random_trees(3), "node01")
    after = actions.get(state, {"node01": foreign, "node02": foreign[:2]}, SMALL, rows)
    assert after.iteration == 1
    assert len(after.ensemble) == 6
    assert after.refusals == ()


def test_d14_get_with_nothing_offered_keeps_the_ensemble(rows):
    state = actions.fit(NEW, rows, SMALL)
    assert actions.get(state, {}, SMALL, rows).ensemble == state.ensemble
    assert actions.get(state, {"node01": ()}, SMALL, rows).ensemble == state.ensemble


def refused(state, slots, parameters, rows):
    after = actions.get(state, slots, parameters, rows)
    return {str(refusal.id): refusal.reason for refusal in after.refusals}, after


def test_d15_a_tree_under_my_name_that_i_did_not_train_is_refused(rows, random_trees):
    state = actions.fit(NEW, rows, SMALL)
    forged = [Estimator(EstimatorId("node00", counter), random_trees(1, seed=9)[0]) for counter in (1, 77)]
    reasons, after = refused(state, {"node01": forged}, SMALL, rows)
    assert reasons == {"node00/0001": "ENSEMBLE_CONFLICT", "node00/0077": "FORGED_CREATOR"}
    assert after.ensemble == state.ensemble


def test_d15_an_altered_copy_of_a_cropped_own_tree_is_refused_and_the_true_one_taken(rows, random_trees):
    state = actions.fit(NEW, rows, SMALL)
    first, second = state.ensemble.estimators[:2]
    lost = replace(state, ensemble=Ensemble(state.ensemble.estimators[2:]))
    altered = Estimator(second.id, random_trees(1, seed=9)[0])
    reasons, after = refused(lost, {"node01": (first, altered)}, SMALL, rows)
    assert reasons == {str(second.id): "FORGED_CREATOR"}
    assert first.id in after.ensemble
    assert second.id not in after.ensemble


def test_two_senders_contradicting_each_other_are_both_refused(rows, random_trees):
    trees = random_trees(2)
    slots = {f"node0{i + 1}": (Estimator(EstimatorId("node03", 0), tree),) for i, tree in enumerate(trees)}
    reasons, after = refused(NEW, slots, SMALL, rows)
    assert reasons == {"node03/0000": "ENSEMBLE_CONFLICT"}
    assert len(after.ensemble) == 0


def test_d7_d11_d12_trees_beyond_the_limits_of_the_process_are_refused(
    rows, make_tree, random_trees, estimators
):

    rng = np.random.default_rng(0)
    wide, deep = make_tree(rng, 30), make_tree(rng, 9, chain=True)
    stranger = make_tree(rng, 9, n_features=40)
    tight = replace(SMALL, max_internal=20, max_depth=8)
    offered = estimators([wide, deep, stranger, *random_trees(1, largest=3)], "node01")
    reasons, after = refused(NEW, {"node01": offered}, tight, rows)
    assert list(reasons.values()) == ["TREE_LIMITS", "TREE_LIMITS", "TREE_FEATURE_RANGE"]
    assert [str(known) for known in after.ensemble.ids] == ["node01/0003"]


def test_a_tree_that_would_break_the_ranking_is_refused_not_fatal(rows, random_trees, estimators):
    extreme = replace(SMALL, kernel=KernelOptions(mu=(0.0,) * 4, sigma=(1e-200,) * 4))
    reasons, _ = refused(NEW, {"node01": estimators(random_trees(1), "node01")}, extreme, rows)
    assert set(reasons.values()) == {"KERNEL_OVERFLOW"}


def test_home_check_records_refusals_and_spares_own_trees(make_rows, random_trees, estimators, leaf):
    rows = make_rows(n=600, d=4)
    checked = replace(SMALL, home_check=HomeCheck())
    state = actions.fit(NEW, rows, checked)
    silent = estimators([leaf(0.0)], "node01")
    reasons, after = refused(state, {"node01": silent}, checked, rows)
    assert reasons == {"node01/0000": "HOME_CHECK"}
    assert after.ensemble == state.ensemble
    empty = replace(state, ensemble=Ensemble())
    own = {"node01": state.ensemble.estimators}
    assert actions.get(empty, own, checked, rows).ensemble == state.ensemble


def test_predictor_applies_the_vote_cap(leaf, estimators):
    ensemble = Ensemble.of(estimators([leaf(0.0)] * 9, "hostile") + estimators([leaf(1.0)], "node01"))
    assert actions.predictor("node01", ensemble, Defaults).scores([[0.0]]).tolist() == [0.75]
    assert actions.predictor("node01", ensemble, Parameters.paper()).scores([[0.0]]) == pytest.approx(0.1)


def test_the_shipped_defaults_and_the_papers_parameters():
    assert (Defaults.n_new, Defaults.n_max, Defaults.n_share) == (10, 50, 10)
    assert Defaults.fit.kind == "balanced"
    assert Defaults.threshold == 0.3
    assert Defaults.quota is not None
    paper = Parameters.paper()
    assert (paper.fit.kind, paper.threshold, paper.ranking) == ("plain", 0.5, "kernel")
    assert (paper.quota, paper.vote_cap, paper.home_check) == (None, None, None)
    assert paper.kernel == KernelOptions()
    assert Parameters.paper(n_max=9, n_share=2).n_max == 9


@pytest.mark.parametrize(
    "changes",
    [
        {"n_share": 51},
        {"n_new": -1},
        {"n_max": 0, "n_share": 0},
        {"n_max": 10_001},
        {"n_new": 2.5},
        {"n_new": True},
        {"ranking": "best"},
        {"vote": "loudest"},
        {"threshold": 1.0},
        {"threshold": float("nan")},
        {"quota": 0.5},
        {"vote_cap": 0.0},
        {"vote": "majority"},
        {"vote": "majority", "threshold": 0.49},
    ],
    ids=str,
)
def test_c10_parameters_out_of_range_are_refused(changes):
    with pytest.raises(ParameterError):
        Parameters(**changes)


def test_counters_go_on_after_those_of_an_initial_model(rows, random_trees, estimators):
    model = Ensemble.of([*estimators(random_trees(2), first=3), *estimators(random_trees(2), "node01")])
    begun = NodeState("node00", 5, ensemble=model, first=5)
    state = actions.fit(begun, rows, replace(SMALL, n_max=20))
    assert (begun.counter, state.counter) == (5, 9)
    own = [known.counter for known in state.ensemble.ids if known.creator == "node00"]
    assert own == [3, 4, 5, 6, 7, 8]
    assert all(map(state.has_created, [known for known in state.ensemble if known.id.counter >= 5]))
    assert not any(map(state.has_created, model))


def test_d15_with_an_initial_model_too_only_its_trees_come_back_under_my_name(rows, random_trees):
    """The ledger vouches for the model's trees, wherever they come from; later counters are mine alone."""
    state = actions.fit(NodeState("node00", 5, first=5), rows, SMALL)
    tree = random_trees(1, seed=9)[0]
    offered = [Estimator(EstimatorId("node00", counter), tree) for counter in (4, 5, 77)]
    reasons, after = refused(state, {"node01": offered}, replace(SMALL, n_max=20), rows)
    assert reasons == {"node00/0005": "ENSEMBLE_CONFLICT", "node00/0077": "FORGED_CREATOR"}
    assert EstimatorId("node00", 4) in after.ensemble
