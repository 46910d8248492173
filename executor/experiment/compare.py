"""Paired comparison of ways to learn: a difference counts only if its bootstrap interval leaves out 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from executor.data.csv import Floats, Labels
from executor.experiment.metrics import METRICS, Levels, Weighting

RESAMPLES = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Model:
    """One model's test scores and the threshold it is used with."""

    scores: Floats
    threshold: float


@dataclass(frozen=True)
class Difference:
    """How much a variant exceeds the reference in one metric, with the interval over resampled test rows."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of 0, otherwise 0."""
        return int(self.low > 0) - int(self.high < 0)


def resample(y: Labels, variants: Mapping[str, Sequence[Model]], seed: int = 0) -> dict[str, Floats]:
    """Metrics of each variant on the same resampled test sets, the test set itself first.

    A variant's models (nodes and seeds) are averaged; its array is (1 + RESAMPLES, metrics). Normal rows that
    score 0 in every model are drawn as one group, which is the same distribution for a fraction of the work.
    """
    told = y == 1
    for models in variants.values():
        for model in models:
            told |= model.scores != 0
    silent = np.flatnonzero(~told)
    first = np.concatenate([np.flatnonzero(told), silent[:1]])
    counts = np.ones(len(first), dtype=np.int64)
    if len(silent):
        counts[-1] = len(silent)
    draws = np.random.default_rng(seed).multinomial(len(y), counts / len(y), size=RESAMPLES)
    columns = np.ascontiguousarray(np.concatenate([counts[None, :], draws]).T.astype(np.int32))
    weighting = Weighting(y[first], columns)
    return {
        name: np.mean([_measure(model, first, weighting) for model in models], axis=0)
        for name, models in variants.items()
    }


def difference(variant: Floats, reference: Floats) -> dict[str, Difference]:
    """Per metric, the paired difference of two results of `resample`."""
    gaps = variant - reference
    tail = 100 * (1 - CONFIDENCE) / 2
    lows, highs = np.percentile(gaps[1:], [tail, 100 - tail], axis=0)
    return {
        metric: Difference(float(gaps[0, i]), float(lows[i]), float(highs[i]))
        for i, metric in enumerate(METRICS)
    }


def verdict(by_split: Sequence[Difference]) -> str:
    """`better` or `worse` only if at least two splits say so and none says otherwise."""
    if len(by_split) < 2:
        return "one split: no verdict"
    signs = {item.sign for item in by_split}
    return (
        {1: "better", -1: "worse"}.get(signs.pop(), "no difference shown")
        if len(signs) == 1
        else "no difference shown"
    )


def _measure(model: Model, rows: np.ndarray, weighting: Weighting) -> Floats:
    return np.stack(Levels(model.scores[rows]).measure(weighting, model.threshold), axis=1)
