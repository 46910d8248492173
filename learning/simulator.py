"""A whole federation in memory: the same actions as in the containers, without Docker or a ledger.

synchronous    per round: all FIT, then all SHARE, then all GET
asynchronous   nodes act one at a time in an order drawn from the seed, each running its own FIT, SHARE, GET

A node is active from the round it joins until the round it leaves. Who has left keeps its last ensemble;
what it offered stays in its neighbours' slots, attributable as before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from learning import actions, attacks
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit_cache import FitCache, Job, Progress
from learning.parameters import Defaults, Parameters
from learning.registry import Registry
from learning.robust import Refusal
from learning.rows import Rows
from learning.seeds import generator
from learning.topology import Topology
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator

SCHEDULES = ("synchronous", "asynchronous")


@dataclass(frozen=True)
class Member:
    """A node of the federation: its private rows, its parameters, when it takes part, whether hostile."""

    rows: Rows
    parameters: Parameters = Defaults
    joins: int = 0
    leaves: int | None = None
    attack: str | None = None

    def active(self, round_: int) -> bool:
        """Whether the node takes part in a round."""
        return self.joins <= round_ and (self.leaves is None or round_ < self.leaves)


@dataclass(frozen=True)
class Share:
    """What a node offered in a round, and to whom."""

    ids: tuple[EstimatorId, ...]
    n_bytes: int
    recipients: tuple[str, ...]


@dataclass(frozen=True)
class NodeRound:
    """What one node did in one of its iterations."""

    node: str
    round: int
    share: Share
    ensemble: Ensemble
    refusals: tuple[Refusal, ...]


@dataclass
class Simulation:
    """The states at the end, and everything that happened, by round and node."""

    states: dict[str, NodeState]
    records: list[NodeRound] = field(default_factory=list)

    def ensembles(self, round_: int | None = None) -> dict[str, Ensemble]:
        """Return every node's ensemble after a round, or at the end."""
        if round_ is None:
            return {node: state.ensemble for node, state in self.states.items()}
        return {record.node: record.ensemble for record in self.records if record.round == round_}


class Observer(Protocol):
    """Told about each finished node round."""

    def __call__(self, record: NodeRound) -> None:
        """Take note of the record."""
        ...


def simulate(
    members: Mapping[str, Member],
    topology: Topology,
    *,
    rounds: int = 4,
    seed: int = 0,
    schedule: str = "synchronous",
    cache: FitCache | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> Simulation:
    """Run the federation; the same arguments give the same bytes, for any n_jobs.

    A cache handed from call to call makes comparing topologies and rankings cost one FIT.
    """
    if schedule not in SCHEDULES:
        raise ParameterError(f"schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
    if rounds < 0:
        raise ParameterError(f"{rounds} rounds")
    federation = _Federation(members, topology, seed, FitCache() if cache is None else cache, observer)
    federation.cache.prepare(federation.fit_jobs(rounds), n_jobs, progress)
    if schedule == "synchronous":
        for round_ in range(rounds):
            federation.run_round(round_)
    else:
        federation.run_asynchronously(rounds, seed)
    return federation.simulation


class _Federation:
    def __init__(
        self,
        members: Mapping[str, Member],
        topology: Topology,
        seed: int,
        cache: FitCache,
        observer: Observer | None,
    ) -> None:
        self.members = {node: members[node] for node in sorted(members)}
        self.topology = topology
        self.cache = cache
        self.observer = observer
        self.registries = {node: Registry(node) for node in self.members}
        self.simulation = Simulation({node: NodeState(node, seed) for node in self.members})
        self.offered: dict[str, Share] = {}
        self.created: dict[str, tuple[Estimator, ...]] = dict.fromkeys(self.members, ())

    def fit_jobs(self, rounds: int) -> Iterator[Job]:
        """List every FIT of the run ahead: it depends on the node's own progress alone."""
        for node, member in self.members.items():
            first = actions.fit_task(self.simulation.states[node], member.rows, member.parameters)
            for iteration in range(sum(member.active(round_) for round_ in range(rounds))):
                task = replace(first, iteration=iteration, first_counter=iteration * first.n_new)
                yield member.rows, task, member.attack

    def run_round(self, round_: int) -> None:
        active = [node for node, member in self.members.items() if member.active(round_)]
        for action in (self.fit, self.share, self.get):
            for node in active:
                action(node, round_)

    def run_asynchronously(self, rounds: int, seed: int) -> None:
        """Let random nodes act until each has done its iterations; a node's round is its own iteration."""
        rng = generator(seed, "", 0, "schedule")
        programmes = {
            node: [
                (action, round_)
                for round_ in range(rounds)
                if member.active(round_)
                for action in (self.fit, self.share, self.get)
            ][::-1]
            for node, member in self.members.items()
        }
        waiting = [node for node in self.members if programmes[node]]
        while waiting:
            node = waiting[int(rng.integers(len(waiting)))]
            action, round_ = programmes[node].pop()
            action(node, round_)
            if not programmes[node]:
                waiting.remove(node)

    def fit(self, node: str, round_: int) -> None:  # noqa: ARG002
        member, state = self.members[node], self.simulation.states[node]
        task = actions.fit_task(state, member.rows, member.parameters)
        fitted = self.cache.fit(member.rows, task, member.attack)
        if member.attack is not None:
            self.created[node] += fitted
        self.simulation.states[node] = actions.fit(state, member.rows, member.parameters, fitted)

    def share(self, node: str, round_: int) -> None:
        member, state = self.members[node], self.simulation.states[node]
        if member.attack is None:
            offered = actions.share(state, member.parameters, member.rows)
        else:
            offered = attacks.share(state, self.created[node], member.parameters.n_share)
        recipients = tuple(
            other
            for other in self.topology.neighbours(node, round_)
            if other in self.members and self.members[other].active(round_)
        )
        for other in recipients:
            self.registries[other].write(node, offered)
        ids = tuple(estimator.id for estimator in offered)
        n_bytes = sum(len(estimator.tree.to_bytes()) for estimator in offered)
        self.offered[node] = Share(ids, n_bytes, recipients)

    def get(self, node: str, round_: int) -> None:
        member, state = self.members[node], self.simulation.states[node]
        state = actions.get(state, self.registries[node].slots(), member.parameters, member.rows)
        self.simulation.states[node] = state
        record = NodeRound(node, round_, self.offered[node], state.ensemble, state.refusals)
        self.simulation.records.append(record)
        if self.observer is not None:
            self.observer(record)
