"""The defence against a member that sends well-formed but hostile trees.

The paper's ranking rewards big trees, so one node of twenty can fill every ensemble. Three rules bound it;
nothing about a node's labels leaves the node (docs/adr/0102-robust-ranking.md has the figures):

- quota: in SHARE and CROP, at most ceil(c k / n) trees per origin, n being the origins that offer a tree with
  a split;
- vote cap: in prediction, an origin's trees weigh no more than a share w of all of them would;
- home check: in GET, a foreign tree must be quiet on the node's own normal rows and find some of its
  anomalies.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from learning.errors import ParameterError
from learning.predict import Predictor
from learning.ranking import Ranking
from learning.rows import Rows
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree


@dataclass(frozen=True)
class TreeRefusal:
    """An estimator that was offered and not taken, and why."""

    id: EstimatorId
    reason: str


@dataclass(frozen=True)
class QuotaRanking:
    """Another ranking in which no origin exceeds its quota while others still have trees to offer."""

    inner: Ranking
    c: float

    def __post_init__(self) -> None:
        if not 1.0 <= self.c < math.inf:
            raise ParameterError(f"quota {self.c} is below 1: the quotas would not fill the ensemble")

    def top(self, estimators: Sequence[Estimator], k: int) -> list[int]:
        """Walk down the inner order within the quotas, then fill up from what they held back, in order."""
        n, k = len(estimators), min(k, len(estimators))
        quota = per_origin(estimators, k, self.c)
        reach = min(2 * k, n)
        while True:
            # The inner order's beginning does not depend on how much of it is asked for.
            kept, held = _within(estimators, self.inner.top(estimators, reach), quota)
            if len(kept) >= k or reach == n:
                return (kept + held)[:k]
            reach = min(2 * reach, n)


def per_origin(estimators: Sequence[Estimator], k: int, c: float) -> int:
    """Return how many of k places one origin may take; trees without a split make nobody an origin."""
    origins = {estimator.id.creator for estimator in estimators if estimator.tree.n_internal > 0}
    return math.ceil(c * k / max(len(origins), 1))


def _within(estimators: Sequence[Estimator], order: list[int], quota: int) -> tuple[list[int], list[int]]:
    taken: dict[str, int] = {}
    kept: list[int] = []
    held: list[int] = []
    for position in order:
        creator = estimators[position].id.creator
        taken[creator] = taken.get(creator, 0) + 1
        (kept if taken[creator] <= quota else held).append(position)
    return kept, held


def vote_weights(estimators: Sequence[Estimator], cap: float | None) -> NDArray[np.float64]:
    """Return each tree's weight in the vote: an origin with more than `cap` of the trees weighs like `cap`.

    The mean is taken over the weights, so where few origins are held, as on a ring in its first iterations,
    those at the cap weigh alike and more than the cap of the whole; an origin with few trees stays small.
    """
    count = len(estimators)
    if cap is None:
        return np.ones(count)
    if not 0.0 < cap <= 1.0:
        raise ParameterError(f"vote cap {cap} is not in (0, 1]")
    sizes = Counter(estimator.id.creator for estimator in estimators)
    return np.array([min(1.0, cap * count / sizes[estimator.id.creator]) for estimator in estimators])


@dataclass(frozen=True)
class HomeCheck:
    """How a foreign tree must behave on the node's own rows to be held."""

    max_alarms: float = 0.01
    min_found: float = 0.30
    enough_anomalies: int = 8

    def __post_init__(self) -> None:
        if not (
            0.0 <= self.max_alarms <= 1.0 and 0.0 <= self.min_found <= 1.0 and self.enough_anomalies >= 1
        ):
            raise ParameterError(
                f"home check with max_alarms {self.max_alarms}, min_found {self.min_found} and "
                f"enough_anomalies {self.enough_anomalies}: give two shares and a count of at least 1"
            )

    def reason_to_refuse(self, tree: Tree, rows: Rows) -> str | None:
        """Say why not to hold the tree, or None.

        The reason names the rule and no figure: it is recorded, and figures would tell others about the rows.
        """
        alarms = Predictor.of([tree]).scores(rows) > 0.5
        anomalous = rows.y == 1
        normal = len(rows) - int(anomalous.sum())
        if normal and int(alarms[~anomalous].sum()) > self.max_alarms * normal:
            return "HOME_CHECK_ALARMS"
        anomalies = int(anomalous.sum())
        if anomalies < self.enough_anomalies:
            return None if alarms.any() else "HOME_CHECK_SILENT"
        if int(alarms[anomalous].sum()) < self.min_found * anomalies:
            return "HOME_CHECK_MISSES"
        return None
