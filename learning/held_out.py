"""Which of its rows a node learns nothing from, so that it can tell what its ensemble is worth.

They are drawn by the seed of the step and the node's name, apart for normal and anomalous rows, from their
places in the file. From one file they are the same in every iteration; with one row more they are others,
which is why the ledger has a node keep to one (`DATA_MISMATCH`). Whether a row stands in it twice, or a model
that the process began with has learned from it, is not asked.
"""

import numpy as np
from numpy.typing import NDArray

from learning.rows import Rows
from learning.seeds import generator


def learned_from(rows: Rows, part: float | None, seed: int, node: str) -> Rows:
    """Return the rows that a node learns from: all of them where nothing is held out."""
    return rows if part is None else _chosen(rows, ~_held(rows, part, seed, node))


def held_out(rows: Rows, part: float, seed: int, node: str) -> Rows | None:
    """Return the rows that a node learns nothing from; None where there are not two of any class."""
    held = _held(rows, part, seed, node)
    return _chosen(rows, held) if held.any() else None


def _held(rows: Rows, part: float, seed: int, node: str) -> NDArray[np.bool_]:
    """Mark that part of each class, at least one row and not all, unless the class has but one."""
    held = np.zeros(len(rows), dtype=np.bool_)
    rng = generator(seed, node, 0, "held-out")
    for label in (0, 1):
        places = rng.permutation(np.flatnonzero(rows.y == label))
        count = max(1, min(round(part * len(places)), len(places) - 1))
        if len(places) > 1:
            held[places[:count]] = True
    return held


def _chosen(rows: Rows, chosen: NDArray[np.bool_]) -> Rows:
    return Rows.of(rows.X[chosen], rows.y[chosen])
