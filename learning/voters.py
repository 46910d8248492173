"""Estimators laid out for scoring rows, by kind; no library builds objects from bytes that others sent.

Rows are compared in float32, and values added in float64, tree by tree in the given order, as scikit-learn
does for forests and for boosted models: the scores of each are the same bit for bit.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from learning.compiled import choose
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.values import dataclass

Floats = NDArray[np.float64]

# The layout of struct Step in _kernel.c.
_STEP = np.dtype([("threshold", "f4"), ("feature", "i4"), ("left", "i4"), ("missing_left", "i4")])
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
    """Single trees, laid out together so that one loop walks them all.

    First stand the roots, tree by tree, then the children of each split as a pair, the right one behind the
    left one. A leaf leads to itself. Rows hold float32, so thresholds are rounded down to float32, and every
    row goes the same way.
    """

    steps: NDArray[np.void]
    values: Floats
    weights: Floats
    n_features: int

    @classmethod
    def of(cls, contents: Sequence[Content], weights: Floats, base: float | None = None) -> Self:
        """Lay out the trees of all contents, each with its weight, behind a leaf that holds the base."""
        sizes = [content.n_nodes for content in contents]
        firsts = [*accumulate(sizes[:-1], initial=0)]
        feature = _joined(contents, "feature")
        splits = np.flatnonzero(feature >= 0)
        roots, left, right = (_joined(contents, name, firsts) for name in ("roots", "left", "right"))
        leading = 0 if base is None else 1
        place = np.empty(len(feature), dtype=np.int32)
        place[roots] = leading + np.arange(len(roots))
        pairs = leading + len(roots) + 2 * np.arange(len(splits), dtype=np.int32)
        place[left[splits]] = pairs
        place[right[splits]] = pairs + 1
        steps = np.zeros(leading + len(feature), dtype=_STEP)
        # What a leaf says of itself: whatever the value, stay.
        steps["threshold"], steps["left"], steps["missing_left"] = np.inf, np.arange(len(steps)), 1
        at = place[splits]
        steps["threshold"][at] = _rounded_down(_joined(contents, "threshold")[splits])
        steps["feature"][at], steps["left"][at] = feature[splits], pairs
        steps["missing_left"][at] = _joined(contents, "missing_left")[splits]
        values = np.zeros(len(steps))
        values[place] = _joined(contents, "value")
        if base is not None:
            values[0] = base
        n_features = int(feature.max()) + 1 if len(splits) else 0
        return cls(steps, values, np.concatenate([np.ones(leading), weights]), n_features)

    def sums(self, values: NDArray[np.float32], vote: bool, form: str | None) -> Floats:
        """Return per row the weighted sum of the trees' values."""
        compiled = choose(form)
        if compiled is None or not values.shape[1]:
            return self._walk(values, vote)
        total = np.empty(len(values))
        n, d = values.shape
        arrays = (values, self.steps, self.values, self.weights, total)
        compiled.predict(n, len(self.steps), d, len(self.weights), int(vote), *arrays)
        return total

    def _walk(self, values: NDArray[np.float32], vote: bool) -> Floats:
        total = np.zeros(len(values))
        for first in range(0, len(values), _ROWS):
            part = values[first : first + _ROWS]
            for root, weight in enumerate(self.weights):
                number = self.values[self._leaves(part, root)]
                total[first : first + _ROWS] += weight * (number > 0.5 if vote else number)
        return total

    def _leaves(self, part: NDArray[np.float32], root: int) -> NDArray[np.int32]:
        """Walk all rows down one tree a level at a time, and return the leaves they end at."""
        at = np.full(len(part), root, dtype=np.int32)
        moving = np.arange(len(part))
        while len(moving):
            step = self.steps[at[moving]]
            going = step["left"] != at[moving]
            moving, step = moving[going], step[going]
            value = part[moving, step["feature"]]
            left = np.where(np.isnan(value), step["missing_left"] != 0, value <= step["threshold"])
            at[moving] = step["left"] + ~left
        return at


def _joined(contents: Sequence[Content], name: str, shifts: Sequence[int] | None = None) -> NDArray[Any]:
    """Return an array of all contents, one after the other; node numbers are shifted."""
    parts = [getattr(content, name) for content in contents]
    if shifts is not None:
        parts = [part + shift for part, shift in zip(parts, shifts, strict=True)]
    return np.concatenate(parts)


def _rounded_down(thresholds: Floats) -> NDArray[np.float32]:
    """Return for each threshold the greatest float32 that is not above it."""
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
        return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)


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
            members.append(TreeVoters.of([content], np.ones(content.n_trees), content.base))
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
