"""The home check: what a node tries on its own rows before it holds a tree that another node made.

Prediction takes the mean of leaf values, so that is what is tried: a foreign tree must have a low mean on the
node's normal rows and a high one on its anomalies. Trees that agree add up, so that those which are held are
tried together as well (`learning.together`). Nothing about the labels leaves the node but that a tree was
refused. Quota and vote cap, which need no rows, are in `protocol.defence`;
docs/adr/0410-defence-by-organisation.md says why each is as it is.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from learning.errors import ParameterError
from learning.predict import Predictor
from learning.reach import OwnFit, Reach, own_reach
from learning.rows import Rows
from protocol.identifiers import EstimatorId
from protocol.trees.content import Content
from protocol.values import dataclass

HOME_CHECK = "HOME_CHECK"
SPARE = 2
"""How many normal rows foreign trees may call anomalous together, however few rows there are."""

Alarms = tuple[NDArray[np.intp], NDArray[np.float64]]
"""The normal rows of which a tree does not say 0, and what it says."""


@dataclass(frozen=True)
class TreeRefusal:
    """An estimator that was offered and not taken, and why."""

    id: EstimatorId
    reason: str


@dataclass(frozen=True)
class HomeBehaviour:
    """A tree's mean leaf value over the node's own rows, by their label; NaN without such rows."""

    normal: float
    anomalous: float
    highest: float

    @classmethod
    def of(cls, tree: Content, rows: Rows) -> Self:
        """Try a tree on the rows."""
        return cls.by(Predictor.of([tree]), rows)

    @classmethod
    def by(cls, predictor: Predictor, rows: Rows) -> Self:
        """Try a tree that is laid out already."""
        values = predictor.scores(rows)
        anomalous = rows.y == 1
        found, quiet = values[anomalous], values[~anomalous]
        return cls(
            float(quiet.mean()) if len(quiet) else math.nan,
            float(found.mean()) if len(found) else math.nan,
            float(values.max()),
        )


@dataclass(frozen=True)
class HomeCheck:
    """How a foreign tree must behave on the node's own rows to be held.

    Its mean may be `max_alarms` on normal rows and must be `min_found` on anomalies. Where the node's own way
    to FIT does worse on rows that are new to it, `of_own` of what that reaches is enough. Of fewer than
    `enough_anomalies` no mean is asked for, only that some row be called anomalous.

    All foreign trees that the node holds may call anomalous, by a vote without its own, `together` of the
    alarms that a single one may raise, or two rows. None asks nothing of them together.
    """

    max_alarms: float = 0.01
    min_found: float = 0.50
    enough_anomalies: int = 8
    of_own: float | None = None
    together: float | None = 0.05

    def __post_init__(self) -> None:
        if not (
            0.0 <= self.max_alarms <= 1.0 and 0.0 <= self.min_found <= 1.0 and self.enough_anomalies >= 1
        ):
            raise ParameterError(
                f"home check with max_alarms {self.max_alarms}, min_found {self.min_found} and "
                f"enough_anomalies {self.enough_anomalies}: give two shares and a count of at least 1"
            )
        if self.of_own is not None and not 0.0 < self.of_own <= 1.0:
            raise ParameterError(f"home check with of_own {self.of_own}: give a share above 0, or none")
        if self.together is not None and not 0.0 <= self.together <= 1.0:
            raise ParameterError(f"home check with together {self.together}: give a share, or none")

    def reasons_to_refuse(
        self, trees: Sequence[Content], rows: Rows, threshold: float, own: OwnFit
    ) -> list[str | None]:
        """Say for each tree why not to hold it, or None; the threshold is that of the ensemble's decisions.

        The reason is one word for all rules and has no figure: it is recorded, and would tell others about
        the rows.
        """
        found = [self.behaviour(tree, rows) for tree in trees]
        taken = [self.accepts(behaviour, rows, threshold) for behaviour in found]
        if self.of_own is not None and not all(taken):
            reach = self.reach(rows, own)
            taken = [
                held or self.accepts(behaviour, rows, threshold, reach)
                for held, behaviour in zip(taken, found, strict=True)
            ]
        return [None if held else HOME_CHECK for held in taken]

    def behaviour(self, tree: Content, rows: Rows) -> HomeBehaviour:
        """Try the tree on the rows."""
        return HomeBehaviour.of(tree, rows)

    def reach(self, rows: Rows, own: OwnFit) -> Reach | None:
        """Find out what own estimators reach."""
        return own_reach(rows, own)

    def alarms(self, tree: Content, rows: Rows, vote: str) -> Alarms:
        """Find out what the tree says of the normal rows."""
        one = Predictor.of([tree])
        said = (one.scores(rows) if vote == "mean" else one.votes(rows))[rows.y == 0]
        places = np.flatnonzero(said)
        return places, said[places]

    def rows_together(self, rows: Rows, own: OwnFit | None = None) -> float:
        """Return how many normal rows foreign trees may call anomalous together; with `own`, by its reach."""
        reach = self.reach(rows, own) if own is not None and self.of_own is not None else None
        share = self._bounds(reach)[0] * (1.0 if self.together is None else self.together)
        return max(share * int((rows.y == 0).sum()), SPARE)

    def accepts(self, found: HomeBehaviour, rows: Rows, threshold: float, reach: Reach | None = None) -> bool:
        """Whether a tree that behaves like this may be held, given what own ones reach if that is known."""
        max_alarms, min_found = self._bounds(reach)
        if found.normal > max_alarms:
            return False
        if int(rows.y.sum()) < self.enough_anomalies:
            return found.highest > threshold
        # What finds little must at least be able to decide.
        return found.anomalous >= min_found and (min_found == self.min_found or found.highest > threshold)

    def _bounds(self, reach: Reach | None) -> tuple[float, float]:
        """Return the mean that a tree may have on normal rows, and that it must have on anomalies."""
        if reach is None or self.of_own is None:
            return self.max_alarms, self.min_found
        alarms, found = reach.normal / self.of_own, reach.anomalous * self.of_own
        return max(self.max_alarms, alarms), min(self.min_found, found)
