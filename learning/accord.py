"""The hostile trees that several nodes send together: one and the same, so that their votes add up.

Each of them alone is bounded by what the home check lets pass and by the weight of its votes. Trees that
each alarm other rows share that weight out; trees that agree have all of it on the same rows. Where the check
tries foreign trees together, those in accord alarm what it lets pass together. Those that murmur doubt more
rows than that and say less of each: so little that their votes alone do not exceed the threshold, and nothing
is counted, yet enough that a little doubt of honest trees, on rows that are new to them, does.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from learning.fit_options import FitOptions
from learning.fit_tree import fit_tree
from learning.hostile_trees import BELOW, SIZE, Bounds, Target, bounds, enlarged, hushed
from learning.predict import Predictor
from learning.reach import OwnFit
from learning.rows import Rows
from protocol.trees.limits import TREE
from protocol.trees.tree import Tree, TreeLimits

FOUND = 0.2
"""By how much more of their own anomalies the tree finds than the check asks for: others have other rows."""
ALARMED = 0.75
"""What part of the alarms that pass it raises, for the same reason."""
DOUBTED = 5.0
"""How many times the alarms that pass together a tree that murmurs doubts."""
SAID = 0.7
"""What it says of them."""
NAME, SEED = "accord", 12345
ROUNDS = 20
"""How often the rows are dealt to halves, of which each scores the other."""


def accord(at: Target) -> Tree:
    """Return the tree that all hostile nodes agreed on, each time with another branch."""
    rows = _common(at)
    passes = _passes(rows, at)
    together = 1.0 if at.check is None or at.check.together is None else at.check.together
    passes = passes._replace(alarms=ALARMED * (together * passes.alarms))
    return enlarged(_agreed(rows, passes, _depth(at), at.task.limits), at)


def murmur(at: Target) -> Tree:
    """Return such a tree, each time with another branch, that says little of many normal rows."""
    rows = _common(at)
    passes = _passes(rows, at)
    most = BELOW * passes.alarms
    if at.check is not None and at.check.together is not None:
        most = min(most, DOUBTED * at.check.together * passes.alarms)
    agreed = _agreed(rows, passes._replace(alarms=most), _depth(at), at.task.limits)
    return enlarged(hushed(agreed, at._replace(rows=rows), SAID), at)


def _common(at: Target) -> Rows:
    return at.rows if at.common is None else at.common


def _passes(rows: Rows, at: Target) -> Bounds:
    """Return what each tree must find and may alarm, with anomalies to spare."""
    passes = bounds(rows, OwnFit(NAME, SEED, at.task.options, at.task.limits), at.check)
    return passes._replace(found=min(passes.found + FOUND, 1.0))


def _depth(at: Target) -> int | None:
    return at.task.options.max_depth if at.task.limits.kind == TREE else None


@lru_cache(maxsize=16)
def _agreed(rows: Rows, parts: Bounds, depth: int | None, limits: TreeLimits) -> Tree:
    """Fit the part of the anomalies most easily found, and of the normal rows that most look like one."""
    suspected = _suspicion(rows, limits)
    labels: NDArray[np.int8] = np.zeros(len(rows), dtype=np.int8)
    for label, part in ((1, parts.found), (0, parts.alarms)):
        of_label = np.flatnonzero(rows.y == label)
        count = round(part * len(of_label))
        labels[of_label[np.argsort(-suspected[of_label], kind="stable")][:count]] = 1
    # Room is left for a branch: trees that are all the same would explain each other away.
    room = replace(limits, max_internal=max(limits.max_internal - SIZE, limits.max_internal // 2))
    return fit_tree(Rows.of(rows.X, labels), SEED, FitOptions("plain", max_depth=depth), room)


def _suspicion(rows: Rows, limits: TreeLimits) -> NDArray[np.float64]:
    """Return how anomalous each row looks to trees that did not train on it."""
    rng = np.random.default_rng(SEED)
    found = np.zeros(len(rows))
    if len(rows) < 2:
        return found
    for _ in range(ROUNDS):
        order = rng.permutation(len(rows))
        halves = (order[::2], order[1::2])
        for known, new in (halves, halves[::-1]):
            part = Rows.of(rows.X[known], rows.y[known])
            tree = fit_tree(part, int(rng.integers(2**62)), FitOptions("balanced", min_leaf=2), limits)
            found[new] += Predictor.of([tree]).scores(rows.X[new])
    return found
