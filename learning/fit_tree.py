"""Growing single trees on a node's own rows, by scikit-learn.

What leaves is feature, threshold, children, the way missing values go, and the leaf's probability:
scikit-learn's counts and impurities, from which rows could be reconstructed, do not. A tree that would exceed
the limits of the process is grown again best split first and stops at the limit, so FIT never produces what
the ledger refuses.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.fit_options import FitOptions
from learning.growth import Growth, grow
from learning.rows import Rows
from learning.thresholds import rounded
from protocol.trees.tree import Tree, TreeLimits

REGRESSOR_DEPTH = 10
LARGEST = float(np.finfo(np.float32).max)


def fit_tree(rows: Rows, seed: int, options: FitOptions, limits: TreeLimits) -> Tree:
    """Train one tree from one seed."""
    rng = np.random.Generator(np.random.PCG64(seed))
    sample = _sample(rows, options, rng)
    random_state = int(rng.integers(2**32))
    depth = min(limits.max_depth, options.max_depth or limits.max_depth)
    if options.kind == "regressor" and options.max_depth is None:
        depth = min(depth, REGRESSOR_DEPTH)
    if depth == 0 or limits.max_internal == 0:
        return _leaf(float(np.average(sample.y, weights=sample.weight)), limits)
    grown = _grow(sample, options, random_state, depth, None)
    if grown.tree_.node_count > limits.max_nodes:
        grown = _grow(sample, options, random_state, depth, limits.max_internal + 1)
    return strip(grown, limits, options.threshold_bits)


def strip(fitted: Any, limits: TreeLimits, threshold_bits: int | None = None) -> Tree:
    """Take from a fitted scikit-learn tree what prediction needs, and nothing else."""
    tree = fitted.tree_
    classes = getattr(fitted, "classes_", None)
    if classes is None:
        value = tree.value[:, 0, 0]
    else:
        classes = list(classes)
        value = tree.value[:, 0, classes.index(1)] if 1 in classes else np.zeros(tree.node_count)
    return Tree.from_arrays(
        tree.feature,
        # An infinite threshold parts missing values from all others; the largest float32 does the same.
        np.clip(rounded(tree.threshold, threshold_bits), -LARGEST, LARGEST),
        tree.children_left,
        tree.children_right,
        np.clip(value, 0.0, 1.0),
        tree.missing_go_to_left.astype(bool),
        limits,
    )


class _Sample(NamedTuple):
    """The rows one tree is trained on; weight 0 means left out by the bootstrap."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    weight: NDArray[np.float64]


def _sample(rows: Rows, options: FitOptions, rng: np.random.Generator) -> _Sample:
    X, y = rows.X, rows.y
    if options.kind == "undersampled":
        anomalies, normals = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        most = min(len(normals), options.normals * max(len(anomalies), 1))
        normals = rng.choice(normals, size=most, replace=False) if most else normals
        chosen = np.sort(np.concatenate([anomalies, normals]))
        X, y = X[chosen], y[chosen]
    n = len(y)
    if options.kind == "extra":
        weight = np.ones(n)
    else:
        weight = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
    if options.kind in ("balanced", "extra"):
        per_class = np.bincount(y, weights=weight, minlength=2)
        weight *= (n / (2.0 * np.maximum(per_class, 1.0)))[y]
    return _Sample(X, y, weight)


def _grow(
    sample: _Sample, options: FitOptions, random_state: int, max_depth: int, max_leaves: int | None
) -> Any:
    d = sample.X.shape[1]
    if options.kind == "regressor":
        manner = ("squared_error", "best", d)
    elif options.kind == "extra":
        manner = ("entropy", "random", max(1, d // 2))
    else:
        manner = ("gini", "best", max(1, int(np.sqrt(d))))
    growth = Growth(*manner, options.min_leaf, max_depth, max_leaves, random_state)
    return grow(sample.X, sample.y, sample.weight, growth)


def _leaf(value: float, limits: TreeLimits) -> Tree:
    return Tree.from_arrays([-1], [0.0], [-1], [-1], [value], limits=limits)
