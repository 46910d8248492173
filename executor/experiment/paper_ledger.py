"""The paper's experiment on the ledger: every task in a container, every result and model on the chain.

1. The paper's split is written as one file per node of the network.
2. For each topology the organisations agree on a process; they run all three side by side to their ends.
3. The simulator runs the same federations in memory; every iteration's ensemble must be the same, by digest,
   and neither side may have results that the other has not.
4. Models are read from the chain, and measured as the paper does; the simulator's must have the same figures.

A process has its name from what it depends on, the image included, so that an interrupted run goes on where
it was, and another learner begins anew.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from executor.errors import UsageError
from executor.experiment.files import write_split
from executor.experiment.history import Place, digest_of
from executor.experiment.launches import Reports
from executor.experiment.local_federation import Audit, LocalFederation
from executor.launch.log import Event, LogEntry
from executor.ledger.chaincodes.proxies import Ledger
from executor.model.content import fetch
from executor.network import Network
from experiments import paper
from experiments.data import LABEL, DataTable
from experiments.engine import Case, Engine
from experiments.metrics import METRICS, PARTS, TITLES, RunOutcome
from experiments.split import IMBALANCE, PAPER_SEED, Split, split
from learning.ensemble import Ensemble
from learning.fit_cache import FitCache
from learning.options import to_options
from learning.simulator import Simulation
from protocol.digest import Digest

SEED = 0
LEARNER = "attestree/learner"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Instance:
    """How much of the experiment is run."""

    nodes: int = 20
    iterations: int = 4


FULL = Instance()
QUICK = Instance(nodes=4, iterations=2)


@dataclass(frozen=True)
class Deviation:
    """A place at which chain and simulator are not the same; without an iteration it is about the model."""

    topology: str
    node: str
    iteration: int | None
    what: str

    def __str__(self) -> str:
        place = "model" if self.iteration is None else f"iteration {self.iteration}"
        return f"{self.topology}: {self.node} {place}: {self.what}"


@dataclass
class LedgerRun:
    """What came of it: the runs as measured from the chain, by topology, and how long each part took."""

    split: Split
    iterations: int
    processes: dict[str, str] = field(default_factory=dict)
    runs: dict[str, RunOutcome] = field(default_factory=dict)
    differences: list[Deviation] = field(default_factory=list)
    compared: int = 0
    audit: Audit = field(default_factory=Audit)
    tasks: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)
    """Where the time on the ledger went: agreement, and each part of a launch in the mean of all nodes."""
    topology_parts: dict[str, dict[str, float]] = field(default_factory=dict)
    """The same of the nodes of one topology; all of them share the host."""
    fit_seconds: float = 0.0
    """How much of the simulator's time was FIT, which it does once for all topologies."""

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add how long a block takes to a part."""
        began = time.monotonic()
        yield
        self.seconds[part] = self.seconds.get(part, 0.0) + time.monotonic() - began

    @property
    def equals_simulator(self) -> bool:
        """Whether every ensemble of every iteration is the simulator's, and every figure of every model."""
        return self.compared > 0 and not self.differences

    @property
    def different(self) -> int:
        """How many of the ensembles compared are not the same."""
        return sum(found.iteration is not None for found in self.differences)

    @property
    def other_models(self) -> list[str]:
        """The models, by topology and node, that have other trees or figures than the simulator's."""
        models = (found for found in self.differences if found.iteration is None)
        return list(dict.fromkeys(f"{found.topology} {found.node}" for found in models))

    @property
    def audited(self) -> bool:
        """Whether the audit found nothing wrong."""
        return self.audit.verified

    @property
    def ledger_seconds(self) -> float:
        """What the experiment took on the ledger, agreement and tasks."""
        return self.seconds["agree"] + self.seconds["launch"]

    @property
    def separate_seconds(self) -> float:
        """What the simulator would have taken if it trained the trees for each topology, as the nodes do."""
        return self.seconds["simulator"] + (len(paper.TOPOLOGIES) - 1) * self.fit_seconds

    def launched(self, reports: Reports, seconds: float) -> None:
        """Take in what launches did and where their time went, of all nodes and by topology."""
        self.tasks = len(reports.tasks)
        self.parts = reports.parts_of(seconds)
        for topology, process in self.processes.items():
            self.topology_parts[topology] = reports.parts_of(seconds, process)

    def result(self) -> paper.PaperResult:
        """Return the runs as the experiment in memory has them, to be judged and shown alike."""
        disconnected, *federated = ([self.runs[topology]] for topology in paper.TOPOLOGIES)
        runs = {paper.KERNEL: dict(zip(paper.FEDERATED, federated, strict=True))}
        return paper.judged(paper.PaperResult(self.split, (SEED,), "plain", runs, disconnected))


