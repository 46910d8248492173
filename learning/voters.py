"""Estimators laid out for scoring rows, by kind; no library builds objects from bytes that others sent.

Rows are compared in float32, and values added in float64, tree by tree in the given order, as scikit-learn
does for forests and for boosted models: the scores of each are the same bit for bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from learning.compiled import choose
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content

Floats = NDArray[np.float64]

# The layout of struct Step in _kernel.c.
_STEP = np.dtype(
    [("number", "f8"), ("feature", "i4"), ("left", "i4"), ("right", "i4"), ("missing_left", "i4")]
)
_ROWS = 4_096


class Voters(Protocol):
    """Some estimators of one kind, each with its weight in the vote."""

    @property
    def n_features(self) -> int:
        """How many columns rows must have."""
        ...

    def sums(self, values: NDArray[np.float32], vote: bool, form: str | None) -> Floats:
        """Return per row the weighted sum of P(anomalous), or of 1 where it exceeds 0.5."""
        ...


@dataclass(frozen=True, eq=False)
class TreeVoters:
    """Single trees, laid out together so that one loop walks them all."""

    steps: NDArray[np.void]
    roots: NDArray[np.int32]
    weights: Floats
    n_features: int

    @classmethod
    def of(cls, contents: Sequence[Content], weights: Floats) -> Self:
        """Lay out the trees of all contents, each with its weight."""
        sizes = np.array([content.n_nodes for content in contents], dtype=np.int64)
        firsts = np.cumsum(sizes) - sizes
        steps = np.zeros(int(sizes.sum()), dtype=_STEP)
        for content, first in zip(contents, firsts, strict=True):
            part = steps[first : first + content.n_nodes]
            leaf = content.feature < 0
            part["number"] = np.where(leaf, content.value, content.threshold)
            part["feature"] = content.feature
            part["left"] = content.left + first
            part["right"] = content.right + first
            part["missing_left"] = content.missing_left
        roots = [content.roots + first for content, first in zip(contents, firsts, strict=True)]
        n_features = int(steps["feature"].max()) + 1 if len(steps) else 0
        return cls(steps, np.concatenate(roots).astype(np.int32), weights, n_features)

    def after(self, base: float) -> Self:
        """Return the trees with a leaf before them, so that their values are added to its own."""
        first = np.zeros(1, dtype=_STEP)
        first["number"], first["feature"] = base, -1
        steps = np.concatenate([first, self.steps])
        for side in ("left", "right"):
            steps[side][1:] += 1
        roots = np.concatenate([[0], self.roots + 1]).astype(np.int32)
        return type(self)(steps, roots, np.concatenate([[1.0], self.weights]), self.n_features)

    def sums(self, values: NDArray[np.float32], vote: bool, form: str | None) -> Floats:
        """Return per row the weighted sum of the trees' values."""
        compiled = choose(form)
        if compiled is None:
            return self._walk(values, vote)
        total = np.empty(len(values))
        n, d = values.shape
        arrays = (values, self.steps, self.roots, self.weights, total)
        compiled.predict(n, len(self.steps), d, len(self.roots), int(vote), *arrays)
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


@dataclass(frozen=True, eq=False)
class BoostedVoters:
    """Boosted estimators: in each, values are added to the base, and the sum is the log-odds."""

    members: tuple[TreeVoters, ...]
    weights: Floats
    n_features: int

    @classmethod
    def of(cls, contents: Sequence[Content], weights: Floats) -> Self:
        """Lay out each estimator by itself."""
        members = []
        for content in contents:
            if not isinstance(content, Boosted):
                raise TypeError(f"{type(content).__name__} is no boosted estimator")
            members.append(TreeVoters.of([content], np.ones(content.n_trees)).after(content.base))
        return cls(tuple(members), weights, max(member.n_features for member in members))

    def log_odds(self, values: NDArray[np.float32], place: int, form: str | None) -> Floats:
        """Return per row the log-odds that one of the estimators gives."""
        return self.members[place].sums(values, vote=False, form=form)

    def sums(self, values: NDArray[np.float32], vote: bool, form: str | None) -> Floats:
        """Return per row the weighted sum of the estimators' probabilities, or votes."""
        from scipy.special import expit  # noqa: PLC0415 - slow to load, and for this kind alone

        total = np.zeros(len(values))
        for place, weight in enumerate(self.weights):
            probability = expit(self.log_odds(values, place, form))
            total += weight * (probability > 0.5 if vote else probability)
        return total
