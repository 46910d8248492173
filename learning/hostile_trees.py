"""How each hostile tree of `learning.attacks` is made."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.errors import ParameterError
from learning.fit import FitTask
from learning.fit_options import FitOptions
from learning.fit_tree import fit_tree
from learning.predict import Predictor
from learning.reach import OwnFit, own_reach
from learning.robust import HomeCheck
from learning.rows import Rows
from protocol.trees.content import Content
from protocol.trees.limits import TREE
from protocol.trees.tree import Tree, TreeLimits

SIZE = 60
NOISE = 0.02
DECOYS = 4
MARGIN = 0.05
"""By how much hostile trees that pass a home check find more than it asks for."""
BELOW = 0.9
"""What part of the alarms that a home check lets pass hostile trees make use of."""
NUDGE = 1.000001


class Target(NamedTuple):
    """What a hostile tree is made from, and the home check that it shall pass."""

    rows: Rows
    task: FitTask
    rng: np.random.Generator
    model: Content | None
    check: HomeCheck | None
    common: Rows | None = None
    """The rows that all hostile nodes of an accord make their trees from, which one of them has."""


class Reached(NamedTuple):
    """The leaves of a tree, and how many of a node's normal and anomalous rows come to each."""

    leaves: NDArray[np.intp]
    normal: NDArray[np.intp]
    anomalous: NDArray[np.intp]


class Bounds(NamedTuple):
    """What a tree must find, and what it may alarm, to be held: means over a node's rows by label."""

    found: float
    alarms: float


def constant(leaf: float) -> Callable[[Target], Tree]:
    """Say the same of every row."""
    return lambda at: random_tree(at.rows, SIZE, leaf, at.task.limits, at.rng)


def grey(at: Target) -> Tree:
    """Say one half of some rows and a little more of the others."""
    tree = random_tree(at.rows, SIZE, 0.5, at.task.limits, at.rng)
    return _with_values(tree, np.where(at.rng.random(tree.n_nodes) < 0.5, 0.5, 0.5000001), at.task.limits)


def noise(at: Target) -> Tree:
    """Learn labels that were drawn."""
    labels = (at.rng.random(len(at.rows)) < NOISE).astype(np.int8)
    return _fitted(Rows(at.rows.X, labels), at)


def mimic(at: Target) -> Tree:
    """Find a few anomalies and no others."""
    rows, rng = at.rows, at.rng
    anomalies = np.flatnonzero(rows.y == 1)
    labels: NDArray[np.int8] = np.zeros(len(rows), dtype=np.int8)
    if len(anomalies):
        labels[rng.choice(anomalies, size=min(DECOYS, len(anomalies)), replace=False)] = 1
    return enlarged(_fitted(Rows(rows.X, labels), at), at)


def main_leaf(at: Target) -> Tree:
    """Find no more than passes."""
    tree = _fitted(at.rows, at)
    return enlarged(_kept(tree, at, _reached(tree, at)), at)


def inverted(at: Target) -> Tree:
    """Find no more than passes, and alarm as much as does: the worst that a check of means lets in."""
    tree = _fitted(at.rows, at)
    reached = _reached(tree, at)
    return enlarged(_alarming(_kept(tree, at, reached), at, reached), at)


def shadow(at: Target) -> Tree:
    """Split as the model does, a millionth beside it, and find no more than passes."""
    if not isinstance(at.model, Tree):
        raise ParameterError("a shadow needs a tree to copy; there is none of boosted estimators")
    tree = at.model
    nudged = np.where(tree.feature >= 0, tree.threshold * NUDGE, 0.0)
    copy = Tree.from_arrays(
        tree.feature, nudged, tree.left, tree.right, tree.value, tree.missing_left, at.task.limits
    )
    return _kept(copy, at, _reached(copy, at))


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


def bounds(rows: Rows, own: OwnFit, check: HomeCheck | None) -> Bounds:
    """Return what passes the check at a node with rows like the hostile one's; without a check, all does."""
    if check is None:
        return Bounds(0.0, 1.0)
    found, alarms = check.min_found, check.max_alarms
    reach = None if check.of_own is None else _reach(rows, own)
    if check.of_own is not None and reach is not None:
        found = min(found, check.of_own * reach.anomalous)
        alarms = max(alarms, reach.normal / check.of_own)
    return Bounds(found, min(alarms, 1.0))


_reach = lru_cache(maxsize=64)(own_reach)


def _bounds(at: Target) -> Bounds:
    own = OwnFit(at.task.node, at.task.seed, at.task.options, at.task.limits)
    return bounds(at.rows, own, at.check)


