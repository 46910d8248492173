"""Federations in memory: FIT once per split and seed, then run every variant, topology and attack on it."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed

from experiments.metrics import RunOutcome, Runs, as_row, measure
from experiments.split import Split
from experiments.tree_scores import TreeScores
from experiments.variants import Checked, RememberedCheck, Variant, home_threshold, scale
from learning.actions import NodeState, fit_task, predictor
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit import FitTask
from learning.fit_cache import FitCache, Job
from learning.kernel import KernelOptions
from learning.parameters import Parameters
from learning.rows import Rows
from learning.simulator import Member, Simulation, simulate
from learning.topology import Neighbours, RandomGraph
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.defence import Membership
from protocol.trees.estimator import Estimator
from protocol.values import dataclass

Advance = Callable[[str], None]
"""Called after each piece of work with what it was."""
ORGANISATIONS = 4
TOPOLOGIES = (Kind.DISCONNECTED, Kind.RING, Kind.FULL)


@dataclass(frozen=True)
class Case:
    """One federation to run: a variant on a topology, with hostile nodes or without.

    `organisations` deals the nodes in blocks, as the network does; every node is its own if there are fewer.
    """

    variant: Variant
    topology: str
    attack: str | None = None
    hostile: tuple[int, ...] = ()
    iterations: int = 4
    schedule: str = "synchronous"
    organisations: int = ORGANISATIONS


class Engine:
    """One split and one seed; trees keep their test scores, so an ensemble costs one addition per tree."""

    def __init__(self, split: Split, seed: int, cache: FitCache) -> None:
        self.split = split
        self.seed = seed
        self.cache = cache
        self.rows = {node.name: Rows.of(node.X, node.y) for node in split.nodes}
        self.tests = TreeScores(split.X_test)
        self.checked = Checked()

    @cached_property
    def scale(self) -> KernelOptions:
        """The units of the rows of all nodes together."""
        return scale(self.split)

    def run(self, case: Case, *, train: bool = True, keep: bool = True) -> RunOutcome:
        """Run one federation and measure every node; without `keep`, the outcome holds no test scores."""
        simulation = self.simulate(case)
        shares = tuple(r.share.n_bytes for r in simulation.records if r.share.recipients)
        refusals = sum(len(r.refusals) for r in simulation.records)
        return self.measure(case, simulation.ensembles(), shares, refusals, train=train, keep=keep)

    def measure(
        self,
        case: Case,
        ensembles: Mapping[str, Ensemble],
        share_bytes: tuple[int, ...],
        refusals: int,
        *,
        train: bool = True,
        keep: bool = True,
    ) -> RunOutcome:
        """Measure what the nodes of a federation hold in the end, wherever it ran."""
        parameters = replace(self.parameters(case.variant), members=self._membership(case))
        thresholds, scores, own = [], [], []
        for name, ensemble in ensembles.items():
            rows = self.rows[name]
            threshold = parameters.threshold
            if case.variant.home_threshold:
                threshold = home_threshold(name, ensemble, parameters, rows)
            thresholds.append(threshold)
            scores.append(self.tests.mean(name, ensemble, parameters))
            if train:
                values = predictor(name, ensemble, parameters).scores(rows.X)
                own.append(as_row(measure(rows.y, values, threshold)))
        pairs = zip(scores, thresholds, strict=True)
        test = np.array([as_row(measure(self.split.y_test, values, at)) for values, at in pairs])
        return RunOutcome(
            seed=self.seed,
            test=test,
            train=np.array(own) if train else np.full_like(test, np.nan),
            scores=np.array(scores) if keep else np.zeros((0, 0)),
            thresholds=np.array(thresholds),
            origins=self._origins(ensembles),
            share_bytes=share_bytes,
            refusals=refusals,
        )

    def simulate(self, case: Case) -> Simulation:
        """Run one federation."""
        parameters = self.parameters(case.variant)
        members = {name: Member(rows, parameters) for name, rows in self.rows.items()}
        for place in case.hostile:
            name = list(members)[check_hostile(place, len(members))]
            members[name] = replace(members[name], attack=case.attack)
        graph = make_topology(case.topology, tuple(self.rows), self.seed)
        return simulate(
            members,
            graph,
            iterations=case.iterations,
            seed=self.seed,
            schedule=case.schedule,
            cache=self.cache,
            organisations=dict(self._membership(case).nodes),
        )

    def fit_jobs(self, cases: Sequence[Case]) -> list[Job]:
        """Every honest FIT that the cases need, the largest nodes first: none is then left for the end."""
        jobs: dict[FitTask, Job] = {}
        for case in cases:
            for name, rows in self.rows.items():
                for iteration in range(case.iterations):
                    task = self._task(case.variant, name, iteration)
                    jobs[task] = (rows, task, None)
        return sorted(jobs.values(), key=lambda job: -len(job[0]))

    def first_fit(self, variant: Variant) -> tuple[Estimator, ...]:
        """What the first node trains in the first iteration."""
        name = next(iter(self.rows))
        return self.cache.fit(self.rows[name], self._task(variant, name, 0))

    def _membership(self, case: Case) -> Membership:
        return Membership.of(dealt(tuple(self.rows), case.organisations))

    def _task(self, variant: Variant, name: str, iteration: int) -> FitTask:
        parameters = self.parameters(variant)
        first = fit_task(NodeState(name, self.seed), self.rows[name], parameters)
        return replace(first, iteration=iteration, first_counter=iteration * parameters.n_new)

    def parameters(self, variant: Variant) -> Parameters:
        """Return the parameters of every node, in the units of these rows if the variant asks for it."""
        parameters = variant.parameters
        if variant.standardised:
            units = replace(parameters.kernel, mu=self.scale.mu, sigma=self.scale.sigma)
            parameters = replace(parameters, kernel=units)
        if parameters.home_check is not None:
            parameters = replace(
                parameters, home_check=RememberedCheck.of(parameters.home_check, self.checked)
            )
        return parameters

    def _origins(self, ensembles: Mapping[str, Ensemble]) -> np.ndarray:
        position = {name: i for i, name in enumerate(self.rows)}
        counts = np.zeros((len(position), len(position)), dtype=np.int64)
        for name, ensemble in ensembles.items():
            for estimator in ensemble:
                counts[position[name], position[estimator.id.creator]] += 1
        return counts


def dealt(nodes: Sequence[str], organisations: int) -> dict[str, str]:
    """Return the organisation of each node, dealt out in blocks as `network/up.sh` does."""
    count = min(organisations, len(nodes))
    return {node: f"Org{i * count // len(nodes) + 1}MSP" for i, node in enumerate(nodes)}


def check_hostile(hostile: int, nodes: int) -> int:
    """Return the number of the hostile node, if it is one of the nodes."""
    if not 0 <= hostile < nodes:
        raise ParameterError(f"there is no node {hostile} among {nodes} to be hostile")
    return hostile


def make_topology(name: str, nodes: Sequence[str], seed: int) -> Neighbours:
    """A topology by name; `random:P` joins each pair with probability P, anew in each iteration."""
    if name in TOPOLOGIES:
        return Schedule(Topology(Kind(name)))
    kind, _, probability = name.partition(":")
    try:
        if kind == "random":
            return RandomGraph(tuple(nodes), float(probability), seed)
    except ValueError:
        pass
    raise ParameterError(f"no topology is called {name!r}; there are {', '.join(TOPOLOGIES)} and random:P")


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
    collected: list[list[RunOutcome]] = [[] for _ in seeds]
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
        Engine(split, seed, cache).fit_jobs(cases), jobs, lambda _done, _total: advance(f"FIT, seed {seed}")
    )
    return cache


def _parts(count: int, jobs: int) -> list[range]:
    """The cases in as many runs of neighbours as there are processes: neighbours share most trees."""
    pieces = max(1, min(jobs, count))
    cuts = [count * i // pieces for i in range(pieces + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(cuts)]


def _run_part(
    split: Split, seed: int, cache: FitCache, cases: Sequence[tuple[Case, bool]], train: bool
) -> list[RunOutcome]:
    engine = Engine(split, seed, cache)
    return [engine.run(case, train=train, keep=keep) for case, keep in cases]
