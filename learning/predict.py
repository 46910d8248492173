"""Prediction over plain-array trees, without building scikit-learn objects from bytes that others sent.

Rows are compared in float32 and leaf values added tree by tree in the given order, as scikit-learn's forests
do, so scores of equal weights are the same bit for bit. Decisions are the same but at rounding ties: a forest
adds up both classes and takes the greater sum, where here one sum is held against the threshold.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from learning.errors import ParameterError, RowsError
from learning.kinds import KINDS
from learning.rows import Rows, as_features
from learning.voters import Floats, Voters
from protocol.trees.content import Content
from protocol.values import dataclass


@dataclass(frozen=True, eq=False)
class Predictor:
    """Estimators laid out for scoring, with the weight of each in the vote."""

    voters: tuple[Voters, ...]
    whole: float
    """The sum of all weights."""
    n_features: int

    @classmethod
    def of(cls, contents: Sequence[Content], weights: Sequence[float] | Floats | None = None) -> Self:
        """Lay out the estimators; without weights each counts the same."""
        weights = _weights(weights, len(contents))
        voters = []
        for kind, places in groupby(range(len(contents)), lambda place: contents[place].kind):
            run = list(places)
            voters.append(KINDS[kind].voters([contents[place] for place in run], weights[run]))
        n_features = max((part.n_features for part in voters), default=0)
        return cls(tuple(voters), float(weights.sum()), n_features)

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
        total = np.zeros(len(values))
        for part in self.voters:
            total += part.sums(values, vote, form)
        return total / self.whole if self.voters else total


def _weights(weights: Sequence[float] | Floats | None, count: int) -> Floats:
    array = np.ones(count) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(f"{len(array)} weights for {count} trees")
    if count and not (np.isfinite(array).all() and (array >= 0).all() and array.sum() > 0):
        raise ParameterError("weights must be finite, not negative, and not all 0")
    return array
