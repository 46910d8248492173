"""The paper's three metrics and three without a threshold, with a defined value on every input."""

from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt

from executor.experiment.table import Floats, Labels

Weights = npt.NDArray[np.int64]


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
    levels = Levels(y, scores)
    once = np.ones((1, len(y)), dtype=np.int64)
    return Scores(*(float(column[0]) for column in levels.measure(once, threshold)))


def as_row(scores: Scores) -> Floats:
    """The metrics in the order of METRICS."""
    return np.array(astuple(scores))


class Levels:
    """A model's test rows sorted by score, so that any reweighting of the rows is measured in linear time."""

    def __init__(self, y: Labels, scores: Floats) -> None:
        self.order = np.argsort(-scores, kind="stable")
        ranked = scores[self.order]
        self.anomalous = y[self.order] == 1
        self.ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
        self.values = ranked[self.ends]

    def measure(self, weights: Weights, threshold: float) -> tuple[Floats, ...]:
        """One array per metric, with one entry per row of `weights` (how often each test row counts)."""
        ranked = weights[:, self.order]
        true = np.cumsum(ranked * self.anomalous, axis=1)[:, self.ends]
        false = np.cumsum(ranked * ~self.anomalous, axis=1)[:, self.ends]
        positives, negatives = true[:, -1], false[:, -1]
        above = int(np.count_nonzero(self.values > threshold))
        hits = true[:, above - 1] if above else np.zeros_like(positives)
        alarms = false[:, above - 1] if above else np.zeros_like(positives)
        recall = _ratio(hits, positives)
        precisions, recalls = _ratio(true, true + false), _ratio(true, positives[:, None])
        return (
            _balanced(recall, _ratio(negatives - alarms, negatives), positives, negatives),
            _ratio(hits, hits + alarms),
            recall,
            (np.diff(recalls, axis=1, prepend=0) * precisions).sum(axis=1),
            _area(true, false, positives, negatives),
            _ratio(2 * true, true + false + positives[:, None]).max(axis=1),
        )


def _ratio(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> Floats:
    """part/whole, or 0 with nothing to divide by: no alarm has precision 0, no anomaly recall 0."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=np.broadcast_to(whole != 0, part.shape))


def _balanced(recall: Floats, specificity: Floats, positives: Weights, negatives: Weights) -> Floats:
    """The mean over the classes that are there: with one class alone, the recall of that class."""
    both = (recall + specificity) / 2
    return np.where(positives == 0, specificity, np.where(negatives == 0, recall, both))


def _area(true: Weights, false: Weights, positives: Weights, negatives: Weights) -> Floats:
    """Area under the ROC curve by trapezes, ties counting half; 0.5 when a class is absent."""
    heights = (true + np.concatenate([np.zeros_like(true[:, :1]), true[:, :-1]], axis=1)) / 2
    area: Floats = (np.diff(false, axis=1, prepend=0) * heights).sum(axis=1)
    pairs = positives * negatives
    return np.asarray(np.divide(area, pairs, out=np.full(area.shape, 0.5), where=pairs != 0))
