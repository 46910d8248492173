"""What a node's own way to FIT reaches on rows that it did not train on: the measure for foreign estimators.

Each half of the rows is held against estimators of the other half, so that every row is new to what scores
it. How easily anomalies are told differs from data to data, and how sure estimators are from kind to kind; a
bound that suits all of them can only be relative to this.
"""

import numpy as np

from learning.fit_options import FitOptions
from learning.kinds import KINDS
from learning.predict import Predictor
from learning.rows import Rows
from learning.seeds import derive, generator
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass

PER_HALF = 2


@dataclass(frozen=True)
class OwnFit:
    """How a node fits estimators, and whose draws those are."""

    node: str
    seed: int
    options: FitOptions
    limits: TreeLimits


@dataclass(frozen=True)
class Reach:
    """Mean scores of own estimators over rows that are new to them, by label."""

    normal: float
    anomalous: float


def own_reach(rows: Rows, fit: OwnFit) -> Reach | None:
    """Return what own estimators reach on new rows, or None if a half would be without one of the labels."""
    halves = _halves(rows, fit)
    if any(len(np.unique(rows.y[half])) < 2 for half in halves):
        return None
    kind = KINDS[fit.options.estimator_kind]
    found = []
    for number, (known, new) in enumerate((halves, halves[::-1])):
        own = Rows(rows.X[known], rows.y[known])
        for i in range(PER_HALF):
            seed = derive(fit.seed, fit.node, 0, f"reach:{number * PER_HALF + i}")
            scores = Predictor.of([kind.fit(own, seed, fit.options, fit.limits)]).scores(rows.X[new])
            anomalous = rows.y[new] == 1
            found.append((scores[~anomalous].mean(), scores[anomalous].mean()))
    normal, anomalous = np.mean(found, axis=0).tolist()
    return Reach(normal, anomalous)


def _halves(rows: Rows, fit: OwnFit) -> tuple[np.ndarray, np.ndarray]:
    """Deal the rows of each label to two halves; the same rows always go the same ways."""
    rng = generator(fit.seed, fit.node, 0, "reach")
    parts = [rng.permutation(np.flatnonzero(rows.y == label)) for label in (0, 1)]
    return (
        np.sort(np.concatenate([part[: len(part) // 2] for part in parts])),
        np.sort(np.concatenate([part[len(part) // 2 :] for part in parts])),
    )
