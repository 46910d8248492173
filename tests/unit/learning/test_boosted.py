"""Boosted estimators: the library's scores, and the same FIT, ranking and defence as for trees."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from learning import attacks
from learning.actions import NodeState, get, predictor
from learning.boost import binned, fit_boosted, strip_boosted
from learning.compiled import implementation
from learning.errors import ParameterError
from learning.fit import FitTask, fit
from learning.fit_options import FitOptions
from learning.kernel import gram
from learning.options import from_step, to_options
from learning.parameters import Defaults, Parameters
from learning.predict import Predictor
from learning.ranking import KernelRanking
from learning.rows import Rows
from learning.simulator import Member, simulate
from protocol.agreement import step
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.defence import Membership, greatest_share
from protocol.digest import Digest
from protocol.trees.boosted import Boosted
from protocol.trees.limits import TreeLimits
from protocol.trees.tree import Tree

BOOSTED = FitOptions("boosted", rounds=6, leaves=4)
FORMS = ["numpy"] + (["compiled"] if implementation() == "compiled" else [])


@pytest.fixture
def rows(make_rows):
    return make_rows(1, n=400)


def library(**settings):
    return HistGradientBoostingClassifier(min_samples_leaf=3, early_stopping=False, **settings)


def with_missing(rows, seed=0):
    X = rows.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.15] = np.nan
    return Rows.of(X, rows.y)


def limits(rows, **changes):
    return TreeLimits(rows.n_features, kind="boosted", **changes)


def probes(found, rows, count=600):
    """Rows on the thresholds, one step beside them, and missing."""
    rng = np.random.default_rng(3)
    tests = found.threshold[found.feature >= 0].astype(np.float32)
    at = rng.choice(tests, (count, rows.n_features))
    beside = np.nextafter(at, rng.choice([-1e30, 1e30], at.shape).astype(np.float32))
    X = np.where(rng.random(at.shape) < 0.5, at, beside)
    return np.where(rng.random(at.shape) < 0.1, np.nan, X).astype(np.float32)


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_bit_for_bit_those_of_the_library(rows, form):
    rows = with_missing(rows)
    model = library(max_iter=12, max_leaf_nodes=7).fit(rows.X, rows.y)
    ours = strip_boosted(model, limits(rows))
    X = np.concatenate([rows.X, probes(ours, rows)])
    assert np.array_equal(Predictor.of([ours]).scores(X, form=form), model.predict_proba(X)[:, 1])


def test_bins_send_every_row_the_way_it_went_in_training(rows):
    rows = with_missing(rows, 1)
    bins = binned(rows)
    model = library(max_iter=8, max_leaf_nodes=6).fit(bins.codes, rows.y)
    by_code = model.predict_proba(bins.codes)
    bins.translate(model)
    assert np.array_equal(model.predict_proba(rows.X), by_code)
    assert np.array_equal(np.isnan(bins.codes), np.isnan(rows.X))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(rows):
    first, again, other = (fit_boosted(rows, seed, BOOSTED, limits(rows)) for seed in (5, 5, 6))
    assert first == again != other
    assert first.n_trees == 6
    assert first.n_internal <= 18


def test_fit_keeps_the_limits_of_the_process(rows):
    small = fit_boosted(rows, 1, FitOptions("boosted"), limits(rows, max_internal=20, max_depth=2))
    assert small.n_internal <= 20
    assert small.depth <= 2
    none = fit_boosted(rows, 1, FitOptions("boosted"), limits(rows, max_internal=0))
    assert (none.n_internal, none.n_trees) == (0, 1)


@pytest.mark.parametrize("values", [0, 1])
def test_a_column_that_is_missing_in_the_bootstrap_is_not_split(rows, values):
    X = rows.X.copy()
    X[values:, 0] = np.nan
    X[:values, 0] = 1.0
    few = Rows.of(X, rows.y)
    others = Rows.of(X[:, 1:], rows.y)
    for seed in range(4):
        found = fit_boosted(few, seed, BOOSTED, limits(few))
        expected = fit_boosted(others, seed, BOOSTED, limits(others))
        assert not (found.feature == 0).any()
        assert (Predictor.of([found]).scores(X) == Predictor.of([expected]).scores(X[:, 1:])).all()


@pytest.mark.parametrize("label", [0, 1])
def test_rows_of_one_class_give_an_estimator_without_a_split(rows, label):
    one = Rows.of(rows.X, np.full(len(rows), label))
    found = fit_boosted(one, 1, BOOSTED, limits(rows))
    assert found.n_internal == 0
    assert (Predictor.of([found]).scores(rows.X) > 0.5).all() == (label == 1)


def test_min_leaf_counts_distinct_rows(rows):
    few = fit_boosted(rows, 1, replace(BOOSTED, min_leaf=60), limits(rows))
    for first, end in zip(few.roots, [*few.roots[1:], few.n_nodes], strict=True):
        leaves = _reached(few, rows.X, int(first))
        counts = np.bincount(leaves, minlength=few.n_nodes)[first:end]
        assert counts[few.is_leaf[first:end]].min() >= 60


def _reached(found, X, root):
    at = np.full(len(X), root)
    for _ in range(found.depth):
        feature = found.feature[at]
        left = X[np.arange(len(X)), np.maximum(feature, 0)] <= found.threshold[at]
        at = np.where(feature < 0, at, np.where(left, found.left[at], found.right[at]))
    return at


@pytest.mark.parametrize("form", FORMS)
def test_the_kernel_of_two_is_the_sum_over_their_trees(rows, form):
    found = [fit_boosted(rows, seed, BOOSTED, limits(rows)) for seed in range(4)]
    single = [[_alone(boosted, i) for i in range(boosted.n_trees)] for boosted in found]
    expected = [[gram([*a, *b])[: len(a), -len(b) :].sum() for b in single] for a in single]
    assert gram(found, form=form) == pytest.approx(np.array(expected), rel=1e-12)
    assert np.array_equal(gram(found, form="numpy"), gram(found))


def _alone(boosted, place):
    ends = [*boosted.roots.tolist(), boosted.n_nodes]
    first, end = ends[place], ends[place + 1]
    columns = {name: getattr(boosted, name)[first:end] for name in ("feature", "threshold", "left", "right")}
    for side in ("left", "right"):
        columns[side] = np.where(columns[side] >= 0, columns[side] - first, -1)
    return Tree.from_arrays(**columns, value=np.zeros(end - first))


def test_ranking_takes_the_most_telling_first_and_every_form_agrees(rows):
    made = fit(rows, FitTask("node00", 0, 0, 5, 3, BOOSTED, limits(rows)))
    order = KernelRanking().top(made, 5)
    assert sorted(order) == list(range(5))
    assert order[0] == int(np.argmax(np.diagonal(gram([estimator.tree for estimator in made]))))
    assert KernelRanking(form="numpy").top(made, 5) == order


def agreed(kind, **options):
    limit = {"n_features": 4} | ({} if kind == "tree" else {"kind": kind})
    record = {"n_new": 2, "n_max": 5, "n_share": 2, "seed": 1, "limits": limit, "options": options}
    return step.StepParameters.from_dict(record | {"schema_digest": str(Digest.of(b""))})


def test_options_of_a_kind_are_its_own():
    shipped = from_step(agreed("boosted"))
    assert shipped.fit == FitOptions("boosted")
    assert shipped.limits(4).kind == "boosted"
    assert from_step(agreed("boosted", **to_options(shipped))) == shipped
    chosen = from_step(agreed("boosted", rounds=3, leaves=5, rate="0.5")).fit
    assert (chosen.rounds, chosen.leaves, chosen.rate) == (3, 5, 0.5)
    assert from_step(agreed("tree")).fit == Defaults.fit
    for kind, options in (
        ("boosted", {"fit": "balanced"}),
        ("tree", {"fit": "boosted"}),
        ("tree", {"rounds": 3}),
    ):
        with pytest.raises(ParameterError):
            from_step(agreed(kind, **options))


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"rounds": 257}, {"leaves": 1}, {"rate": 0.0}, {"rate": 1.5}]
)
def test_options_outside_their_range_are_refused(wrong):
    with pytest.raises(ParameterError):
        FitOptions("boosted", **wrong)


SURE = FitOptions("boosted", rounds=20, leaves=4, rate=0.5)
PARAMETERS = Parameters(n_new=2, n_max=6, n_share=2, fit=SURE)
NODES = [f"node{i:02d}" for i in range(4)]
ORGANISATIONS = {"node00": "A", "node01": "A", "node02": "B", "node03": "B"}


def easy_rows(seed):
    X = np.random.default_rng(seed).normal(size=(300, 4))
    return Rows.of(X, X[:, 0] > 1.5)


def federation(attack=None):
    members = {node: Member(easy_rows(i), PARAMETERS) for i, node in enumerate(NODES)}
    if attack is not None:
        members["node03"] = replace(members["node03"], attack=attack)
    full = Schedule(Topology(Kind.FULL))
    return simulate(members, full, iterations=2, seed=4, organisations=ORGANISATIONS)


def test_a_federation_of_boosted_estimators_learns_and_keeps_quota_and_cap():
    simulation = federation()
    counted = Membership.of(ORGANISATIONS)
    parameters = replace(PARAMETERS, members=counted)
    for node, state in simulation.states.items():
        assert all(isinstance(estimator.tree, Boosted) for estimator in state.ensemble)
        assert len({estimator.id.creator for estimator in state.ensemble}) > 1
        parameters.quota_of(node).check(state.ensemble.ids, PARAMETERS.n_max)
        assert greatest_share(node, counted, state.ensemble.ids, 0.25)[1] <= 0.25 + 1e-12
    test_rows = easy_rows(9)
    scores = predictor("node00", simulation.states["node00"].ensemble, parameters).scores(test_rows.X)
    assert scores[test_rows.y == 1].mean() > scores[test_rows.y == 0].mean() + 0.3


@pytest.mark.parametrize("attack", ["zero", "one", "grey"])
def test_h_hostile_boosted_estimators_are_refused_at_home(attack):
    simulation = federation(attack)
    for node in NODES[:3]:
        assert all(estimator.id.creator != "node03" for estimator in simulation.states[node].ensemble)


@pytest.mark.parametrize("attack", ["noise", "mimic", "main-leaf", "inverted"])
def test_attacks_that_fit_make_estimators_of_the_kind(rows, attack):
    made = attacks.fit(attacks.Attack(attack), rows, FitTask("node00", 0, 0, 1, 3, BOOSTED, limits(rows)))
    assert made[0].tree.kind == "boosted"


def test_h_an_estimator_of_another_kind_is_not_taken(rows):
    state = NodeState("node00", 1)
    tree = fit(rows, FitTask("node01", 0, 0, 1, 3, FitOptions("balanced"), TreeLimits(rows.n_features)))
    after = get(state, {"node01": tree}, PARAMETERS, rows)
    assert [refusal.reason for refusal in after.refusals] == ["TREE_VERSION"]
