"""The hostile tree that several nodes send together: one and the same, so that their votes add up.

Each of them alone is bounded by what the home check lets pass and by the weight of its votes. Trees that
each alarm other rows share that weight out; trees that agree have all of it on the same rows. Where the check
tries foreign trees together, they alarm what it lets pass together.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from learning.fit_options import FitOptions
from learning.fit_tree import fit_tree
from learning.hostile_trees import SIZE, Bounds, Target, bounds, enlarged
from learning.predict import Predictor
from learning.reach import OwnFit
from learning.rows import Rows
from protocol.trees.limits import TREE
from protocol.trees.tree import Tree, TreeLimits

FOUND = 0.2
"""By how much more of their own anomalies the tree finds than the check asks for: others have other rows."""
ALARMED = 0.75
"""What part of the alarms that pass it raises, for the same reason."""
NAME, SEED = "accord", 12345
ROUNDS = 20
"""How often the rows are dealt to halves, of which each scores the other."""


def accord(at: Target) -> Tree:
    """Return the tree that all hostile nodes agreed on, each time with another branch."""
    rows = at.rows if at.common is None else at.common
    task = at.task
    options = task.options if task.limits.kind == TREE else FitOptions("balanced")
    passes = bounds(rows, OwnFit(NAME, SEED, task.options, task.limits), at.check)
    if at.check is not None and at.check.together is not None:
        passes = passes._replace(alarms=at.check.together * passes.alarms)
    return enlarged(_agreed(rows, passes, options.max_depth, task.limits), at)


@lru_cache(maxsize=16)
def _agreed(rows: Rows, passes: Bounds, depth: int | None, limits: TreeLimits) -> Tree:
    """Fit what passes: the anomalies most easily found, and the normal rows that most look like one."""
    suspected = _suspicion(rows, limits)
    labels: NDArray[np.int8] = np.zeros(len(rows), dtype=np.int8)
    for label, part in ((1, min(passes.found + FOUND, 1.0)), (0, ALARMED * passes.alarms)):
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
    for _ in range(ROUNDS):
        order = rng.permutation(len(rows))
        halves = (order[::2], order[1::2])
        for known, new in (halves, halves[::-1]):
            part = Rows.of(rows.X[known], rows.y[known])
            tree = fit_tree(part, int(rng.integers(2**62)), FitOptions("balanced", min_leaf=2), limits)
            found[new] += Predictor.of([tree]).scores(rows.X[new])
    return found
