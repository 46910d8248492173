"""Prediction over plain-array trees, without building scikit-learn objects from bytes that others sent.

Rows are compared in float32 and leaf values added tree by tree in the given order, as scikit-learn's forests
do, so scores of equal weights are the same bit for bit. Decisions are the same but at rounding ties: a forest
adds up both classes and takes the greater sum, where here one sum is held against the threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from learning.compiled import choose
from learning.errors import ParameterError, RowsError
from learning.rows import Rows, as_features
from protocol.trees.tree import Tree

Floats = NDArray[np.float64]

# The layout of struct Step in _kernel.c.
_STEP = np.dtype(
    [("number", "f8"), ("feature", "i4"), ("left", "i4"), ("right", "i4"), ("missing_left", "i4")]
)
_ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Predictor:
    """Trees laid out for walking, with the weight of each in the vote."""

    steps: NDArray[np.void]
    roots: NDArray[np.int32]
    weights: Floats
    n_features: int

    @classmethod
    def of(cls, trees: Sequence[Tree], weights: Sequence[float] | Floats | None = None) -> Self:
        """Lay out the trees; without weights each counts the same."""
        sizes = np.array([tree.n_nodes for tree in trees], dtype=np.int64)
        ends = np.cumsum(sizes)
        roots = (ends - sizes).astype(np.int32)
        steps = np.zeros(int(sizes.sum()), dtype=_STEP)
        for tree, first in zip(trees, roots, strict=True):
            part = steps[first : first + tree.n_nodes]
            leaf = tree.feature < 0
            part["number"] = np.where(leaf, tree.value, tree.threshold)
            part["feature"] = tree.feature
            part["left"] = tree.left + first
            part["right"] = tree.right + first
            part["missing_left"] = tree.missing_left
        n_features = int(steps["feature"].max()) + 1 if len(steps) else 0
        return cls(steps, roots, _weights(weights, len(trees)), n_features)

    def scores(self, X: Any, *, form: str | None = None) -> Floats:
        """Return the weighted mean of P(anomalous) per row, 0.0 without trees; `Rows` come checked."""
        return self._mean(X, vote=False, form=form)

    def votes(self, X: Any, *, form: str | None = None) -> Floats:
        """Return the weighted share of trees that call the row anomalous (their own value > 0.5)."""
        return self._mean(X, vote=True, form=form)

    def predict(self, X: Any, threshold: float = 0.5, vote: str = "mean") -> NDArray[np.int8]:
        """Return 1 where the score, or the share of votes, exceeds the threshold; exactly on it is normal."""
        if vote not in ("mean", "majority"):
            raise ParameterError(f"vote {vote!r} is neither 'mean' nor 'majority'")
        scores = self.scores(X) if vote == "mean" else self.votes(X)
        return (scores > threshold).astype(np.int8)

    def _mean(self, X: Any, *, vote: bool, form: str | None) -> Floats:
        values = X.X if isinstance(X, Rows) else as_features(X)
        if values.shape[1] < self.n_features:
            raise RowsError(
                f"rows have {values.shape[1]} columns, a tree splits column {self.n_features - 1}",
                "columns",
            )
        if not len(self.roots):
            return np.zeros(len(values))
        compiled = choose(form)
        if compiled is None:
            total = self._walk(values, vote)
        else:
            total = np.empty(len(values))
            n, d = values.shape
            arrays = (values, self.steps, self.roots, self.weights, total)
            compiled.predict(n, len(self.steps), d, len(self.roots), int(vote), *arrays)
        total /= self.weights.sum()
        return total

    def _walk(self, values: NDArray[np.float32], vote: bool) -> Floats:
        total = np.zeros(len(values))
        for first in range(0, len(values), _ROWS):
            part = values[first : first + _ROWS]
            for root, weight in zip(self.roots, self.weights, strict=True):
                number = self._leaves(part, root)
                total[first : first + _ROWS] += weight * (number > 0.5 if vote else number)
        return total

    def _leaves(self, part: NDArray[np.float32], root: np.int32) -> Floats:
        """Walk all rows down one tree a level at a time, and return the values they end at."""
        at = np.full(len(part), root)
        moving = np.arange(len(part))
        while True:
            step = self.steps[at[moving]]
            moving = moving[step["feature"] >= 0]
            if not len(moving):
                return self.steps["number"][at]
            step = step[step["feature"] >= 0]
            value = part[moving, step["feature"]]
            left = np.where(np.isnan(value), step["missing_left"] != 0, value <= step["number"])
            at[moving] = np.where(left, step["left"], step["right"])


def _weights(weights: Sequence[float] | Floats | None, count: int) -> Floats:
    array = np.ones(count) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(f"{len(array)} weights for {count} trees")
    if count and not (np.isfinite(array).all() and (array >= 0).all() and array.sum() > 0):
        raise ParameterError("weights must be finite, not negative, and not all 0")
    return array
