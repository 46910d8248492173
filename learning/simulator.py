"""A whole federation in memory: the same actions as in the containers, without Docker or a ledger.

synchronous    per iteration: all FIT, then all SHARE, then all GET
asynchronous   nodes act one at a time in an order drawn from the seed, each running its own FIT, SHARE, GET

A node is active from the iteration it joins until the iteration it leaves, and again when it returns;
neighbours are those of the active nodes: a ring closes around who has left, as on the ledger. Who has left
keeps its last ensemble; what it offered stays in its neighbours' slots, attributable as before, and is read
by those alone whose neighbour it is. Quotas count on whoever has joined by an iteration, as on the ledger.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from learning import actions, attacks
from learning.actions import EMPTY
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit_cache import FitCache, Job, Progress
from learning.members import Member, NodeIteration, Simulation
from learning.registry import Registry
from learning.seeds import generator
from learning.simulated_nodes import Offered, SimulatedNodes
from learning.topology import Neighbours
from protocol.agreement.topology import Schedule
from protocol.trees.estimator import Estimator

SCHEDULES = ("synchronous", "asynchronous")

__all__ = ["SCHEDULES", "Member", "NodeIteration", "Simulation", "simulate"]


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
    model: Ensemble = EMPTY,
) -> Simulation:
    """Run the federation; the same arguments give the same bytes, for any n_jobs.

    Without `organisations`, by node, each node is an organisation of its own. With a `model`, every node
    starts from it. A cache handed from call to call makes comparing topologies and rankings cost one FIT.
    """
    if schedule not in SCHEDULES:
        raise ParameterError(f"schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
    if iterations < 0:
        raise ParameterError(f"{iterations} iterations")
    if isinstance(topology, Schedule):
        for held in (topology.first, *(change for _, change in topology.changes)):
            held.check_nodes(members)
    federation = _Federation(members, organisations, seed, model, cache, topology)
    federation.cache.prepare(federation.fit_jobs(iterations), n_jobs, progress)
    if schedule == "synchronous":
        for iteration in range(iterations):
            federation.run_iteration(iteration)
    else:
        federation.run_asynchronously(iterations, seed)
    return federation.simulation


class _Federation(SimulatedNodes):
    """A federation whose topology and schedule say who acts when, and with whom."""

    def __init__(  # noqa: PLR0917
        self,
        members: Mapping[str, Member],
        organisations: Mapping[str, str] | None,
        seed: int,
        model: Ensemble,
        cache: FitCache | None,
        topology: Neighbours,
    ) -> None:
        super().__init__(members, organisations, seed, model, cache)
        self.topology = topology
        self.registries = {node: Registry(node) for node in self.members}
        self.offered: dict[str, Offered] = {}
        self._active: dict[int, dict[str, None]] = {}

    def active(self, iteration: int) -> Collection[str]:
        """Return the nodes that take part in an iteration, ascending."""
        if iteration not in self._active:
            taking_part = (node for node, member in self.members.items() if member.active(iteration))
            self._active[iteration] = dict.fromkeys(taking_part)
        return self._active[iteration]

    def neighbours(self, node: str, iteration: int) -> tuple[str, ...]:
        """Return a node's neighbours in an iteration, ascending."""
        return self.topology.neighbours(node, iteration, self.active(iteration))

    def fit_jobs(self, iterations: int) -> Iterator[Job]:
        """List every FIT of the run ahead: it depends on the node's own progress alone."""
        for node, member in self.members.items():
            if member.attack == attacks.SHADOW:
                continue
            first = actions.fit_task(self.simulation.states[node], member.rows, member.parameters)
            taking_part = (iteration for iteration in range(iterations) if member.active(iteration))
            for done, iteration in enumerate(taking_part):
                counter = first.first_counter + done * first.n_new
                task = replace(first, iteration=iteration, first_counter=counter)
                yield member.rows_after(done), task, member.hostile

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

    def seen(self, node: str) -> list[Estimator]:
        """Return what honest neighbours last offered a hostile node, best of each first."""
        slots = self.registries[node].slots()
        honest = [slot for sender, slot in slots.items() if self.members[sender].attack is None]
        longest = max(map(len, honest), default=0)
        return [slot[place] for place in range(longest) for slot in honest if place < len(slot)]

    def share(self, node: str, iteration: int) -> None:
        self.offered[node] = self.offer(node, iteration)
        for other in self.neighbours(node, iteration):
            self.registries[other].write(node, self.offered[node])

    def get(self, node: str, iteration: int) -> None:
        recipients = self.neighbours(node, iteration)
        slots = self.registries[node].slots()
        read = {sender: slot for sender, slot in slots.items() if sender in recipients}
        self.take(node, iteration, read, self.offered[node], recipients)
