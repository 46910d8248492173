"""Hostile nodes for the simulator: well-formed trees, made to harm, always the newest ones SHAREd.

zero       random trees of 60 internal nodes whose every leaf says normal
one        the same, every leaf says anomalous
grey       the same, every leaf at or just above one half
noise      trees fitted to the node's rows with 2 % of them called anomalous at random, and no true labels
mimic      trees that find four of the node's own anomalies, made big by a grafted subtree that says normal
main-leaf  true trees that keep the few leaves which pass the others' home check, made big likewise
shadow     copies of what honest neighbours offered last, to explain that away; leaves as in main-leaf
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.actions import NodeState
from learning.errors import ParameterError
from learning.fit import FitTask
from learning.fit_options import FitOptions
from learning.fit_tree import fit_tree
from learning.predict import Predictor
from learning.reach import OwnFit, own_reach
from learning.robust import HomeCheck
from learning.rows import Rows
from learning.seeds import generator
from protocol.identifiers import EstimatorId
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TREE
from protocol.trees.tree import Tree, TreeLimits

SIZE = 60
NOISE = 0.02
DECOYS = 4
MARGIN = 0.05
"""By how much hostile trees that pass a home check find more than it asks for."""
NUDGE = 1.000001
CERTAIN = 1e-9
SHADOW = "shadow"


def fit(kind: str, rows: Rows, task: FitTask, seen: Sequence[Estimator] = ()) -> tuple[Estimator, ...]:
    """Make hostile estimators where an honest node would FIT, having seen what the neighbours offer."""
    if kind not in ATTACKS:
        raise ParameterError(f"no attack is called {kind!r}; there are {', '.join(ATTACKS)}")
    # Before there is anything to copy, a shadow does as its leaves do.
    made = ATTACKS["main-leaf" if kind == SHADOW and not seen else kind]
    estimators = []
    for i in range(task.n_new):
        counter = task.first_counter + i
        rng = generator(task.seed, task.node, task.iteration, f"attack:{kind}:{counter}")
        model = seen[i % len(seen)].tree if seen else None
        tree = made(Target(rows, task, rng, model))
        estimators.append(Estimator(EstimatorId(task.node, counter), _of_kind(tree, task.limits)))
    return tuple(estimators)


def _of_kind(tree: Tree, limits: TreeLimits) -> Content:
    """Return a hostile tree as an estimator of the process's kind: boosted, it is the only tree of one."""
    if limits.kind == TREE:
        return tree
    even = np.clip(tree.value, CERTAIN, 1.0 - CERTAIN)
    arrays = {name: getattr(tree, name) for name in ("feature", "threshold", "left", "right", "missing_left")}
    return Boosted.from_arrays(0.0, [{**arrays, "value": np.log(even / (1.0 - even))}], limits)


def _fitted(rows: Rows, at: "Target") -> Tree:
    """Return a tree as an honest node grows one; of boosted estimators, as one of trees would."""
    options = at.task.options if at.task.limits.kind == TREE else FitOptions("balanced")
    return fit_tree(rows, int(at.rng.integers(2**62)), options, at.task.limits)


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


class Target(NamedTuple):
    """What a hostile tree is made from."""

    rows: Rows
    task: FitTask
    rng: np.random.Generator
    model: Content | None


def _constant(leaf: float) -> Callable[[Target], Tree]:
    return lambda at: random_tree(at.rows, SIZE, leaf, at.task.limits, at.rng)


def _grey(at: Target) -> Tree:
    tree = random_tree(at.rows, SIZE, 0.5, at.task.limits, at.rng)
    return _with_values(tree, np.where(at.rng.random(tree.n_nodes) < 0.5, 0.5, 0.5000001), at.task.limits)


def _main_leaf(at: Target) -> Tree:
    return _enlarged(_kept(_fitted(at.rows, at), at), at)


def _shadow(at: Target) -> Tree:
    if not isinstance(at.model, Tree):
        raise ParameterError("a shadow needs a tree to copy; there is none of boosted estimators")
    tree = at.model
    nudged = np.where(tree.feature >= 0, tree.threshold * NUDGE, 0.0)
    copy = Tree.from_arrays(
        tree.feature, nudged, tree.left, tree.right, tree.value, tree.missing_left, at.task.limits
    )
    return _kept(copy, at)


@lru_cache(maxsize=64)
def _passing(rows: Rows, own: OwnFit) -> float:
    """What share of a node's anomalies to find to pass the home check as it ships, and a little more."""
    check, reach = HomeCheck(), own_reach(rows, own)
    least = check.min_found
    if check.of_own is not None and reach is not None:
        least = min(least, check.of_own * reach.anomalous)
    return least + MARGIN


def _kept(tree: Tree, at: Target) -> Tree:
    """Keep the leaves that find most anomalies, as few as pass a home check; the rest say normal."""
    rows, limits = at.rows, at.task.limits
    leaves = np.flatnonzero(tree.feature < 0)
    numbered = tree.value.copy()
    numbered[leaves] = np.arange(len(leaves)) / len(leaves)
    reached = Predictor.of([_with_values(tree, numbered, limits)]).scores(rows.X[rows.y == 1])
    counts = np.bincount(np.rint(reached * len(leaves)).astype(int), minlength=len(leaves))
    counts[tree.value[leaves] <= 0.5] = 0
    values = np.zeros(tree.n_nodes)
    own = OwnFit(at.task.node, at.task.seed, at.task.options, limits)
    enough = _passing(rows, own) * max(int((rows.y == 1).sum()), 1)
    for place in np.argsort(-counts, kind="stable"):
        values[leaves[place]] = 1.0
        enough -= counts[place]
        if enough <= 0:
            break
    return _with_values(tree, values, limits)


def _with_values(tree: Tree, values: NDArray[np.float64], limits: TreeLimits) -> Tree:
    return Tree.from_arrays(
        tree.feature, tree.threshold, tree.left, tree.right, values, tree.missing_left, limits
    )


def _noise(at: Target) -> Tree:
    rows, rng = at.rows, at.rng
    labels = (rng.random(len(rows)) < NOISE).astype(np.int8)
    return _fitted(Rows(rows.X, labels), at)


def _mimic(at: Target) -> Tree:
    rows, rng = at.rows, at.rng
    anomalies = np.flatnonzero(rows.y == 1)
    labels: NDArray[np.int8] = np.zeros(len(rows), dtype=np.int8)
    if len(anomalies):
        labels[rng.choice(anomalies, size=min(DECOYS, len(anomalies)), replace=False)] = 1
    return _enlarged(_fitted(Rows(rows.X, labels), at), at)


def _enlarged(base: Tree, at: Target) -> Tree:
    """Graft a branch that says normal, as the ranking rewards size."""
    limits = at.task.limits
    room = limits.max_internal - base.n_internal
    return _graft(base, random_tree(at.rows, min(SIZE, room), 0.0, limits, at.rng), limits)


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


ATTACKS: dict[str, Callable[[Target], Tree]] = {
    "zero": _constant(0.0),
    "one": _constant(1.0),
    "grey": _grey,
    "noise": _noise,
    "mimic": _mimic,
    "main-leaf": _main_leaf,
    SHADOW: _shadow,
}
