"""Growing boosted estimators on a node's own rows, by scikit-learn's histogram gradient boosting.

Every estimator is boosted on a bootstrap of its own, so that those of one node differ. What leaves is the
base and the trees, and the leaves hold the library's own numbers: scores are the same bit for bit. One
thread, as sums over rows would otherwise depend on how many there are. Values are put into bins here, once
for all estimators of a node, because the library weighs rows when it does so, which takes it twenty times
as long as to boost.
"""

import math
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.fit_options import FitOptions
from learning.fit_tree import LARGEST
from learning.rows import Rows
from learning.thresholds import rounded
from protocol.trees.boosted import Boosted
from protocol.trees.encoding_boosted import MAX_LEAF
from protocol.trees.limits import TreeLimits

BINS = 255
SMOOTHING = 1.0
"""Added to the curvature of every leaf: one row more that is undecided, so that no leaf runs away."""


def fit_boosted(rows: Rows, seed: int, options: FitOptions, limits: TreeLimits) -> Boosted:
    """Boost one estimator from one seed."""
    rng = np.random.Generator(np.random.PCG64(seed))
    n = len(rows)
    drawn = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
    counts = np.bincount(rows.y, weights=drawn, minlength=2)
    random_state = int(rng.integers(2**32))
    if not counts.all() or limits.max_internal == 0 or limits.max_depth == 0:
        return _constant(math.log((counts[1] + 0.5) / (counts[0] + 0.5)), limits)
    weight = drawn * np.sqrt(n / (2.0 * counts))[rows.y]
    kept = weight > 0
    bins = binned(rows)
    model = _model(options, limits, random_state)
    with _threads().limit(limits=1, user_api="openmp"):
        model.fit(_present(bins.codes[kept]), rows.y[kept], sample_weight=weight[kept])
    bins.translate(model)
    return strip_boosted(model, limits, options.threshold_bits)


def _present(codes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Call a column without any value constant, which no tree splits either; the library would fail on it."""
    codes[:, np.isnan(codes).all(axis=0)] = 0.0
    return codes


class Bins(NamedTuple):
    """Rows with the number of a bin in place of each value: bin k holds what is at most edges[k]."""

    codes: NDArray[np.float32]
    edges: tuple[NDArray[np.float64], ...]

    def translate(self, fitted: Any) -> None:
        """Put the edges of bins into a model that was fitted to their numbers, so that it takes values."""
        for (predictor,) in fitted._predictors:
            nodes = predictor.nodes
            for node in np.flatnonzero(nodes["is_leaf"] == 0):
                # Beyond the last edge only missing values are parted from others.
                edges = np.append(self.edges[nodes[node]["feature_idx"]], LARGEST)
                last = min(nodes[node]["num_threshold"], len(edges) - 1.0)
                nodes["num_threshold"][node] = edges[math.floor(last)]


@lru_cache(maxsize=4)
def binned(rows: Rows) -> Bins:
    """Part the values of each column at up to BINS - 1 of their quantiles; missing values stay missing."""
    codes = np.full(rows.X.shape, np.nan, dtype=np.float32)
    edges = []
    for column in range(rows.n_features):
        values = rows.X[:, column].astype(np.float64)
        present = ~np.isnan(values)
        distinct = np.unique(values[present])
        if len(distinct) > BINS:
            parts = np.linspace(0.0, 100.0, BINS + 1)[1:-1]
            found = np.unique(np.percentile(values[present], parts, method="midpoint"))
        else:
            found = (distinct[:-1] + distinct[1:]) / 2.0
        codes[present, column] = np.searchsorted(found, values[present], side="left")
        edges.append(found)
    return Bins(codes, tuple(edges))


def strip_boosted(fitted: Any, limits: TreeLimits, threshold_bits: int | None = None) -> Boosted:
    """Take from a fitted model of the library what prediction needs, and nothing else."""
    trees = [_arrays(predictor.nodes, threshold_bits) for (predictor,) in fitted._predictors]
    base = float(np.ravel(fitted._baseline_prediction)[0])
    return Boosted.from_arrays(min(max(base, -MAX_LEAF), MAX_LEAF), trees, limits)


def _model(options: FitOptions, limits: TreeLimits, random_state: int) -> Any:
    """Return the library's model, so small that the limits hold whatever it grows."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - a second, for this kind alone

    leaves = min(options.leaves, limits.max_internal + 1)
    depth = min(limits.max_depth, options.max_depth or limits.max_depth)
    return HistGradientBoostingClassifier(
        max_iter=min(options.rounds, limits.max_internal // (leaves - 1)),
        learning_rate=options.rate,
        max_leaf_nodes=leaves,
        max_depth=depth,
        min_samples_leaf=options.min_leaf,
        l2_regularization=SMOOTHING,
        early_stopping=False,
        random_state=random_state,
    )


def _arrays(nodes: NDArray[Any], threshold_bits: int | None) -> dict[str, NDArray[Any]]:
    leaf = nodes["is_leaf"].astype(bool)
    return {
        "feature": nodes["feature_idx"].astype(np.int64),
        # An infinite threshold parts missing values from all others; the largest float32 does the same.
        "threshold": np.clip(rounded(nodes["num_threshold"], threshold_bits), -LARGEST, LARGEST),
        "left": np.where(leaf, -1, nodes["left"].astype(np.int64)),
        "right": np.where(leaf, -1, nodes["right"].astype(np.int64)),
        "value": np.clip(nodes["value"], -MAX_LEAF, MAX_LEAF),
        "missing_left": nodes["missing_go_to_left"].astype(bool),
    }


def _constant(base: float, limits: TreeLimits) -> Boosted:
    leaf = {"feature": [-1], "threshold": [0.0], "left": [-1], "right": [-1], "value": [0.0]}
    return Boosted.from_arrays(base, [leaf], limits)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - as above

    # Looking for the libraries that have threads takes longer than to boost.
    return ThreadpoolController()
