"""Many federations at once: FIT what is needed once per seed, then run the cases over several processes."""

import itertools
from collections.abc import Callable, Sequence

from joblib import Parallel, delayed

from executor.experiment.engine import Bench, Case
from executor.experiment.outcome import Outcome, Runs
from executor.experiment.split import Split
from learning.fit_cache import FitCache

Advance = Callable[[str], None]


def run_cases(
    split: Split,
    seeds: Sequence[int],
    cases: Sequence[Case],
    advance: Advance,
    *,
    jobs: int = 1,
    train: bool = True,
    keep: Callable[[Case], bool] = lambda _: True,
) -> list[Runs]:
    """The outcomes of each case, one per seed; `advance` is called after each FIT and each run."""
    caches = [_fitted(split, seed, cases, jobs, advance) for seed in seeds]
    kept = [keep(case) for case in cases]
    work = [
        (split, seed, cache, [(cases[i], kept[i]) for i in part], train)
        for seed, cache in zip(seeds, caches, strict=True)
        for part in _parts(len(cases), jobs)
    ]
    collected: list[list[Outcome]] = [[] for _ in seeds]
    results = Parallel(n_jobs=jobs, return_as="generator")(delayed(_run_part)(*item) for item in work)
    per_seed = len(work) // len(seeds)
    for number, outcomes in enumerate(results):
        collected[number // per_seed] += outcomes
        for _ in outcomes:
            advance(f"seed {seeds[number // per_seed]}")
    return [list(runs) for runs in zip(*collected, strict=True)]


def pieces(split: Split, seeds: int, cases: Sequence[Case]) -> int:
    """How often `run_cases` will advance."""
    fits = {
        (case.variant.parameters.fit, case.variant.parameters.n_new, iteration)
        for case in cases
        for iteration in range(case.iterations)
    }
    return seeds * (len(split.nodes) * len(fits) + len(cases))


def _fitted(split: Split, seed: int, cases: Sequence[Case], jobs: int, advance: Advance) -> FitCache:
    cache = FitCache()
    cache.prepare(
        Bench(split, seed, cache).fit_jobs(cases), jobs, lambda _done, _total: advance(f"FIT, seed {seed}")
    )
    return cache


def _parts(count: int, jobs: int) -> list[range]:
    """The cases in as many runs of neighbours as there are processes: neighbours share most trees."""
    pieces = max(1, min(jobs, count))
    cuts = [count * i // pieces for i in range(pieces + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(cuts)]


def _run_part(
    split: Split, seed: int, cache: FitCache, cases: Sequence[tuple[Case, bool]], train: bool
) -> list[Outcome]:
    bench = Bench(split, seed, cache)
    return [bench.run(case, train=train, keep=keep) for case, keep in cases]
