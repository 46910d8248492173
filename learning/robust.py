"""The home check: what a node tries on its own rows before it holds a tree that another node made.

Prediction takes the mean of leaf values, so that is what is tried: a foreign tree must have a low mean on the
node's normal rows and a high one on its anomalies. Nothing about the labels leaves the node but that a tree
was refused. Quota and vote cap, which need no rows, are in `protocol.defence`;
docs/adr/0410-defence-by-organisation.md says why each is as it is.
"""

import math
from dataclasses import dataclass
from typing import Self

from learning.errors import ParameterError
from learning.predict import Predictor
from learning.rows import Rows
from protocol.identifiers import EstimatorId
from protocol.trees.content import Content

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
        values = Predictor.of([tree]).scores(rows)
        anomalous = rows.y == 1
        found, quiet = values[anomalous], values[~anomalous]
        return cls(
            float(quiet.mean()) if len(quiet) else math.nan,
            float(found.mean()) if len(found) else math.nan,
            float(values.max()),
        )


@dataclass(frozen=True)
class HomeCheck:
    """How a foreign tree must behave on the node's own rows to be held."""

    max_alarms: float = 0.01
    min_found: float = 0.50
    enough_anomalies: int = 8

    def __post_init__(self) -> None:
        if not (
            0.0 <= self.max_alarms <= 1.0 and 0.0 <= self.min_found <= 1.0 and self.enough_anomalies >= 1
        ):
            raise ParameterError(
                f"home check with max_alarms {self.max_alarms}, min_found {self.min_found} and "
                f"enough_anomalies {self.enough_anomalies}: give two shares and a count of at least 1"
            )

    def reason_to_refuse(self, tree: Content, rows: Rows, threshold: float) -> str | None:
        """Say why not to hold the tree, or None; the threshold is the one at which the ensemble decides.

        The reason is one word for all rules and has no figure: it is recorded, and would tell others about
        the rows.
        """
        return None if self.accepts(self.behaviour(tree, rows), rows, threshold) else HOME_CHECK

    def behaviour(self, tree: Content, rows: Rows) -> HomeBehaviour:
        """Try the tree on the rows."""
        return HomeBehaviour.of(tree, rows)

    def accepts(self, found: HomeBehaviour, rows: Rows, threshold: float) -> bool:
        """Whether a tree that behaves like this may be held."""
        if found.normal > self.max_alarms:
            return False
        if int(rows.y.sum()) < self.enough_anomalies:
            return found.highest > threshold
        return found.anomalous >= self.min_found
