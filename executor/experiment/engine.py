"""Federations on one split and seed: FIT once, then run as many variants, topologies and attacks as asked."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from executor.data.csv import Floats
from executor.experiment.metrics import as_row, measure
from executor.experiment.outcome import Outcome
from executor.experiment.split import Split
from executor.experiment.threshold import home_threshold
from executor.experiment.variant import Variant
from learning.actions import NodeState, fit_task, predictor
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit import FitTask
from learning.fit_cache import FitCache, Job
from learning.kernel import KernelOptions
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.robust import HomeCheck, vote_weights
from learning.rows import Rows
from learning.simulator import Member, Simulation, simulate
from learning.topology import Neighbours, RandomGraph
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

TOPOLOGIES = (Kind.DISCONNECTED, Kind.RING, Kind.FULL)


@dataclass(frozen=True)
class Case:
    """One federation to run: a variant on a topology, with a hostile node or without."""

    variant: Variant
    topology: str
    attack: str | None = None
    hostile: int | None = None
    iterations: int = 4
    schedule: str = "synchronous"


class Bench:
    """One split and one seed; trees keep their test scores, so an ensemble costs one addition per tree."""

    def __init__(self, split: Split, seed: int, cache: FitCache) -> None:
        self.split = split
        self.seed = seed
        self.cache = cache
        self.rows = {node.name: Rows.of(node.X, node.y) for node in split.nodes}
        self.tests = TreeScores(split.X_test)
        self.scale = scale(split)
        self.checked: Checked = {}

    def run(self, case: Case, *, train: bool = True, keep: bool = True) -> Outcome:
        """Run one federation and measure every node; without `keep`, the outcome holds no test scores."""
        simulation = self.simulate(case)
        parameters = self._parameters(case.variant)
        thresholds, scores, own = [], [], []
        for name, ensemble in simulation.ensembles().items():
            rows = self.rows[name]
            threshold = parameters.threshold
            if case.variant.home_threshold:
                threshold = home_threshold(name, ensemble, parameters, rows)
            thresholds.append(threshold)
            scores.append(self.tests.mean(ensemble, parameters))
            if train:
                values = predictor(ensemble, parameters).scores(rows.X)
                own.append(as_row(measure(rows.y, values, threshold)))
        pairs = zip(scores, thresholds, strict=True)
        test = np.array([as_row(measure(self.split.y_test, values, at)) for values, at in pairs])
        return Outcome(
            seed=self.seed,
            test=test,
            train=np.array(own) if train else np.full_like(test, np.nan),
            scores=np.array(scores) if keep else np.zeros((0, 0)),
            thresholds=np.array(thresholds),
            origins=self._origins(simulation.ensembles()),
            share_bytes=tuple(r.share.n_bytes for r in simulation.records if r.share.recipients),
            refusals=sum(len(r.refusals) for r in simulation.records),
        )

    def simulate(self, case: Case) -> Simulation:
        """Run one federation."""
        parameters = self._parameters(case.variant)
        members = {name: Member(rows, parameters) for name, rows in self.rows.items()}
        if case.attack is not None:
            members = with_hostile(members, case)
        graph = make_topology(case.topology, tuple(self.rows), self.seed)
        return simulate(
            members,
            graph,
            iterations=case.iterations,
            seed=self.seed,
            schedule=case.schedule,
            cache=self.cache,
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

    def _task(self, variant: Variant, name: str, iteration: int) -> FitTask:
        parameters = self._parameters(variant)
        first = fit_task(NodeState(name, self.seed), self.rows[name], parameters)
        return replace(first, iteration=iteration, first_counter=iteration * parameters.n_new)

    def _parameters(self, variant: Variant) -> Parameters:
        parameters = scaled(variant.parameters, self.scale)
        if parameters.home_check is not None:
            parameters = replace(
                parameters, home_check=RememberedCheck.of(parameters.home_check, self.checked)
            )
        return parameters

    def _origins(self, ensembles: dict[str, Ensemble]) -> np.ndarray:
        position = {name: i for i, name in enumerate(self.rows)}
        counts = np.zeros((len(position), len(position)), dtype=np.int64)
        for name, ensemble in ensembles.items():
            for estimator in ensemble:
                counts[position[name], position[estimator.id.creator]] += 1
        return counts


Checked = dict[tuple[bytes, Tree], str | None]


@dataclass(frozen=True)
class RememberedCheck(HomeCheck):
    """The home check, which asks about a tree and a node's rows once, however often the tree is offered."""

    checked: Checked = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, check: HomeCheck, checked: Checked) -> Self:
        """The same rule with a memory."""
        return cls(check.max_alarms, check.min_found, check.enough_anomalies, checked)

    def reason_to_refuse(self, tree: Tree, rows: Rows) -> str | None:
        """Say why not to hold the tree, or None."""
        key = (rows.digest, tree)
        if key not in self.checked:
            self.checked[key] = super().reason_to_refuse(tree, rows)
        return self.checked[key]


class TreeScores:
    """P(anomalous) of every test row under every tree met so far."""

    def __init__(self, X: Floats) -> None:
        self.X = np.ascontiguousarray(X, dtype=np.float32)
        self.known: dict[Tree, Floats] = {}

    def of(self, tree: Tree) -> Floats:
        """One tree's scores."""
        if tree not in self.known:
            self.known[tree] = Predictor.of([tree]).scores(self.X)
        return self.known[tree]

    def mean(self, ensemble: Ensemble, parameters: Parameters) -> Floats:
        """The ensemble's scores, added in the order of `learning.predict`, so that they are the same bits."""
        weights = vote_weights(ensemble.estimators, parameters.vote_cap)
        total = np.zeros(len(self.X))
        for estimator, weight in zip(ensemble, weights, strict=True):
            total += weight * self.of(estimator.tree)
        return total / weights.sum() if len(weights) else total


def scale(split: Split) -> KernelOptions:
    """One mean and deviation per feature for all nodes, as a process would agree on them beforehand."""
    X = np.concatenate([node.X for node in split.nodes])
    mu, sigma = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return KernelOptions(mu=tuple(mu.tolist()), sigma=tuple(np.where(sigma > 0, sigma, 1.0).tolist()))


def scaled(parameters: Parameters, options: KernelOptions) -> Parameters:
    """The parameters with the kernel's units set."""
    return replace(parameters, kernel=replace(parameters.kernel, mu=options.mu, sigma=options.sigma))


def with_hostile(members: dict[str, Member], case: Case) -> dict[str, Member]:
    """The members, one of them attacking."""
    names = list(members)
    if case.hostile is None or not 0 <= case.hostile < len(names):
        raise ParameterError(f"there is no node {case.hostile} among {len(names)} to be hostile")
    name = names[case.hostile]
    return members | {name: replace(members[name], attack=case.attack)}


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
