"""Variants on the same splits, topologies and attacks, each held against the first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from executor.data.csv import Floats
from executor.experiment.compare import Difference, difference, resample, verdict
from executor.experiment.engine import Case
from executor.experiment.metrics import METRICS
from executor.experiment.outcome import Runs, metric
from executor.experiment.split import Split


@dataclass(frozen=True)
class Level:
    """One variant on one topology, clean or attacked: means over the honest nodes, seeds and splits."""

    variant: str
    topology: str
    attack: str
    metrics: dict[str, float]
    worst_recall: float
    share_bytes: float
    refusals: float


@dataclass(frozen=True)
class Gap:
    """One variant against the first on one topology and metric, split by split."""

    variant: str
    reference: str
    topology: str
    metric: str
    by_split: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or that nothing was shown."""
        return verdict(self.by_split)


@dataclass(frozen=True)
class Comparison:
    """Everything that `executor simulate` reports."""

    source: str
    split_seeds: tuple[int, ...]
    seeds: int
    nodes: int
    levels: tuple[Level, ...]
    gaps: tuple[Gap, ...]


def compare(
    source: str, splits: Sequence[Split], seeds: int, cases: Sequence[Case], results: Sequence[Sequence[Runs]]
) -> Comparison:
    """Average what each case did, and take paired differences of the clean ones on each topology."""
    levels = [_level(case, [result[i] for result in results]) for i, case in enumerate(cases)]
    return Comparison(
        source=source,
        split_seeds=tuple(part.seed for part in splits),
        seeds=seeds,
        nodes=len(splits[0].nodes),
        levels=tuple(levels),
        gaps=tuple(_gaps(splits, cases, results)),
    )


def _level(case: Case, by_split: Sequence[Runs]) -> Level:
    nodes = len(by_split[0][0].test)
    honest = [i for i in range(nodes) if case.attack is None or i != case.hostile]
    means = {
        name: float(np.mean([metric(runs, name)[:, honest].mean() for runs in by_split])) for name in METRICS
    }
    worst = min(float(metric(runs, "recall")[:, honest].mean(axis=0).min()) for runs in by_split)
    runs = [run for kept in by_split for run in kept]
    shares = [size for run in runs for size in run.share_bytes]
    return Level(
        variant=case.variant.name,
        topology=case.topology,
        attack=case.attack or "clean",
        metrics=means,
        worst_recall=worst,
        share_bytes=float(np.median(shares)) if shares else 0.0,
        refusals=float(np.mean([run.refusals for run in runs])),
    )


def _gaps(splits: Sequence[Split], cases: Sequence[Case], results: Sequence[Sequence[Runs]]) -> list[Gap]:
    gaps = []
    for topology in dict.fromkeys(case.topology for case in cases):
        chosen = {
            c.variant.name: i for i, c in enumerate(cases) if c.topology == topology and c.attack is None
        }
        first, *others = chosen
        if not others:
            continue
        resampled = [_resampled(part, chosen, result) for part, result in zip(splits, results, strict=True)]
        for other in others:
            differences = [difference(values[other], values[first]) for values in resampled]
            gaps += [
                Gap(other, first, topology, name, tuple(gap[name] for gap in differences)) for name in METRICS
            ]
    return gaps


def _resampled(part: Split, chosen: dict[str, int], result: Sequence[Runs]) -> dict[str, Floats]:
    models = {name: [model for run in result[i] for model in run.models()] for name, i in chosen.items()}
    return resample(part.y_test, models)
