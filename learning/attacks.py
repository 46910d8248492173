"""Hostile nodes for the simulator: well-formed trees, made to harm, always the newest ones SHAREd.

zero   random trees of 60 internal nodes whose every leaf says normal
one    the same, every leaf says anomalous
noise  trees fitted to the node's rows with 2 % of them called anomalous at random, and no true labels
mimic  trees that find four of the node's own anomalies, made big by a grafted subtree that says normal
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from learning.actions import NodeState
from learning.errors import ParameterError
from learning.fit import FitTask, fit_tree
from learning.rows import Rows
from learning.seeds import generator
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree, TreeLimits

SIZE = 60
NOISE = 0.02
DECOYS = 4


def fit(kind: str, rows: Rows, task: FitTask) -> tuple[Estimator, ...]:
    """Make hostile estimators where an honest node would FIT."""
    if kind not in ATTACKS:
        raise ParameterError(f"no attack is called {kind!r}; there are {', '.join(ATTACKS)}")
    estimators = []
    for counter in range(task.first_counter, task.first_counter + task.n_new):
        rng = generator(task.seed, task.node, task.iteration, f"attack:{kind}:{counter}")
        estimators.append(Estimator(EstimatorId(task.node, counter), ATTACKS[kind](rows, task, rng)))
    return tuple(estimators)


def share(state: NodeState, created: tuple[Estimator, ...], n_share: int) -> tuple[Estimator, ...]:
    """Offer the newest own estimators, whatever the ranking says."""
    own = [estimator for estimator in created if estimator.id.creator == state.node]
    return tuple(own[len(own) - min(n_share, len(own)) :])


def random_tree(rows: Rows, internal: int, leaf: float, limits: TreeLimits, rng: np.random.Generator) -> Tree:
    """Grow a tree by splitting random leaves at values that occur in the rows."""
    feature, threshold, left, right = [-1], [0.0], [-1], [-1]
    leaves = [0]
    for _ in range(min(internal, limits.max_internal)):
        node = leaves.pop(int(rng.integers(len(leaves))))
        split = int(rng.integers(rows.n_features))
        value = float(rows.X[int(rng.integers(len(rows))), split])
        feature[node], threshold[node] = split, value if np.isfinite(value) else 0.0
        left[node], right[node] = len(feature), len(feature) + 1
        leaves += [len(feature), len(feature) + 1]
        for column, empty in ((feature, -1), (threshold, 0.0), (left, -1), (right, -1)):
            column += [empty, empty]
    return Tree.from_arrays(feature, threshold, left, right, [leaf] * len(feature), limits=limits)


def _zero(rows: Rows, task: FitTask, rng: np.random.Generator) -> Tree:
    return random_tree(rows, SIZE, 0.0, task.limits, rng)


def _one(rows: Rows, task: FitTask, rng: np.random.Generator) -> Tree:
    return random_tree(rows, SIZE, 1.0, task.limits, rng)


def _noise(rows: Rows, task: FitTask, rng: np.random.Generator) -> Tree:
    labels = (rng.random(len(rows)) < NOISE).astype(np.int8)
    return fit_tree(Rows(rows.X, labels), int(rng.integers(2**62)), task.options, task.limits)


def _mimic(rows: Rows, task: FitTask, rng: np.random.Generator) -> Tree:
    anomalies = np.flatnonzero(rows.y == 1)
    labels: NDArray[np.int8] = np.zeros(len(rows), dtype=np.int8)
    if len(anomalies):
        labels[rng.choice(anomalies, size=min(DECOYS, len(anomalies)), replace=False)] = 1
    base = fit_tree(Rows(rows.X, labels), int(rng.integers(2**62)), task.options, task.limits)
    room = task.limits.max_internal - base.n_internal
    return _graft(base, random_tree(rows, min(SIZE, room), 0.0, task.limits, rng), task.limits)


def _graft(base: Tree, branch: Tree, limits: TreeLimits) -> Tree:
    """Replace a leaf of `base` that says normal by `branch`."""
    quiet = np.flatnonzero((base.feature < 0) & (base.value <= 0.5))
    if not len(quiet):
        return base
    at, shift = int(quiet[0]), base.n_nodes
    joined = {}
    for name in ("feature", "threshold", "left", "right", "value"):
        parts = [getattr(base, name).copy(), getattr(branch, name).copy()]
        if name in ("left", "right"):
            parts[1][parts[1] >= 0] += shift
        joined[name] = parts
    for parts in joined.values():
        parts[0][at] = parts[1][0]
        # The branch's root now stands at the leaf; its old place goes, and what lay behind moves up by one.
        parts[1] = parts[1][1:]
    arrays = {name: np.concatenate(parts) for name, parts in joined.items()}
    for name in ("left", "right"):
        arrays[name][arrays[name] > shift] -= 1
    return Tree.from_arrays(**arrays, limits=limits)


ATTACKS: dict[str, Callable[[Rows, FitTask, np.random.Generator], Tree]] = {
    "zero": _zero,
    "one": _one,
    "noise": _noise,
    "mimic": _mimic,
}
