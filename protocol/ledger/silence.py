"""Who is silent in a process, since when, and whether a vote to leave them out counts.

A silence counts from what last advanced the process: the node's share of the iteration that it owes, once per
iteration however often its task is launched again; before that its last completed iteration, the start, the
change by which it joined, or the one that opened the step. To open a task, to fail or to refuse it advances
nothing, so nobody stays by signs of life: a node gains one period until it has shared and one until it has
completed. Who has shared in a synchronous step and waits for a neighbour's share owes nothing meanwhile.

A transaction's time is its client's claim, so no clock is believed alone. Each voter counts by its own: from
the transaction that last advanced the process, or, if that one claims a time to come, from when the voter
first voted. It counts from there too where that transaction may be another organisation's: a share that
somebody waited for, or the start, the opening or the agreement to a join after which the node has done
nothing yet. Such a one may claim to be older than it is, and everybody would be silent at once. A vote counts
once that is `silence_seconds` ago and nothing has advanced in between.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from protocol import canonical
from protocol.agreement.plan import Plan
from protocol.ledger import keys
from protocol.ledger.changes import AbsenceVote, ChangeRecord
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.processes import ProcessRecord, ProgressRecord
from protocol.task.opening import TaskId
from protocol.values import dataclass

ShareOf: TypeAlias = Callable[[TaskId], Provenance | None]
"""How to find by whom a task was first shared in, and when; None before."""
ChangeOf: TypeAlias = Callable[[int], ChangeRecord]
"""How to find the change with a number."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Some silent nodes of an organisation, or the whole of it."""

    record: ProcessRecord
    plan: Plan
    done: Mapping[str, ProgressRecord]
    """By node, what it has completed last."""
    organisation: str
    nodes: dict[str, int]
    """Each with the iteration that it owes."""
    whole: bool

    @property
    def about(self) -> str:
        """The one name for it."""
        return self.organisation if self.whole else next(iter(self.nodes))

    def key_of(self, voter: str) -> str:
        """Return where an organisation's vote stands."""
        place = keys.departure if self.whole else keys.absence
        return place(self.record.process, self.about, voter)

    @property
    def owes(self) -> bool:
        """Whether there is something to be silent about; an organisation without nodes owes its word."""
        return bool(self.nodes) or not self.plan.nodes_of(self.organisation)

    def waits(self, share_of: ShareOf) -> bool:
        """Whether all the nodes have done their part, and wait for others' shares."""
        return bool(self.nodes) and all(None in self._shares(node, share_of) for node in self.nodes)

    def waited(self, share_of: ShareOf, change_of: ChangeOf) -> bool:
        """Whether a node could not go on before an act of another organisation, and has not done so since."""
        acts = [act for node in self.nodes for act in self._awaited(node, share_of, change_of)]
        if not self.nodes:
            acts.append(self._last_word(change_of))
        return any(act.organisation != self.organisation for act in acts)

    def last_acts(self, share_of: ShareOf, change_of: ChangeOf) -> list[Provenance]:
        """Return what has advanced the process last; of an organisation without nodes, its acceptance."""
        names = self.plan.nodes_of(self.organisation) if self.whole else tuple(self.nodes)
        acts = [act for node in names for act in self._acts_of(node, share_of, change_of)]
        return acts or [self._last_word(change_of)]

    def vote(
        self, acts: list[Provenance], waited: bool, before: AbsenceVote | None, by: ReasonedProvenance
    ) -> AbsenceVote:
        """Make a vote, which counts if nothing has advanced since long enough, by the voter's own clock."""
        seen = canonical.digest([act.tx for act in acts])
        last = _latest(acts)
        began = by.time if waited else last.time
        since = min(began if before is None or before.seen != seen else before.since, by.time)
        passed = datetime.fromisoformat(by.time) - datetime.fromisoformat(since)
        return AbsenceVote(
            process=self.record.process,
            organisation=self.organisation,
            nodes=self.nodes,
            whole=self.whole,
            last=last,
            seen=seen,
            since=since,
            counts=passed >= timedelta(seconds=self.record.specification.silence_seconds),
            by=by,
        )

    def _awaited(self, node: str, share_of: ShareOf, change_of: ChangeOf) -> Iterator[Provenance]:
        """Iterate over what let a node go on: shares that have all come, and what it has done nothing after.

        In which order they came is not asked of the times that they claim.
        """
        missing, done = self.nodes[node], self.done.get(node)
        shares = self._shares(node, share_of)
        if None not in shares:
            yield from (share for share in shares if share is not None)
        following = 0 if done is None else done.iteration + 1
        joined = self.record.course.joins.get(node)
        if joined is not None and following <= change_of(joined).iteration:
            yield from change_of(joined).agreed.values()
        if shares:
            return
        if joined is None and done is None:
            yield self._started
        opened = self.plan.opened_by(missing)
        if opened is not None and following <= change_of(opened).iteration:
            yield from change_of(opened).agreed.values()

    def _acts_of(self, node: str, share_of: ShareOf, change_of: ChangeOf) -> list[Provenance]:
        """Return from where on a node is silent: its share and those it waited for, else what came before.

        A share is later than what it completed before and than the opening of the step, whatever times were
        claimed; a node may have left and come back after it.
        """
        missing, done = self.nodes.get(node), self.done.get(node)
        shares = () if missing is None else self._shares(node, share_of)
        acts = [share for share in shares if share is not None]
        numbers = [self.record.course.joins.get(node)]
        if not acts:
            acts.append(self._started if done is None else done.updated)
            numbers.append(None if missing is None else self.plan.opened_by(missing))
        changes = [change_of(number).agreed for number in numbers if number is not None]
        return acts + [agreed[name] for agreed in changes for name in sorted(agreed)]

    def _shares(self, node: str, share_of: ShareOf) -> tuple[Provenance | None, ...]:
        """Return a node's share of the iteration that it owes, and those that it then waits for.

        Nothing before it has shared. After that, None for each share that has not come.
        """
        process, iteration = self.record.process, self.nodes[node]
        own = share_of(TaskId(process, node, iteration))
        if own is None:
            return ()
        step, _ = self.plan.specification.step_at(iteration)
        neighbours = self.plan.neighbours(node, iteration) if step.synchronous else ()
        return own, *(share_of(TaskId(process, other, iteration)) for other in neighbours)

    def _last_word(self, change_of: ChangeOf) -> Provenance:
        """Return the last that an organisation without nodes did: it accepted, or opened a step."""
        opened = [change_of(number).agreed.get(self.organisation) for number in self.record.course.opened]
        accepted = self.record.accepted.get(self.organisation, self._started)
        return _latest([accepted, *(by for by in opened if by is not None)])

    @property
    def _started(self) -> Provenance:
        started = self.record.started
        assert started is not None  # noqa: S101
        return started


def _latest(acts: list[Provenance]) -> Provenance:
    return max(acts, key=lambda act: (act.time, act.tx))