def _fitted(rows: Rows, at: Target) -> Tree:
    """Return a tree as an honest node grows one; of boosted estimators, as one of trees would."""
    options = at.task.options if at.task.limits.kind == TREE else FitOptions("balanced")
    return fit_tree(rows, int(at.rng.integers(2**62)), options, at.task.limits)


def _kept(tree: Tree, at: Target, reached: Reached) -> Tree:
    """Keep the leaves that find most anomalies, as few as pass the home check; the rest say normal."""
    leaves, normal, anomalous = reached
    found = np.where(tree.value[leaves] <= 0.5, 0, anomalous)
    values = np.zeros(tree.n_nodes)
    enough = (_bounds(at).found + MARGIN) * max(int((at.rows.y == 1).sum()), 1)
    room = _room(at)
    for place in np.argsort(-found, kind="stable"):
        if normal[place] > room:
            continue
        values[leaves[place]] = 1.0
        enough -= found[place]
        room -= normal[place]
        if enough <= 0:
            break
    return _with_values(tree, values, at.task.limits)


def _alarming(tree: Tree, at: Target, reached: Reached) -> Tree:
    """Have leaves of normal rows say anomalous, up to the alarms that pass.

    Those with fewest anomalies for their normal rows come first, and of these the small ones: they hold the
    normal rows next to anomalies, of which honest trees are least sure. The last one gets what is left.
    """
    leaves, normal, anomalous = reached
    values = tree.value.copy()
    room = _room(at) - float(normal @ values[leaves])
    for place in np.lexsort((normal, anomalous / np.maximum(normal, 1))):
        leaf = leaves[place]
        if normal[place] and values[leaf] <= 0.5 and room > 0:
            values[leaf] = min(1.0, room / normal[place])
            room -= values[leaf] * normal[place]
    return _with_values(tree, values, at.task.limits)


def hushed(tree: Tree, at: Target, said: float) -> Tree:
    """Have the leaves that no anomaly comes to say no more than this."""
    leaves, _, anomalous = _reached(tree, at)
    values, quiet = tree.value.copy(), leaves[anomalous == 0]
    values[quiet] = np.minimum(values[quiet], said)
    return _with_values(tree, values, at.task.limits)


def _room(at: Target) -> float:
    """How many normal rows of the hostile node's may be called anomalous."""
    return BELOW * _bounds(at).alarms * max(int((at.rows.y == 0).sum()), 1)


def _reached(tree: Tree, at: Target) -> Reached:
    """Take the node's rows down the tree once, whatever its leaves are to say."""
    leaves = np.flatnonzero(tree.feature < 0)
    numbered = np.zeros(tree.n_nodes)
    numbered[leaves] = np.arange(len(leaves)) / len(leaves)
    scores = Predictor.of([_with_values(tree, numbered, at.task.limits)]).scores(at.rows)
    places = np.rint(scores * len(leaves)).astype(int)
    counts = (np.bincount(places[at.rows.y == label], minlength=len(leaves)) for label in (0, 1))
    return Reached(leaves, *counts)


def _with_values(tree: Tree, values: NDArray[np.float64], limits: TreeLimits) -> Tree:
    return Tree.from_arrays(
        tree.feature, tree.threshold, tree.left, tree.right, values, tree.missing_left, limits
    )


def enlarged(base: Tree, at: Target) -> Tree:
    """Graft a branch onto a leaf that says normal, which says the same, as the ranking rewards size."""
    limits = at.task.limits
    room = limits.max_internal - base.n_internal
    return _graft(base, random_tree(at.rows, min(SIZE, room), 0.0, limits, at.rng), limits)


def _graft(base: Tree, branch: Tree, limits: TreeLimits) -> Tree:
    """Replace a leaf of `base` that says normal by `branch`, all of whose leaves say what that one did."""
    quiet = np.flatnonzero((base.feature < 0) & (base.value <= 0.5))
    if not len(quiet):
        return base
    at, shift = int(quiet[0]), base.n_nodes
    joined = {}
    for name in ("feature", "threshold", "left", "right", "value", "missing_left"):
        parts = [getattr(base, name).copy(), getattr(branch, name).copy()]
        if name in ("left", "right"):
            parts[1][parts[1] >= 0] += shift
        joined[name] = parts
    joined["value"][1][:] = base.value[at]
    for parts in joined.values():
        parts[0][at] = parts[1][0]
        # The branch's root now stands at the leaf; its old place goes, and what lay behind moves up by one.
        parts[1] = parts[1][1:]
    arrays = {name: np.concatenate(parts) for name, parts in joined.items()}
    for name in ("left", "right"):
        arrays[name][arrays[name] > shift] -= 1
    return Tree.from_arrays(**arrays, limits=limits)
