"""Ways to learn, compared: a difference counts only if its paired bootstrap interval leaves out 0."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.data import SOURCE, DataTable, Floats, Labels
from experiments.engine import Advance, Case, check_hostile, make_topology, pieces, run_cases
from experiments.metrics import METRICS, Levels, Runs, ScoredModel, Weighting, metric
from experiments.split import IMBALANCE, PAPER_NODES, PAPER_SEED, Split, node_name, split
from experiments.variants import Variant
from learning.attacks import check as check_attack
from learning.errors import ParameterError
from protocol.values import dataclass

RESAMPLES = 1000
CONFIDENCE = 0.95
SAFE_IMBALANCE = 0.4  # below one half cut points never cross, so every node gets rows of both classes


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


def resample(y: Labels, variants: Mapping[str, Sequence[ScoredModel]], seed: int = 0) -> dict[str, Floats]:
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


@dataclass(frozen=True)
class ComparisonPlan:
    """Which federations to run: every variant on every topology, clean and under each attack, on each split.

    What cannot be run is refused here, before hours of FIT.
    """

    variants: Sequence[Variant]
    topologies: Sequence[str]
    attacks: Sequence[str] = ()
    hostile: int = 8
    iterations: int = 4
    schedule: str = "synchronous"
    nodes: int = PAPER_NODES
    imbalance: float | None = None
    seeds: int = 1
    split_seeds: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.imbalance is not None and not 0.0 <= self.imbalance <= 1.0:
            raise ParameterError(f"imbalance {self.imbalance} is not in [0, 1]")
        names = [node_name(i, self.nodes) for i in range(self.nodes)]
        for topology in self.topologies:
            make_topology(topology, names, 0)
        if self.attacks:
            check_hostile(self.hostile, self.nodes)
        for attack, variant in itertools.product(self.attacks, self.variants):
            check_attack(attack, variant.parameters.fit.estimator_kind)

    def cases(self) -> list[Case]:
        """Every federation, in the order of the tables."""
        return [
            Case(variant, topology, attack, (self.hostile,) if attack else (), self.iterations, self.schedule)
            for topology in dict.fromkeys(self.topologies)
            for attack in (None, *self.attacks)
            for variant in self.variants
        ]

    def splits(self, table: DataTable) -> list[Split]:
        """The table over the nodes: once to look, twice to compare, as no verdict rests on a single split."""
        twice = (PAPER_SEED,) if len(self.variants) == 1 else (PAPER_SEED, PAPER_SEED + 1)
        imbalance = self.imbalance
        if imbalance is None:
            imbalance = IMBALANCE if table.source == SOURCE else SAFE_IMBALANCE
        seeds = dict.fromkeys(self.split_seeds or twice)
        return [split(table, self.nodes, seed, imbalance) for seed in seeds]

    def pieces(self, splits: Sequence[Split]) -> int:
        """How often `run` will advance."""
        return sum(pieces(part, self.seeds, self.cases()) for part in splits)

    def run(self, source: str, splits: Sequence[Split], advance: Advance, *, jobs: int = 1) -> "Comparison":
        """Run every federation; test scores are kept for the clean ones, which are compared."""
        cases = self.cases()
        seeds = range(self.seeds)
        results = [
            run_cases(
                part, seeds, cases, advance, jobs=jobs, train=False, keep=lambda case: case.attack is None
            )
            for part in splits
        ]
        return compare(source, splits, self.seeds, cases, results)


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
    honest = [i for i in range(nodes) if i not in case.hostile]
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


def _measure(model: ScoredModel, rows: np.ndarray, weighting: Weighting) -> Floats:
    return np.stack(Levels(model.scores[rows]).measure(weighting, model.threshold), axis=1)
