"""FIT: train new trees on a node's own rows. The only place where estimators come into being.

Every tree has its own seed, derived from the process seed, the node, the iteration and the tree's counter,
so an auditor replays any one of them. What leaves is feature, threshold, children, the way missing values
go, and the leaf's probability: scikit-learn's counts and impurities, from which rows could be
reconstructed, do not.

A tree that would exceed the limits of the process is grown again best split first and stops at the limit,
so FIT never produces what the ledger refuses.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.errors import ParameterError
from learning.growth import Growth, grow
from learning.rows import Rows
from learning.seeds import derive
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree, TreeLimits

KINDS = ("plain", "balanced", "extra", "undersampled", "regressor")
REGRESSOR_DEPTH = 10
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class FitOptions:
    """How trees are grown.

    plain         the paper's forest: bootstrap, sqrt(d) features per split, grown until pure
    balanced      the same, both classes of the bootstrap weighing alike
    extra         all rows, both classes weighing alike, random thresholds, half the features per split
    undersampled  all anomalies and at most `normals` normal rows per anomaly, drawn for each tree
    regressor     regression trees on all features, at most 10 deep

    A leaf holds at least `min_leaf` distinct rows: the privacy floor.
    """

    kind: str = "plain"
    min_leaf: int = 1
    normals: int = 50
    max_depth: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"no way to FIT is called {self.kind!r}; there are {', '.join(KINDS)}")
        if self.min_leaf < 1 or self.normals < 1:
            raise ParameterError(f"min_leaf {self.min_leaf} and normals {self.normals} must be at least 1")
        if self.max_depth is not None and self.max_depth < 1:
            raise ParameterError(f"max_depth {self.max_depth} must be at least 1")


@dataclass(frozen=True)
class FitTask:
    """Which trees to train: everything they depend on except the rows."""

    node: str
    iteration: int
    first_counter: int
    n_new: int
    seed: int
    options: FitOptions
    limits: TreeLimits


def fit(rows: Rows, task: FitTask) -> tuple[Estimator, ...]:
    """Train n_new estimators with consecutive counters."""
    if rows.n_features != task.limits.n_features:
        raise ParameterError(f"rows have {rows.n_features} features, the process {task.limits.n_features}")
    estimators = []
    for counter in range(task.first_counter, task.first_counter + task.n_new):
        seed = derive(task.seed, task.node, task.iteration, f"fit:{counter}")
        estimators.append(
            Estimator(EstimatorId(task.node, counter), fit_tree(rows, seed, task.options, task.limits))
        )
    return tuple(estimators)


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
    return strip(grown, limits)


def strip(fitted: Any, limits: TreeLimits) -> Tree:
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
        np.clip(tree.threshold, -_LARGEST, _LARGEST),
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
