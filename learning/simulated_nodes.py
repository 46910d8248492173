"""The nodes of a federation in memory and their three actions; who acts when is somebody else's matter."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from learning import actions, attacks
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit_cache import FitCache
from learning.members import Member, NodeIteration, OfferedShare, Simulation
from learning.rows import Rows
from protocol.defence import Membership
from protocol.trees.estimator import Estimator

Offered = tuple[Estimator, ...]


class SimulatedNodes:
    """Every node's state, and what it did."""

    def __init__(
        self,
        members: Mapping[str, Member],
        organisations: Mapping[str, str] | None,
        seed: int,
        model: Ensemble,
        cache: FitCache | None,
    ) -> None:
        self.members = _in_accord({node: members[node].learning(node, seed) for node in sorted(members)})
        self.organisations = organisations or {node: node for node in members}
        self.cache = FitCache() if cache is None else cache
        self.simulation = Simulation({node: _first_state(node, seed, model) for node in self.members})
        self.done = dict.fromkeys(self.members, 0)
        self.created: dict[str, Offered] = dict.fromkeys(self.members, ())
        self._joins = sorted({member.joins for member in members.values()})
        self._known: dict[tuple[str, int], Member] = {}

    def member(self, node: str, iteration: int) -> Member:
        """Return a member with its defence counting on whoever has joined by an iteration."""
        last = bisect_right(self._joins, iteration)
        if (node, last) not in self._known:
            joined = (other for other, member in self.members.items() if member.joins <= iteration)
            membership = Membership.of({other: self.organisations[other] for other in joined})
            self._known[node, last] = self.members[node].among(membership)
        return self._known[node, last]

    def rows(self, node: str) -> Rows:
        """Return what a node has now."""
        return self.members[node].rows_after(self.done[node])

    def fit(self, node: str, iteration: int) -> None:
        """FIT, with the seeds of the federation's iteration, however many the node has done."""
        member, rows = self.member(node, iteration), self.rows(node)
        state = replace(self.simulation.states[node], iteration=iteration)
        task = actions.fit_task(state, rows, member.parameters)
        attack = member.hostile
        seen = self.seen(node) if attack is not None and attack.kind == attacks.SHADOW else ()
        if attack is not None and seen:
            # What it copies is not part of a cache's key.
            fitted = attacks.fit(attack, rows, task, seen)
        else:
            fitted = self.cache.fit(rows, task, attack)
        if attack is not None:
            self.created[node] += fitted
        self.simulation.states[node] = actions.fit(state, rows, member.parameters, fitted)

    def seen(self, node: str) -> list[Estimator]:
        """Return what a hostile node copies from."""
        raise ParameterError(f"{node} can copy what it sees only where a schedule says what that is")

    def offer(self, node: str, iteration: int) -> Offered:
        """SHARE: return what the node offers in an iteration."""
        member, state = self.member(node, iteration), self.simulation.states[node]
        if member.attack is None:
            return tuple(actions.share(state, member.parameters, self.rows(node)))
        return tuple(attacks.share(state, self.created[node], member.parameters.n_share))

    def take(
        self,
        node: str,
        iteration: int,
        slots: Mapping[str, Sequence[Estimator]],
        offered: Offered,
        recipients: tuple[str, ...],
    ) -> None:
        """GET: take what the slots hold, and record the iteration with what the node had offered to whom."""
        member, state = self.member(node, iteration), self.simulation.states[node]
        state = actions.get(state, slots, member.parameters, self.rows(node))
        self.simulation.states[node] = state
        self.done[node] += 1
        n_bytes = sum(len(estimator.tree.to_bytes()) for estimator in offered)
        share = OfferedShare(tuple(estimator.id for estimator in offered), n_bytes, recipients)
        self.simulation.records.append(NodeIteration(node, iteration, share, state.ensemble, state.refusals))


def _first_state(node: str, seed: int, model: Ensemble) -> NodeState:
    """Return the state that a node begins with: empty, or a published model, whose counters go on."""
    own = [estimator.id.counter for estimator in model if estimator.id.creator == node]
    return NodeState(node, seed, ensemble=model, first=max(own, default=-1) + 1)


def _in_accord(members: dict[str, Member]) -> dict[str, Member]:
    """Let hostile nodes that act in accord share the rows of the one with most anomalies."""
    hostile = {node: member for node, member in members.items() if member.attack in attacks.AGREED}
    if not hostile:
        return members
    common = max((member.rows for member in hostile.values()), key=lambda rows: int(rows.y.sum()))
    return members | {node: replace(member, common=common) for node, member in hostile.items()}
