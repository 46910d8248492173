"""The home check: what a node tries on its own rows before it holds a tree that another node made.

Prediction takes the mean of leaf values, so that is what is tried: a foreign tree must have a low mean on the
node's normal rows and a high one on its anomalies. Nothing about the labels leaves the node but that a tree
was refused. Quota and vote cap, which need no rows, are in `protocol.defence`;
docs/adr/0410-defence-by-organisation.md says why each is as it is.
"""

import math
from collections.abc import Sequence
from typing import Self

from learning.errors import ParameterError
from learning.predict import Predictor
from learning.reach import OwnFit, Reach, own_reach
from learning.rows import Rows
from protocol.identifiers import EstimatorId
from protocol.trees.content import Content
from protocol.values import dataclass

HOME_CHECK = "HOME_CHECK"


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
    """

    max_alarms: float = 0.01
    min_found: float = 0.50
    enough_anomalies: int = 8
    of_own: float | None = None

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

    def accepts(self, found: HomeBehaviour, rows: Rows, threshold: float, reach: Reach | None = None) -> bool:
        """Whether a tree that behaves like this may be held, given what own ones reach if that is known."""
        max_alarms, min_found = self.max_alarms, self.min_found
        if reach is not None and self.of_own is not None:
            max_alarms = max(max_alarms, reach.normal / self.of_own)
            min_found = min(min_found, reach.anomalous * self.of_own)
        if found.normal > max_alarms:
            return False
        if int(rows.y.sum()) < self.enough_anomalies:
            return found.highest > threshold
        # What finds little must at least be able to decide.
        return found.anomalous >= min_found and (min_found == self.min_found or found.highest > threshold)
