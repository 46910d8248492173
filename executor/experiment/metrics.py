"""The paper's three metrics and three without a threshold, with a defined value on every input."""

from dataclasses import astuple, dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from executor.data.csv import Floats, Labels

Weights = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class Scores:
    """Balanced accuracy, precision and recall at a threshold; AP, AUROC and best F1 over all of them."""

    bacc: float
    precision: float
    recall: float
    ap: float
    roc: float
    f1: float


METRICS = tuple(field.name for field in fields(Scores))
PAPER_METRICS = METRICS[:3]
TITLES = {
    "bacc": "BAcc",
    "precision": "Precision",
    "recall": "Recall",
    "ap": "AP",
    "roc": "AUROC",
    "f1": "best F1",
}


def measure(y: Labels, scores: Floats, threshold: float = 0.5) -> Scores:
    """Every metric of one model; anomalous means a score above, not at, the threshold."""
    return Scores(*(float(values[0]) for values in Levels(scores).measure(Weighting.once(y), threshold)))


def as_row(scores: Scores) -> Floats:
    """The metrics in the order of METRICS."""
    return np.array(astuple(scores))


class Weighting:
    """How often each test row counts: one row per test row, one column per resampled test set."""

    def __init__(self, y: Labels, weights: Weights) -> None:
        self.weights = weights
        self.anomalous = y == 1
        self.positives: Weights = weights[self.anomalous].sum(axis=0, dtype=np.int64)
        self.total: Weights = weights.sum(axis=0, dtype=np.int64)

    @classmethod
    def once(cls, y: Labels) -> Self:
        """The test set as it is."""
        return cls(y, np.ones((len(y), 1), dtype=np.int32))


class Levels:
    """A model's distinct scores, highest first: any reweighting of the rows is then quickly measured.

    Rows at the lowest score, nearly all of them in practice, are never touched: they are all that is left.
    """

    def __init__(self, scores: Floats) -> None:
        lowest = scores.min()
        above = np.flatnonzero(scores > lowest)
        self.rows = above[np.argsort(-scores[above], kind="stable")]
        ranked = scores[self.rows]
        self.starts = np.flatnonzero(np.diff(ranked, prepend=np.inf))
        self.values = np.append(ranked[self.starts], lowest)

    def counts(self, weighting: Weighting) -> tuple[Weights, Weights]:
        """True and false alarms at each level and above, per column of the weighting."""
        every = weighting.weights[self.rows]
        true = every * weighting.anomalous[self.rows, None]
        true, every = (self._cumulate(part) for part in (true, every))
        true = np.concatenate([true, weighting.positives[None]])
        every = np.concatenate([every, weighting.total[None]])
        return true, every - true

    def measure(self, weighting: Weighting, threshold: float) -> tuple[Floats, ...]:
        """One array per metric, with one entry per column of the weighting."""
        true, false = self.counts(weighting)
        positives, negatives = true[-1], false[-1]
        above = int(np.count_nonzero(self.values > threshold))
        hits = true[above - 1] if above else np.zeros_like(positives)
        alarms = false[above - 1] if above else np.zeros_like(positives)
        recall = _ratio(hits, positives)
        precisions, recalls = _ratio(true, true + false), _ratio(true, positives)
        return (
            _balanced(recall, _ratio(negatives - alarms, negatives), positives, negatives),
            _ratio(hits, hits + alarms),
            recall,
            (np.diff(recalls, axis=0, prepend=0) * precisions).sum(axis=0),
            _area(true, false),
            _ratio(2 * true, true + false + positives).max(axis=0),
        )

    def _cumulate(self, part: Weights) -> Weights:
        if not len(self.starts):
            return np.zeros((0, part.shape[1]), dtype=np.int64)
        return np.cumsum(np.add.reduceat(part, self.starts, axis=0), axis=0, dtype=np.int64)


def _ratio(part: Weights, whole: Weights) -> Floats:
    """part/whole, or 0 with nothing to divide by: no alarm has precision 0, no anomaly recall 0."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=np.broadcast_to(whole != 0, part.shape))


def _balanced(recall: Floats, specificity: Floats, positives: Weights, negatives: Weights) -> Floats:
    """The mean over the classes that are there: with one class alone, the recall of that class."""
    both = (recall + specificity) / 2
    return np.where(positives == 0, specificity, np.where(negatives == 0, recall, both))


def _area(true: Weights, false: Weights) -> Floats:
    """Area under the ROC curve by trapezes, ties counting half; 0.5 when a class is absent."""
    heights = (true + np.concatenate([np.zeros_like(true[:1]), true[:-1]])) / 2
    area: Floats = (np.diff(false, axis=0, prepend=0) * heights).sum(axis=0)
    pairs = true[-1] * false[-1]
    return np.asarray(np.divide(area, pairs, out=np.full(area.shape, 0.5), where=pairs != 0))