class PaperOnLedger:
    """The experiment on the network of this host."""

    def __init__(self, network: Network, table: DataTable, instance: Instance, say: Say) -> None:
        self.instance, self.say = instance, say
        self.owners = owners(network, instance.nodes)
        parts = split(table, instance.nodes, PAPER_SEED, IMBALANCE)
        renamed = (replace(part, name=name) for part, name in zip(parts.nodes, self.owners, strict=True))
        self.split = replace(parts, nodes=tuple(renamed))
        self.engine = Engine(self.split, SEED, FitCache())
        self.name = f"paper-{Digest.of(f'{table.source} {instance}'.encode()).hex[:8]}"
        folder = network.state / self.name
        wanted = {"source": table.source, "nodes": list(self.owners), "seed": PAPER_SEED, "paper": True}
        write_split(lambda: self.split, table.features, wanted, folder / "rows")
        self.data = folder / "rows"
        self.federation = LocalFederation(network, tuple(dict.fromkeys(self.owners.values())), folder)

    def run(self, jobs: int) -> LedgerRun:
        """Run every topology on the ledger and in memory, compare, and have the chain audited."""
        result = LedgerRun(self.split, self.instance.iterations)
        cases = [
            Case(paper.variant_for(paper.KERNEL, "plain"), topology, iterations=self.instance.iterations)
            for topology in paper.TOPOLOGIES
        ]
        with result.timed("image"):
            image = self.federation.publish(LEARNER)
        with result.timed("agree"):
            agreed = self.federation.agree_on_all([self.file(case, image) for case in cases], self.say)
        result.processes = {case.topology: each.process for case, each in zip(cases, agreed, strict=True)}
        self.launch(result)
        result.parts["agree"] = result.seconds["agree"]
        with result.timed("simulator"):
            began = time.monotonic()
            self.engine.cache.prepare(self.engine.fit_jobs(cases), jobs)
            result.fit_seconds = time.monotonic() - began
            simulations = [self.engine.simulate(case) for case in cases]
        for case, simulation in zip(cases, simulations, strict=True):
            with result.timed("read"):
                self.compare(result, case, result.processes[case.topology], simulation)
        with result.timed("audit"):
            result.audit = self.federation.audit(result.processes[cases[-1].topology])
        return result

    def launch(self, result: LedgerRun) -> None:
        """Have every node do its tasks of all topologies, and say of each that it is done."""
        topologies = {process: topology for topology, process in result.processes.items()}
        with self.federation.ledger(self.federation.organisations[0], "auditor") as ledger:
            done = {process: _done(ledger, process) for process in topologies}
        total = len(self.owners) * self.instance.iterations

        def hear(entry: LogEntry) -> None:
            if entry.process in topologies and entry.event is Event.TASK_DONE:
                done[entry.process] += 1
                place = f"{topologies[entry.process]}: {entry.node} iteration {entry.iteration}"
                self.say(f"{place} in {entry.seconds or 0:.1f} s, {done[entry.process]} of {total}")

        began = time.monotonic()
        with result.timed("launch"):
            reports = self.federation.launch([*topologies], f"{self.data}/{{node}}.csv", hear)
        result.launched(reports, time.monotonic() - began)

    def file(self, case: Case, image: str) -> dict[str, Any]:
        """Return the federation file of one topology."""
        parameters = self.engine.parameters(case.variant)
        return {
            "process": f"{self.name}-{image[-6:]}-{case.topology}",
            "description": f"The paper's experiment, {case.topology}",
            "nodes": self.owners,
            "topology": case.topology,
            "image": image,
            "iterations": case.iterations,
            "seed": SEED,
            "n_new": parameters.n_new,
            "n_max": parameters.n_max,
            "n_share": parameters.n_share,
            "schema_from": f"{self.data}/{next(iter(self.owners))}.csv",
            "label": LABEL,
            "options": to_options(parameters),
        }

    def compare(self, result: LedgerRun, case: Case, process: str, simulation: Simulation) -> None:
        """Compare every iteration's ensemble on the chain with the simulator's, and measure the models."""
        with self.federation.ledger(self.federation.organisations[0], "auditor") as ledger:
            chain = {(found.node, found.iteration): found for found in ledger.execution.artifacts(process)}
            ensembles = {node: self._model(process, node) for node in self.owners}
        there = {place: found.ensemble_digest for place, found in chain.items()}
        here = {(done.node, done.iteration): digest_of(done.ensemble) for done in simulation.records}
        result.compared += len(here.keys() | there.keys())
        result.differences += ensembles_apart(case.topology, here, there)
        shares = tuple(int(found.metrics["share_bytes"]) for found in chain.values() if found.share)
        refused = sum(len(slot.refused) for found in chain.values() for slot in found.slots)
        measured = self.engine.measure(case, ensembles, shares, refused)
        result.runs[case.topology] = measured
        final = simulation.ensembles()
        expected = {node: final[node] for node in self.owners}
        result.differences += models_apart(case.topology, expected, ensembles)
        in_memory = self.engine.measure(case, expected, (), 0)
        result.differences += figures_apart(case.topology, list(self.owners), in_memory, measured)

    def _model(self, process: str, node: str) -> Ensemble:
        with self.federation.ledger(self.owners[node], node) as ledger:
            return fetch(ledger, process, node).ensemble


