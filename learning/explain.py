"""Why a row has its score: exact Shapley values of its features, against rows of the party's own.

Interventional: a feature outside a coalition takes its value from a background row. For one row, one
background row and one leaf, the features on the way to the leaf part into those that only the row satisfies
(A), those that only the background row does (B), and the rest. A coalition reaches the leaf if it holds all
of A and none of B, so each feature's Shapley value is a ratio of factorials of |A| and |B|, and those of all
leaves, trees and background rows add up. Nothing but comparisons is asked of the trees: no counts.
"""

from collections.abc import Iterator, Sequence
from math import factorial

import numpy as np
from numpy.typing import NDArray

from learning.errors import ParameterError, RowsError
from learning.rows import as_features
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.values import dataclass

Floats = NDArray[np.float64]
Values = NDArray[np.float32]
PROBABILITY, LOG_ODDS = "probability", "log-odds"


@dataclass(frozen=True)
class Explanation:
    """By row and feature, what the feature adds to what the background rows have on average."""

    unit: str
    """What is added up: probabilities, or the mean log-odds of boosted estimators."""
    expected: float
    contributions: Floats

    @property
    def totals(self) -> Floats:
        """What each row comes to."""
        totals: Floats = self.expected + self.contributions.sum(axis=1)
        return totals


@dataclass(frozen=True)
class _Leaf:
    """What a row must satisfy to reach a leaf: per feature on the way, its tests."""

    value: float
    tests: dict[int, list[tuple[float, bool, bool]]]

    def satisfied(self, X: Values) -> NDArray[np.bool_]:
        """Return by row and feature on the way whether all tests of the feature hold."""
        found = np.ones((len(X), len(self.tests)), dtype=bool)
        for place, (feature, tests) in enumerate(self.tests.items()):
            value = X[:, feature]
            for threshold, missing_left, goes_left in tests:
                left = np.where(np.isnan(value), missing_left, value <= threshold)
                found[:, place] &= left == goes_left
        return found


def explain(
    contents: Sequence[Content],
    weights: Sequence[float] | Floats,
    rows: Values,
    background: Values,
    vote: str = "mean",
) -> Explanation:
    """Return the Shapley values of each row under the weighted vote of the estimators."""
    X, Z = as_features(rows), as_features(background)
    if not len(contents):
        raise ParameterError("there are no estimators to explain")
    if not len(Z):
        raise RowsError("there are no background rows", "empty")
    boosted = [isinstance(content, Boosted) for content in contents]
    if any(boosted) and not all(boosted):
        raise ParameterError("only estimators of one kind are explained together")
    if not explainable(contents, vote):
        raise ParameterError("of boosted estimators only the mean is explained, not a majority")
    shares = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    contributions, expected = np.zeros(X.shape), 0.0
    for content, share in zip(contents, shares, strict=True):
        expected += share * (content.base if isinstance(content, Boosted) else 0.0)
        for leaf in _leaves(content, vote):
            mean, parts = _of_leaf(leaf, X, Z)
            expected += share * mean
            contributions[:, list(leaf.tests)] += share * parts
    return Explanation(LOG_ODDS if any(boosted) else PROBABILITY, expected, contributions)


def explainable(contents: Sequence[Content], vote: str) -> bool:
    """Whether scores are sums over leaves; those of a majority of boosted estimators are not."""
    return vote == "mean" or not any(isinstance(content, Boosted) for content in contents)


def _of_leaf(leaf: _Leaf, X: Values, Z: Values) -> tuple[float, Floats]:
    """Return the mean that the leaf gives background rows, and its part of each row's Shapley values."""
    by_row, by_background = leaf.satisfied(X), leaf.satisfied(Z)
    parts = np.zeros(by_row.shape)
    for i, own in enumerate(by_row):
        reached = (own | by_background).all(axis=1)
        only_row = own & ~by_background[reached]
        only_background = ~own & by_background[reached]
        a, b = only_row.sum(axis=1), only_background.sum(axis=1)
        gains, losses = _ratios(a, b)
        parts[i] = (only_row * gains[:, None]).sum(axis=0) - (only_background * losses[:, None]).sum(axis=0)
    mean = leaf.value * float(by_background.all(axis=1).mean())
    return mean, leaf.value * parts / len(Z)


def _ratios(a: NDArray[np.int64], b: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return (a-1)! b! / (a+b)! and a! (b-1)! / (a+b)!, 0 where there is no such feature."""
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    gains = [factorial(p - 1) * factorial(q) / factorial(p + q) if p else 0.0 for p, q in pairs]
    losses = [factorial(p) * factorial(q - 1) / factorial(p + q) if q else 0.0 for p, q in pairs]
    return np.array(gains, dtype=np.float64), np.array(losses, dtype=np.float64)


def _leaves(content: Content, vote: str) -> Iterator[_Leaf]:
    """Walk all trees and yield each leaf that adds something, with the tests on its way."""
    feature, threshold = content.feature.tolist(), content.threshold.tolist()
    missing, value = content.missing_left.tolist(), content.value.tolist()
    left, right = content.left.tolist(), content.right.tolist()
    for root in content.roots.tolist():
        pending: list[tuple[int, dict[int, list[tuple[float, bool, bool]]]]] = [(root, {})]
        while pending:
            node, tests = pending.pop()
            if feature[node] < 0:
                number = value[node] if vote == "mean" else float(value[node] > 0.5)
                if number:
                    yield _Leaf(number, tests)
                continue
            for child, goes_left in ((right[node], False), (left[node], True)):
                test = (threshold[node], missing[node], goes_left)
                known = tests.get(feature[node], [])
                pending.append((child, {**tests, feature[node]: [*known, test]}))
