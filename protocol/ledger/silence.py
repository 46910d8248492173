"""Who is silent in a process, since when, and whether a vote to leave them out counts.

A transaction's time is its client's claim, so no clock is believed alone. Each voter counts by its own: from
the last transaction of whoever is silent, or the one by which it joined, or by which the step was opened that
it owes something of; if that one claims a time to come, from when the voter first voted. A vote counts once
that is `silence_seconds` ago and nothing has come in between.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from protocol import canonical
from protocol.agreement.plan import Plan
from protocol.ledger import keys
from protocol.ledger.changes import AbsenceVote, ChangeRecord
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.processes import ProcessRecord, ProgressRecord
from protocol.ledger.tasks import TaskRecord
from protocol.task.opening import TaskId


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

    def last_acts(
        self, task_of: Callable[[TaskId], TaskRecord | None], change_of: Callable[[int], ChangeRecord]
    ) -> list[Provenance]:
        """Return from where on each node is silent; an organisation without nodes is since its acceptance."""
        names = self.plan.nodes_of(self.organisation) if self.whole else tuple(self.nodes)
        acts = [self._last_act(node, task_of, change_of) for node in names]
        return acts or [self._last_word(change_of)]

    def vote(self, acts: list[Provenance], before: AbsenceVote | None, by: ReasonedProvenance) -> AbsenceVote:
        """Make a vote, which counts if nothing has come since long enough, by the voter's own clock."""
        seen = canonical.digest([act.tx for act in acts])
        last = _latest(acts)
        began = last.time if before is None or before.seen != seen else before.since
        since = min(began, by.time)
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

    def _last_act(
        self,
        node: str,
        task_of: Callable[[TaskId], TaskRecord | None],
        change_of: Callable[[int], ChangeRecord],
    ) -> Provenance:
        missing = self.nodes.get(node)
        task = None if missing is None else task_of(TaskId(self.record.process, node, missing))
        done = self.done.get(node)
        acted = _last_of(task) if task is not None else self._started if done is None else done.updated
        since = [
            self.record.course.joins.get(node),
            None if missing is None else self.plan.opened_by(missing),
        ]
        later = [by for number in since if number is not None for by in change_of(number).agreed.values()]
        return _latest([acted, *later])

    def _last_word(self, change_of: Callable[[int], ChangeRecord]) -> Provenance:
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


def _last_of(task: TaskRecord) -> Provenance:
    """Return the last transaction of a task: it is opened, shares, and is closed."""
    if task.closed is not None:
        return task.closed.by
    if task.share is not None:
        return task.share.by
    assert task.opened is not None  # noqa: S101
    return task.opened
