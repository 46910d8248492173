"""The paper's experiment: three topologies on the same trees, and other rankings beside the kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from experiments.claims import Claim, Goal, at_least, at_most, holds, judge
from experiments.comparison import Difference, difference, resample
from experiments.engine import Advance, Case, Engine, run_cases
from experiments.metrics import Runs, ScoredModel, gains
from experiments.split import Split
from experiments.variants import Variant, paper_variant
from learning.fit_cache import FitCache
from learning.fit_options import FitOptions
from learning.kernel import KernelOptions

TOPOLOGIES = ("disconnected", "ring", "full")
FEDERATED = TOPOLOGIES[1:]
KERNEL = "kernel"
NORMALISED = "kernel, normalised"
RANKINGS = (KERNEL, NORMALISED, "size", "random", "newest", "supervised")
QUICK_RANKINGS = (KERNEL, "random")
NODE2_GAIN, MEAN_GAIN, OVER_RANDOM, RECALL_GAIN = 0.28, 0.055, 0.02, 0.10
SHARE_MEDIAN, SHARE_MAX = 3_000, 5_000

By = dict[str, dict[str, Runs]]


@dataclass
class PaperResult:
    """Runs by ranking and topology (the disconnected ones apart), and what follows from them."""

    split: Split
    seeds: tuple[int, ...]
    fit: str
    runs: By
    disconnected: Runs
    against: dict[str, dict[str, dict[str, Difference]]] = field(default_factory=dict)
    full_over_ring: dict[str, Difference] = field(default_factory=dict)
    repeated: bool = False

    @property
    def paper(self) -> dict[str, Runs]:
        """The paper's own three settings."""
        return {"disconnected": self.disconnected, **self.runs[KERNEL]}

    def claims(self) -> list[Claim]:
        """The paper's claims, judged."""
        return judge(self.split.is_papers(), self.paper, self.full_over_ring)

    def goals(self) -> list[Goal]:
        """This project's goals for the reproduction."""
        kernel, base = self.runs[KERNEL], self.disconnected
        bacc = {t: gains(kernel[t], base, "bacc") for t in FEDERATED}
        shares = np.concatenate([run.share_bytes for t in FEDERATED for run in kernel[t]])
        first = all(bool((values.argmax(axis=1) == 2).all()) for values in bacc.values())
        train = max(gains(kernel[t], base, "bacc", "train").mean() for t in FEDERATED)
        return [
            holds("Every row of the paper's table of sizes", self.split.is_papers(), "see the table"),
            holds("Node 2 has the greatest BAcc gain in every run", first, "see the claims"),
            at_least(
                "Node 2's BAcc gain, least run", NODE2_GAIN, min(v[:, 2].min() for v in bacc.values()), True
            ),
            *(at_least(f"Mean BAcc gain, {t}", MEAN_GAIN, bacc[t].mean(), True) for t in FEDERATED),
            *(
                at_least(f"Mean BAcc gain above random ranking, {t}", OVER_RANDOM, self._over_random(t), True)
                for t in FEDERATED
            ),
            *(
                at_least(f"Mean recall gain, {t}", RECALL_GAIN, gains(kernel[t], base, "recall").mean(), True)
                for t in FEDERATED
            ),
            at_most("Mean BAcc gain on own training rows, either topology", 0.0, train, True),
            at_most("Median SHARE of ten trees, kB", SHARE_MEDIAN / 1e3, float(np.median(shares)) / 1e3),
            at_most("Greatest SHARE, kB", SHARE_MAX / 1e3, float(shares.max()) / 1e3),
            holds("Same seed, same bytes", self.repeated, "FIT of one node twice, digests compared"),
        ]

    def missed_by_seed(self) -> dict[int, list[str]]:
        """The goals that each seed by itself would miss: one seed is no measurement of the method."""
        return {seed: self._alone(place).missed() for place, seed in enumerate(self.seeds)}

    def missed(self) -> list[str]:
        """The goals that are missed."""
        return [goal.text for goal in self.goals() if not goal.met]

    def _alone(self, place: int) -> "PaperResult":
        runs = {name: {t: [kept[place]] for t, kept in by.items()} for name, by in self.runs.items()}
        return replace(self, seeds=(self.seeds[place],), runs=runs, disconnected=[self.disconnected[place]])

    def _over_random(self, topology: str) -> float:
        means = (gains(self.runs[r][topology], self.disconnected, "bacc").mean() for r in (KERNEL, "random"))
        return float(next(means) - next(means))


def variant_for(ranking: str, fit: str) -> Variant:
    """The paper's algorithm with another ranking."""
    changes: dict[str, object] = {"fit": FitOptions(kind=fit)}
    if ranking == NORMALISED:
        changes["kernel"] = KernelOptions(normalise=True)
    elif ranking != KERNEL:
        changes["ranking"] = ranking
    return replace(paper_variant(**changes), name=ranking)


def cases_for(fit: str, rankings: Sequence[str]) -> list[Case]:
    """The disconnected nodes, then each ranking on ring and full."""
    cases = [Case(variant_for(KERNEL, fit), "disconnected")]
    return cases + [
        Case(variant_for(ranking, fit), topology) for ranking in rankings for topology in FEDERATED
    ]


def run_paper(
    split: Split,
    seeds: Sequence[int],
    advance: Advance,
    *,
    fit: str = "plain",
    rankings: Sequence[str] = RANKINGS,
    jobs: int = 1,
) -> PaperResult:
    """FIT every tree once, then run each ranking and topology on them, advancing after each FIT and run."""
    cases = cases_for(fit, rankings)
    disconnected, *federated = run_cases(split, seeds, cases, advance, jobs=jobs)
    runs: By = {ranking: {} for ranking in rankings}
    for case, kept in zip(cases[1:], federated, strict=True):
        runs[case.variant.name][case.topology] = kept
    result = judged(PaperResult(split, tuple(seeds), fit, runs, disconnected))
    result.repeated = _repeats(split, seeds[0], variant_for(KERNEL, fit))
    return result


def judged(result: PaperResult) -> PaperResult:
    """Add paired intervals: the full topology over the ring, and each ranking over the kernel."""
    y = result.split.y_test
    for topology in FEDERATED:
        models = {name: _models(by[topology]) for name, by in result.runs.items()}
        resampled = resample(y, models)
        for name in models:
            if name != KERNEL:
                gap = difference(resampled[name], resampled[KERNEL])
                result.against.setdefault(name, {})[topology] = gap
    both = resample(y, {t: _models(result.runs[KERNEL][t]) for t in FEDERATED})
    result.full_over_ring = difference(both["full"], both["ring"])
    return result


def _models(runs: Runs) -> list[ScoredModel]:
    return [model for run in runs for model in run.models()]


def _repeats(split: Split, seed: int, variant: Variant) -> bool:
    """Whether FIT of one node, done twice, gives the same bytes."""
    first, second = (Engine(split, seed, FitCache()).first_fit(variant) for _ in range(2))
    return [e.tree.to_bytes() for e in first] == [e.tree.to_bytes() for e in second]
