"""The paper's three metrics and three without a threshold, of one model and of the nodes of a federation.

Every metric has a defined value on every input.
"""

from dataclasses import astuple, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from experiments.data import Floats, Labels
from protocol.values import dataclass

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
PARTS = ("test", "train")


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


@dataclass(frozen=True)
class ScoredModel:
    """One model's test scores and the threshold it is used with."""

    scores: Floats
    threshold: float


@dataclass(frozen=True)
class RunOutcome:
    """One run: each node's metrics on the test set and its own rows, its scores, and who made its trees."""

    seed: int
    test: Floats  # (nodes, metrics)
    train: Floats  # (nodes, metrics)
    scores: Floats  # (nodes, test rows)
    thresholds: Floats  # (nodes,)
    origins: npt.NDArray[np.int64]  # (holders, creators)
    share_bytes: tuple[int, ...] = ()
    refusals: int = 0

    def part(self, name: str) -> Floats:
        """The metrics on `test` or `train`."""
        return {"test": self.test, "train": self.train}[name]

    def models(self, nodes: list[int] | None = None) -> list[ScoredModel]:
        """The nodes' test scores, for paired comparison."""
        chosen = range(len(self.scores)) if nodes is None else nodes
        return [ScoredModel(self.scores[i], float(self.thresholds[i])) for i in chosen]


Runs = list[RunOutcome]  # one per seed


def metric(runs: Runs, name: str, part: str = "test") -> Floats:
    """One metric as (seeds, nodes)."""
    return np.array([run.part(part)[:, METRICS.index(name)] for run in runs])


def gains(runs: Runs, baseline: Runs, name: str, part: str = "test") -> Floats:
    """Improvement over the disconnected nodes of the same seed, as (seeds, nodes)."""
    return metric(runs, name, part) - metric(baseline, name, part)


def summary(improvement: Floats) -> dict[str, float | int]:
    """Mean and median over nodes, averaged over seeds; least and greatest node by its average over seeds."""
    by_node = improvement.mean(axis=0)
    return {
        "mean": float(improvement.mean()),
        "median": float(np.median(improvement, axis=1).mean()),
        "min": float(by_node.min()),
        "min_node": int(by_node.argmin()),
        "max": float(by_node.max()),
        "max_node": int(by_node.argmax()),
    }


def all_gains(runs: dict[str, Runs]) -> dict[str, dict[str, dict[str, dict[str, float | int]]]]:
    """`gains.{ring,full}.{test,train}.{bacc,precision,recall}.{mean,...}` from runs by topology."""
    baseline = runs["disconnected"]
    return {
        topology: {
            part: {name: summary(gains(runs[topology], baseline, name, part)) for name in PAPER_METRICS}
            for part in PARTS
        }
        for topology in runs
        if topology != "disconnected"
    }


def origin_shares(runs: Runs) -> Floats:
    """Which share of each holder's trees each creator made, averaged over seeds."""
    shares = [run.origins / np.maximum(run.origins.sum(axis=1, keepdims=True), 1) for run in runs]
    return np.asarray(np.mean(shares, axis=0))
