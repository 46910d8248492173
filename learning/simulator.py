"""A whole federation in memory: the same actions as in the containers, without Docker or a ledger.

synchronous    per iteration: all FIT, then all SHARE, then all GET
asynchronous   nodes act one at a time in an order drawn from the seed, each running its own FIT, SHARE, GET

A node is active from the iteration it joins until the iteration it leaves, and neighbours are those of the
active nodes: a ring closes around who has left, as on the ledger. Who has left keeps its last ensemble; what
it offered stays in its neighbours' slots, attributable as before.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from learning import actions, attacks
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit_cache import FitCache, Job, Progress
from learning.held_out import learned_from
from learning.parameters import Defaults, Parameters
from learning.registry import Registry
from learning.robust import TreeRefusal
from learning.rows import Rows
from learning.seeds import generator
from learning.topology import Neighbours
from protocol.agreement.topology import Schedule
from protocol.defence import Membership
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator

SCHEDULES = ("synchronous", "asynchronous")


@dataclass(frozen=True)
class Member:
    """A node of the federation: its private rows, its parameters, when it takes part, whether hostile.

    `later` has the rows of its second iteration and of those after it, for a node that learns from what
    happened since; the last stay for all that follow.
    """

    rows: Rows
    parameters: Parameters = Defaults
    joins: int = 0
    leaves: int | None = None
    attack: str | None = None
    later: tuple[Rows, ...] = ()

    def rows_in(self, iteration: int) -> Rows:
        """Return what the node has in one of its iterations."""
        return (self.rows, *self.later)[min(iteration, len(self.later))]

    def learning(self, node: str, seed: int) -> "Member":
        """Return the member with the rows alone that it learns from."""
        part = self.parameters.held_out
        rows, *later = (learned_from(rows, part, seed, node) for rows in (self.rows, *self.later))
        return replace(self, rows=rows, later=tuple(later))

    def among(self, membership: Membership) -> "Member":
        """Return the member with its defence counting on these organisations."""
        return replace(self, parameters=replace(self.parameters, members=membership))

    def active(self, iteration: int) -> bool:
        """Whether the node takes part in an iteration."""
        return self.joins <= iteration and (self.leaves is None or iteration < self.leaves)


@dataclass(frozen=True)
class OfferedShare:
    """What a node offered in an iteration, and to whom."""

    ids: tuple[EstimatorId, ...]
    n_bytes: int
    recipients: tuple[str, ...]


@dataclass(frozen=True)
class NodeIteration:
    """What one node did in one of its iterations."""

    node: str
    iteration: int
    share: OfferedShare
    ensemble: Ensemble
    refusals: tuple[TreeRefusal, ...]


@dataclass
class Simulation:
    """The states at the end, and everything that happened, by iteration and node."""

    states: dict[str, NodeState]
    records: list[NodeIteration] = field(default_factory=list)

    def ensembles(self, iteration: int | None = None) -> dict[str, Ensemble]:
        """Return every node's ensemble after an iteration, or at the end."""
        if iteration is None:
            return {node: state.ensemble for node, state in self.states.items()}
        return {record.node: record.ensemble for record in self.records if record.iteration == iteration}


