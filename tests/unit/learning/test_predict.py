"""Prediction over plain arrays against scikit-learn's own forests."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

from learning.compiled import implementation
from learning.errors import ParameterError, RowsError
from learning.fit_tree import strip
from learning.predict import Predictor
from learning.voters import TreeVoters
from protocol.trees.tree import Tree, TreeLimits

FORMS = ["numpy"] + (["compiled"] if implementation() == "compiled" else [])


def trees_of(forest, d):
    return [strip(tree, TreeLimits(d, 4000, 200)) for tree in forest.estimators_]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 7}, {"class_weight": "balanced_subsample"}])
def test_scores_equal_scikit_learns_forest_bit_for_bit(make_rows, form, missing, settings):
    rows, asked = make_rows(1, missing=missing), make_rows(2, n=2000, missing=missing)
    for seed in range(3):
        forest = RandomForestClassifier(15, random_state=seed, **settings).fit(rows.X.copy(), rows.y)
        ours = Predictor.of(trees_of(forest, rows.n_features))
        scores = ours.scores(asked.X, form=form)
        both = forest.predict_proba(asked.X.copy())
        assert (scores == both[:, 1]).all()
        # Decisions are the same wherever rounding leaves no tie.
        apart = np.abs(both[:, 1] - both[:, 0]) > 1e-9
        assert apart.sum() > 1900
        assert ((scores > 0.5) == forest.predict(asked.X.copy()))[apart].all()


@pytest.mark.parametrize("tenths", [(3, 4, 8), (4, 3, 8), (5, 5)])
def test_at_a_rounding_tie_scores_are_the_same_and_decisions_may_differ(tenths):
    """Half is normal here; a forest takes the greater of two sums, of which each was rounded by itself."""
    X = np.zeros((10, 1), dtype=np.float32)
    forest = RandomForestClassifier(len(tenths)).fit(X, [0, 1] * 5)
    forest.estimators_ = [DecisionTreeClassifier().fit(X, [1] * n + [0] * (10 - n)) for n in tenths]
    ours = Predictor.of(trees_of(forest, 1))
    both = forest.predict_proba(X[:1])
    assert ours.scores(X[:1]).tolist() == both[:, 1].tolist() == [0.5]
    assert ours.predict(X[:1]).tolist() == [0]
    assert forest.predict(X[:1]).tolist() == [int(both[0, 1] > both[0, 0])] == [int(len(tenths) == 3)]


def test_wide_rows_are_compared_in_float32_as_scikit_learn_does(make_rows):
    rows = make_rows()
    forest = RandomForestClassifier(10, random_state=0).fit(rows.X.copy(), rows.y)
    asked = np.random.default_rng(3).normal(size=(5000, rows.n_features))
    thresholds = np.concatenate([t.tree_.threshold[t.tree_.feature == 0] for t in forest.estimators_])
    asked[: len(thresholds), 0] = np.nextafter(thresholds, np.inf)
    ours = Predictor.of(trees_of(forest, rows.n_features))
    assert (ours.predict(asked) == forest.predict(asked)).all()


@pytest.mark.parametrize("form", FORMS)
def test_regression_forests_agree(make_rows, form):
    rows = make_rows()
    forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(rows.X.copy(), rows.y)
    ours = Predictor.of(trees_of(forest, rows.n_features)).scores(rows.X, form=form)
    assert (ours == forest.predict(rows.X.copy())).all()


@pytest.mark.skipif(implementation() != "compiled", reason="the extension is not built here")
@pytest.mark.parametrize("n", [0, 1, 127, 128, 129, 5000])
def test_compiled_and_numpy_forms_give_the_same_bits(random_trees, n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    X[::7, 1] = np.nan
    weighted = Predictor.of(random_trees(9), np.linspace(0.1, 1.0, 9))
    for ask in (weighted.scores, weighted.votes):
        assert ask(X, form="compiled").tobytes() == ask(X, form="numpy").tobytes()


@pytest.mark.skipif(implementation() != "compiled", reason="the extension is not built here")
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_trees_of_every_number_of_leaves_give_scikit_learns_bits(make_rows, missing):
    """Up to 128 leaves are asked 32 at a time, larger trees walked; both kinds stand in one forest here."""
    rows = make_rows(1, n=3000, missing=missing)
    labels = np.random.default_rng(0).random(len(rows)) < 0.4
    asked = make_rows(2, n=1000, missing=missing)
    trees, total = [], np.zeros(len(asked))
    for leaves in (2, 3, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128, 129, 300, 17):
        (grown,) = (
            RandomForestClassifier(1, max_leaf_nodes=leaves, random_state=leaves)
            .fit(rows.X.copy(), labels)
            .estimators_
        )
        trees.append(strip(grown, TreeLimits(rows.n_features, 4000, 200)))
        assert trees[-1].n_internal == leaves - 1
        total += grown.predict_proba(asked.X.copy())[:, 1]
    ours = Predictor.of(trees)
    assert (ours.scores(asked.X, form="compiled") == total / len(trees)).all()
    assert ours.votes(asked.X, form="compiled").tobytes() == ours.votes(asked.X, form="numpy").tobytes()


@pytest.mark.skipif(implementation() != "compiled", reason="the extension is not built here")
def test_trees_that_share_nodes_overrun_no_buffer(random_trees):
    """No caller lays trees out so; if one did, every tree would still be scored, by walking it."""
    from learning.compiled import choose

    ours = TreeVoters.of(random_trees(40), np.ones(40))
    largest = int(np.flatnonzero(ours.steps["left"][:40] != np.arange(40))[0])
    steps = ours.steps.copy()
    steps[:40] = steps[largest]
    shared = TreeVoters(steps, ours.values, ours.weights, ours.n_features)
    X = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    X[::5, 2] = np.nan
    assert choose(None) is not None
    assert shared.sums(X, False, "compiled").tobytes() == shared.sums(X, False, "numpy").tobytes()


def test_exactly_half_is_normal(leaf):
    half = Predictor.of([leaf(1.0), leaf(0.0)])
    assert half.scores(np.zeros((1, 1))).tolist() == [0.5]
    assert half.predict(np.zeros((1, 1))).tolist() == [0]
    assert half.predict(np.zeros((1, 1)), vote="majority").tolist() == [0]
    assert half.predict(np.zeros((1, 1)), threshold=0.3).tolist() == [1]


def test_votes_count_trees_and_scores_average_them(leaf):
    trees = [leaf(0.6), leaf(0.6), leaf(0.0)]
    X = np.zeros((1, 1))
    assert Predictor.of(trees).scores(X) == pytest.approx(0.4)
    assert Predictor.of(trees).votes(X) == pytest.approx(2 / 3)
    assert Predictor.of(trees).predict(X).tolist() == [0]
    assert Predictor.of(trees).predict(X, vote="majority").tolist() == [1]


def test_weights_are_relative(leaf):
    X = np.zeros((1, 1))
    assert Predictor.of([leaf(1.0), leaf(0.0)], [3.0, 1.0]).scores(X).tolist() == [0.75]


def test_an_empty_ensemble_says_normal():
    assert Predictor.of([]).scores(np.zeros((3, 2))).tolist() == [0.0, 0.0, 0.0]
    assert Predictor.of([]).predict(np.zeros((3, 2))).tolist() == [0, 0, 0]


def test_d24_rows_with_too_few_columns_are_refused(random_trees):
    with pytest.raises(RowsError, match="column"):
        Predictor.of(random_trees(5)).scores(np.zeros((2, 1)))


def test_g5_infinite_values_are_refused(random_trees):
    with pytest.raises(RowsError):
        Predictor.of(random_trees(1)).scores([[np.inf] * 4])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_weights_that_are_no_weights_are_refused(leaf, weights):
    with pytest.raises(ParameterError):
        Predictor.of([leaf(0.0), leaf(1.0)], weights)


def test_an_unknown_vote_is_refused(leaf):
    with pytest.raises(ParameterError):
        Predictor.of([leaf(0.0)]).predict(np.zeros((1, 1)), vote="loudest")


@pytest.mark.skipif(implementation() != "compiled", reason="the extension is not built here")
def test_the_extension_refuses_buffers_of_another_size(random_trees):
    from learning.compiled import choose

    ours = TreeVoters.of(random_trees(2), np.ones(2))
    out = np.empty(3)
    X = np.zeros((3, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="bytes"):
        choose(None).predict(3, len(ours.steps), 9, 2, 0, X, ours.steps, ours.values, ours.weights, out)
    looped = ours.steps.copy()
    looped["left"] = 0
    with pytest.raises(ValueError, match="behind"):
        choose(None).predict(3, len(looped), 4, 2, 0, X, looped, ours.values, ours.weights, out)


def test_trees_keep_raw_units_so_prediction_needs_no_scaler():
    tree = Tree.from_arrays([0, -1, -1], [250.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1])
    assert Predictor.of([tree]).predict([[250.0], [250.1]]).tolist() == [0, 1]
