"""Shapley values against their definition: every coalition, one by one."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from learning.boost import fit_boosted
from learning.errors import ParameterError, RowsError
from learning.explain import explain
from learning.fit_options import FitOptions
from learning.predict import Predictor
from learning.voters import BoostedVoters
from protocol.trees.limits import TreeLimits


def by_coalitions(score, row, background):
    """The definition, word for word."""
    d = len(row)

    def worth(inside):
        mixed = background.copy()
        mixed[:, list(inside)] = row[list(inside)]
        return score(mixed).mean()

    values = np.zeros(d)
    for feature in range(d):
        others = [other for other in range(d) if other != feature]
        for size in range(d):
            weight = factorial(size) * factorial(d - size - 1) / factorial(d)
            for inside in combinations(others, size):
                values[feature] += weight * (worth((*inside, feature)) - worth(inside))
    return values


@pytest.fixture
def table():
    X = np.random.default_rng(2).normal(size=(14, 4)).astype(np.float32)
    X[::5, 1] = np.nan
    return X[:3], X[3:]


@pytest.mark.parametrize("vote", ["mean", "majority"])
def test_a_forest_is_explained_as_all_coalitions_explain_it(random_trees, table, vote):
    rows, background = table
    trees, weights = random_trees(5, seed=3, largest=9), [1.0, 0.5, 2.0, 1.0, 0.25]
    voters = Predictor.of(trees, weights)
    score = voters.scores if vote == "mean" else voters.votes
    found = explain(trees, weights, rows, background, vote)
    for row, values in zip(rows, found.contributions, strict=True):
        assert values == pytest.approx(by_coalitions(score, row, background), abs=1e-12)
    assert found.totals == pytest.approx(score(rows), abs=1e-12)
    assert found.expected == pytest.approx(score(background).mean(), abs=1e-12)
    assert found.unit == "probability"


def test_boosted_estimators_are_explained_in_log_odds(make_rows, table):
    rows, background = table
    own = make_rows(d=4, n=200)
    limits = TreeLimits(4, kind="boosted")
    made = [fit_boosted(own, seed, FitOptions("boosted", rounds=4, leaves=4), limits) for seed in (1, 2)]
    weights = np.array([3.0, 1.0])
    voters = BoostedVoters.of(made, weights)

    def score(X):
        return sum(w * voters.log_odds(X, i, None) for i, w in enumerate(weights)) / weights.sum()

    found = explain(made, weights, rows, background)
    assert found.unit == "log-odds"
    assert found.contributions[0] == pytest.approx(by_coalitions(score, rows[0], background), abs=1e-12)
    assert found.totals == pytest.approx(score(rows), abs=1e-12)


def test_a_feature_that_no_tree_asks_for_gets_nothing(random_trees, table):
    rows, background = table
    trees = random_trees(3, n_features=2)
    assert not explain(trees, np.ones(3), rows, background).contributions[:, 2:].any()


def test_what_cannot_be_explained_is_refused(random_trees, leaf, table):
    rows, background = table
    with pytest.raises(ParameterError):
        explain([], [], rows, background)
    with pytest.raises(RowsError):
        explain([leaf(0.5)], [1.0], rows, background[:0])
    alone = explain([leaf(0.5)], [1.0], rows, background)
    assert alone.expected == 0.5
    assert not alone.contributions.any()