def simulate(
    members: Mapping[str, Member],
    topology: Neighbours,
    *,
    iterations: int = 4,
    seed: int = 0,
    schedule: str = "synchronous",
    cache: FitCache | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    organisations: Mapping[str, str] | None = None,
) -> Simulation:
    """Run the federation; the same arguments give the same bytes, for any n_jobs.

    Without `organisations`, by node, each node is an organisation of its own.
    A cache handed from call to call makes comparing topologies and rankings cost one FIT.
    """
    if schedule not in SCHEDULES:
        raise ParameterError(f"schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
    if iterations < 0:
        raise ParameterError(f"{iterations} iterations")
    if isinstance(topology, Schedule):
        for held in (topology.first, *(change for _, change in topology.changes)):
            held.check_nodes(members)
    membership = Membership.of(organisations or {node: node for node in members})
    federation = _Federation(
        {node: member.among(membership).learning(node, seed) for node, member in members.items()},
        topology,
        seed,
        FitCache() if cache is None else cache,
    )
    federation.cache.prepare(federation.fit_jobs(iterations), n_jobs, progress)
    if schedule == "synchronous":
        for iteration in range(iterations):
            federation.run_iteration(iteration)
    else:
        federation.run_asynchronously(iterations, seed)
    return federation.simulation


class _Federation:
    def __init__(
        self, members: Mapping[str, Member], topology: Neighbours, seed: int, cache: FitCache
    ) -> None:
        self.members = {node: members[node] for node in sorted(members)}
        self.topology = topology
        self.cache = cache
        self.registries = {node: Registry(node) for node in self.members}
        self.simulation = Simulation({node: NodeState(node, seed) for node in self.members})
        self.offered: dict[str, OfferedShare] = {}
        self.created: dict[str, tuple[Estimator, ...]] = dict.fromkeys(self.members, ())
        self._active: dict[int, dict[str, None]] = {}

    def active(self, iteration: int) -> Collection[str]:
        """Return the nodes that take part in an iteration, ascending."""
        if iteration not in self._active:
            taking_part = (node for node, member in self.members.items() if member.active(iteration))
            self._active[iteration] = dict.fromkeys(taking_part)
        return self._active[iteration]

    def fit_jobs(self, iterations: int) -> Iterator[Job]:
        """List every FIT of the run ahead: it depends on the node's own progress alone."""
        for node, member in self.members.items():
            first = actions.fit_task(self.simulation.states[node], member.rows, member.parameters)
            for done in range(sum(member.active(iteration) for iteration in range(iterations))):
                task = replace(first, iteration=done, first_counter=done * first.n_new)
                if member.attack != attacks.SHADOW:
                    yield member.rows_in(done), task, member.attack

    def run_iteration(self, iteration: int) -> None:
        for action in (self.fit, self.share, self.get):
            for node in self.active(iteration):
                action(node, iteration)

    def run_asynchronously(self, iterations: int, seed: int) -> None:
        """Let random nodes act, one action at a time, until each has done its iterations."""
        rng = generator(seed, "", 0, "schedule")
        programmes = {
            node: [
                (action, iteration)
                for iteration in range(iterations)
                if member.active(iteration)
                for action in (self.fit, self.share, self.get)
            ][::-1]
            for node, member in self.members.items()
        }
        waiting = [node for node in self.members if programmes[node]]
        while waiting:
            node = waiting[int(rng.integers(len(waiting)))]
            action, iteration = programmes[node].pop()
            action(node, iteration)
            if not programmes[node]:
                waiting.remove(node)

    def fit(self, node: str, iteration: int) -> None:  # noqa: ARG002
        member, state = self.members[node], self.simulation.states[node]
        rows = member.rows_in(state.iteration)
        task = actions.fit_task(state, rows, member.parameters)
        if member.attack == attacks.SHADOW:
            # It copies what it sees, so that no cache can hold it.
            fitted = attacks.fit(member.attack, rows, task, self.seen(node))
        else:
            fitted = self.cache.fit(rows, task, member.attack)
        if member.attack is not None:
            self.created[node] += fitted
        self.simulation.states[node] = actions.fit(state, rows, member.parameters, fitted)

    def seen(self, node: str) -> list[Estimator]:
        """Return what honest neighbours last offered a hostile node, best of each first."""
        slots = self.registries[node].slots()
        honest = [slot for sender, slot in slots.items() if self.members[sender].attack is None]
        longest = max(map(len, honest), default=0)
        return [slot[place] for place in range(longest) for slot in honest if place < len(slot)]

    def share(self, node: str, iteration: int) -> None:
        member, state = self.members[node], self.simulation.states[node]
        if member.attack is None:
            offered = actions.share(state, member.parameters, member.rows_in(state.iteration))
        else:
            offered = attacks.share(state, self.created[node], member.parameters.n_share)
        recipients = self.topology.neighbours(node, iteration, self.active(iteration))
        for other in recipients:
            self.registries[other].write(node, offered)
        ids = tuple(estimator.id for estimator in offered)
        n_bytes = sum(len(estimator.tree.to_bytes()) for estimator in offered)
        self.offered[node] = OfferedShare(ids, n_bytes, recipients)

    def get(self, node: str, iteration: int) -> None:
        member, state = self.members[node], self.simulation.states[node]
        rows = member.rows_in(state.iteration)
        state = actions.get(state, self.registries[node].slots(), member.parameters, rows)
        self.simulation.states[node] = state
        record = NodeIteration(node, iteration, self.offered[node], state.ensemble, state.refusals)
        self.simulation.records.append(record)