def ensembles_apart(
    topology: str, here: Mapping[Place, Digest], there: Mapping[Place, Digest]
) -> Iterator[Deviation]:
    """List the iterations of nodes in which the chain has another ensemble, none, or one too many."""
    for place in sorted(here.keys() | there.keys()):
        if place not in there:
            yield Deviation(topology, *place, "the chain has no result")
        elif place not in here:
            yield Deviation(topology, *place, "the simulator has no result")
        elif here[place] != there[place]:
            yield Deviation(topology, *place, f"the ensemble is {there[place]}, in memory {here[place]}")


def models_apart(
    topology: str, here: Mapping[str, Ensemble], there: Mapping[str, Ensemble]
) -> Iterator[Deviation]:
    """List the nodes whose model is not the ensemble that they end with in memory."""
    for node, ensemble in here.items():
        ours, theirs = digest_of(ensemble), digest_of(there[node])
        if ours != theirs:
            yield Deviation(topology, node, None, f"the model is {theirs}, in memory {ours}")


def figures_apart(
    topology: str, nodes: Sequence[str], here: RunOutcome, there: RunOutcome
) -> Iterator[Deviation]:
    """List the metrics of models in which chain and memory are not the same number."""
    for part in PARTS:
        pairs = zip(nodes, here.part(part).tolist(), there.part(part).tolist(), strict=True)
        for node, ours, theirs in pairs:
            for name, mine, its in zip(METRICS, ours, theirs, strict=True):
                if mine != its:
                    what = f"{TITLES[name]} on {part} rows is {its}, in memory {mine}"
                    yield Deviation(topology, node, None, what)


def _done(ledger: Ledger, process: str) -> int:
    """Return how many tasks of a process are on the ledger."""
    nodes = ledger.orchestration.status(process).nodes
    return sum(0 if entry.completed is None else entry.completed + 1 for entry in nodes)


def owners(network: Network, count: int) -> dict[str, str]:
    """Return the organisations of the first nodes of each, as many of one as of another."""
    organisations = network.organisations
    each, of_each = count // len(organisations), network.n_nodes // len(organisations)
    if each < 1 or each > of_each:
        raise UsageError(
            "PAPER_NODES", f"{count} nodes in {len(organisations)} organisations of {of_each} nodes"
        )
    return {
        f"node{place * of_each + number + 1:02d}": organisation
        for place, organisation in enumerate(organisations)
        for number in range(each)
    }
