"""What ships beside other ways to learn, without any attack: the quality goals, and paired differences."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from experiments.claims import Goal, at_least, at_most
from experiments.comparison import Difference, difference, resample
from experiments.engine import Advance, Case, run_cases
from experiments.metrics import TITLES, Runs, Scores, gains, measure, metric
from experiments.split import Split
from experiments.variants import Variant, paper_variant
from learning.fit import FitOptions, FitTask
from learning.fit_cache import FitCache
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.robust import HomeCheck
from learning.rows import Rows

RING, FULL = "ring", "full"
PAPER, UNDEFENDED, DEFAULT, EXTRA, BOOSTED, UNION = (
    "paper ranking",
    "default without defence",
    "default",
    "extra trees, 100 places",
    "boosted models, 100 places",
    "naive union",
)
ALONE = {rule: rule for rule in (PAPER, EXTRA, BOOSTED)}  # whose lone nodes a rule is held against
QUALITY = {"bacc": 0.90, "precision": 0.91, "recall": 0.81, "ap": 0.90}
WORST_CLEAN = 0.75
SHARE_MEDIAN, SHARE_MAX = 4.0, 5.0
OF_OWN = 0.7
POOLED_TREES, POOLED_PER_JOB = 50, 5


def rules(nodes: int) -> list[Variant]:
    """The ways to learn that are compared; the union keeps everybody's first trees and ranks nothing."""
    as_own = HomeCheck(of_own=OF_OWN)
    union = Parameters(
        fit=FitOptions(kind="balanced"), quota=None, vote_cap=None, home_check=None, n_max=10 * nodes
    )
    return [
        replace(paper_variant(), name=PAPER),
        Variant(UNDEFENDED, Parameters(quota=None, vote_cap=None, home_check=None)),
        Variant(DEFAULT, Parameters()),
        Variant(EXTRA, Parameters(fit=FitOptions(kind="extra"), n_max=100, home_check=as_own)),
        Variant(BOOSTED, Parameters(fit=FitOptions(kind="boosted"), n_max=100, home_check=as_own)),
        Variant(UNION, union),
    ]


def cases_for(nodes: int) -> list[Case]:
    """Every rule on ring and full (the union, one exchange, on full alone)."""
    cases = [Case(rule, "disconnected") for rule in rules(nodes) if rule.name in {DEFAULT, *ALONE}]
    for variant in rules(nodes):
        for topology in (RING, FULL):
            if variant.name == UNION and topology == RING:
                continue
            cases.append(Case(variant, topology, iterations=1 if variant.name == UNION else 4))
    return cases


@dataclass
class MethodsResult:
    """Runs by rule and topology."""

    split: Split
    seeds: tuple[int, ...]
    runs: dict[tuple[str, str], Runs]
    pairs: dict[str, dict[str, Difference]] = field(default_factory=dict)

    def gain(self, rule: str, topology: str) -> float:
        """Clean mean BAcc gain over the same trees used alone."""
        base = self.runs[ALONE.get(rule, DEFAULT), "disconnected"]
        return float(gains(self.runs[rule, topology], base, "bacc").mean())

    def combinations(self) -> list[tuple[str, str]]:
        """Rule and topology, in order."""
        found = dict.fromkeys((rule, topology) for rule, topology in self.runs if topology != "disconnected")
        return list(found)

    def goals(self) -> list[Goal]:
        """The goals for the shipped default."""
        goals = []
        for topology in (RING, FULL):
            runs = self.runs[DEFAULT, topology]
            for name, bound in QUALITY.items():
                goals.append(
                    at_least(f"Default, {topology}, mean {TITLES[name]}", bound, metric(runs, name).mean())
                )
            worst = metric(runs, "recall").mean(axis=0).min()
            goals.append(at_least(f"Default, {topology}, worst node's recall", WORST_CLEAN, worst))
            shares = np.concatenate([run.share_bytes for run in runs]) / 1e3
            goals.append(
                at_most(f"Default, {topology}, median SHARE, kB", SHARE_MEDIAN, float(np.median(shares)))
            )
            goals.append(at_most(f"Default, {topology}, greatest SHARE, kB", SHARE_MAX, float(shares.max())))
        for rule, topology in itertools.product((EXTRA, BOOSTED), (RING, FULL)):
            value = metric(self.runs[rule, topology], "ap").mean()
            goals.append(at_least(f"Not shipped: {rule}, {topology}, mean AP", QUALITY["ap"], value))
        return goals


def run_methods(split: Split, seeds: Sequence[int], advance: Advance, *, jobs: int = 1) -> MethodsResult:
    """Run every case."""
    cases = cases_for(len(split.nodes))
    outcomes = run_cases(split, seeds, cases, advance, jobs=jobs, train=False)
    runs = {(case.variant.name, case.topology): kept for case, kept in zip(cases, outcomes, strict=True)}
    result = MethodsResult(split, tuple(seeds), runs)
    _compare(result)
    return result


def pooled_forest(
    split: Split, kind: str, threshold: float, advance: Advance, *, jobs: int, seed: int = 0
) -> Scores:
    """The bound that a federation may not reach for: one forest trained on everybody's rows."""
    rows = Rows.of(
        np.concatenate([node.X for node in split.nodes]), np.concatenate([node.y for node in split.nodes])
    )
    limits = Parameters().limits(rows.n_features)
    first = FitTask("pooled", 0, 0, POOLED_PER_JOB, seed, FitOptions(kind=kind), limits)
    tasks = [
        replace(first, iteration=i, first_counter=i * POOLED_PER_JOB)
        for i in range(POOLED_TREES // POOLED_PER_JOB)
    ]
    cache = FitCache()
    cache.prepare(
        [(rows, task, None) for task in tasks], jobs, lambda _done, _total: advance("pooled forest")
    )
    trees = [estimator.tree for task in tasks for estimator in cache.fit(rows, task)]
    return measure(split.y_test, Predictor.of(trees).scores(split.X_test), threshold)


def _compare(result: MethodsResult) -> None:
    """Paired intervals of the clean default against its rivals in the same run."""
    models = {
        f"{rule}, {topology}": [model for run in result.runs[rule, topology] for model in run.models()]
        for rule, topology in result.combinations()
    }
    resampled = resample(result.split.y_test, models)
    union = f"{UNION}, {FULL}"
    for topology in (RING, FULL):
        default, extra = f"{DEFAULT}, {topology}", f"{EXTRA}, {topology}"
        rivals = [(default, f"{rule}, {topology}") for rule in (PAPER, UNDEFENDED)]
        boosted = f"{BOOSTED}, {topology}"
        pairs = [(default, union), (extra, union), *rivals, (extra, default), (boosted, default)]
        for ours, rival in pairs:
            result.pairs[f"{ours} - {rival}"] = difference(resampled[ours], resampled[rival])
