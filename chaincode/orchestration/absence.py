"""Leaving out who is silent: a majority of those who take part decides, after the time the process agreed on.

A transaction's time is its client's claim, so no clock is believed alone. Each voter counts by its own: from
the last transaction of whoever is silent, or the one by which it joined; if that one claims a time to come,
from when the voter first voted. A vote counts once that is `silence_seconds` ago and nothing has come in
between, and more than half of the organisations must have such votes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from chaincode.common import (
    STAFF,
    LedgerContract,
    allow,
    caller_of,
    provenance,
    time_text,
)
from chaincode.common.calls import find_task
from chaincode.common.own import find_word, find_words, write_word
from chaincode.orchestration.consent import majority_of
from chaincode.orchestration.process import Process, ProcessProgress, owner_of
from chaincode.shim import Context, submit
from protocol import canonical
from protocol.agreement.course import ChangeKind
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessTransition
from protocol.errors import StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys
from protocol.ledger.changes import AbsenceStatus, AbsenceVote, ChangeRecord
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.tasks import TaskEvidence
from protocol.task.opening import TaskId


@dataclass(frozen=True, slots=True)
class Silence:
    """Who is silent in a process: some nodes of an organisation, or the whole of it."""

    process: Process
    progress: ProcessProgress
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
        return place(self.process.id, self.about, voter)

    def last_acts(self, ctx: Context) -> list[Provenance]:
        """Return from where on each node is silent; an organisation without nodes is since its acceptance."""
        names = self.progress.plan.nodes_of(self.organisation) if self.whole else tuple(self.nodes)
        acts = [self._last_act(ctx, node) for node in names]
        return acts or [self.process.record.accepted.get(self.organisation, self._started)]

    def _last_act(self, ctx: Context, node: str) -> Provenance:
        missing = self.nodes.get(node)
        task = None if missing is None else find_task(ctx, TaskId(self.process.id, node, missing))
        done = self.progress.records.get(node)
        acted = _last_of(task) if task is not None else self._started if done is None else done.updated
        joined = self.process.record.course.joins.get(node)
        return acted if joined is None else _latest([acted, *self.process.change_of(joined).agreed.values()])

    @property
    def _started(self) -> Provenance:
        started = self.process.record.started
        assert started is not None  # noqa: S101
        return started


class Absences(LedgerContract):
    """LeaveOut and LeaveOutOrganisation."""

    @submit
    @allow(*STAFF)
    def leave_out(self, ctx: Context, process: str, node: str, reason: str) -> AbsenceStatus:
        """Vote to leave a silent node out, from the iteration on that it owes; returns what the vote came to.

        It holds when more than half of the organisations that take part have voted so after the node had
        been silent for `silence_seconds`. An earlier vote is kept, and counts when it is repeated in time.
        """
        found, progress = _opened(ctx, process, reason)
        owner = owner_of(progress.plan.nodes, node, process)
        missing = progress.next_of(node)
        if missing is None:
            raise StateError("NODE_INACTIVE", f"{node} has nothing left to do in {process}")
        return self._voted(ctx, Silence(found, progress, owner, {node: missing}, whole=False), reason)

    @submit
    @allow(*STAFF)
    def leave_out_organisation(
        self, ctx: Context, process: str, organisation: str, reason: str
    ) -> AbsenceStatus:
        """Vote to leave a silent organisation out, with its say and all nodes that have work left.

        As LeaveOut, for an organisation none of whose nodes has sent anything; one without nodes is silent
        since it accepted. Returns what the vote came to.
        """
        found, progress = _opened(ctx, process, reason)
        if parse_organisation(organisation) not in progress.present():
            raise StateError("NODE_INACTIVE", f"{organisation} takes no part in {process}")
        unfinished = progress.unfinished()
        own = {node: unfinished[node] for node in progress.plan.nodes_of(organisation) if node in unfinished}
        return self._voted(ctx, Silence(found, progress, organisation, own, whole=True), reason)

    def _voted(self, ctx: Context, silence: Silence, reason: str) -> AbsenceStatus:
        voter, present = caller_of(ctx).organisation, silence.progress.present()
        vote = _vote(ctx, silence, voter, reason)
        write_word(ctx, voter, silence.key_of(voter), vote)
        others = {name: silence.key_of(name) for name in present if name != voter}
        found = find_words(ctx, others, AbsenceVote) | {voter: vote}
        voted: dict[str, Provenance] = {
            name: other.by.without_reason
            for name, other in found.items()
            if other.counts and other.seen == vote.seen and other.nodes == vote.nodes
        }
        needed, change = majority_of(present), None
        if len(voted) >= needed:
            change = self._left_out(ctx, silence, vote, voted)
        else:
            self.announce_vote(ctx, silence.process.id, "leave-out", silence.about, (len(voted), needed))
        return AbsenceStatus(vote, tuple(sorted(voted)), needed, change)

    def _left_out(
        self, ctx: Context, silence: Silence, vote: AbsenceVote, voted: dict[str, Provenance]
    ) -> int:
        process, progress = silence.process, silence.progress
        subject = {
            "organisation": vote.organisation,
            "nodes": vote.nodes,
            "whole": vote.whole,
            "last": vote.last.to_dict(),
        }
        change = ChangeRecord(
            process=process.id,
            number=process.record.course.count,
            kind=ChangeKind.LEAVE_OUT,
            iteration=min(vote.nodes.values(), default=progress.current() or 0),
            subject=subject,
            asked=caller_of(ctx).organisation,
            ask=None,
            agreed=voted,
            members=progress.present(),
        )
        process.apply(ctx, change)
        self.announce(
            ctx,
            "ProcessChanged",
            {
                "process": process.id,
                "asked": change.asked,
                "number": change.number,
                "kind": change.kind.value,
                "iteration": change.iteration,
                "organisation": change.asked,
                "holds": True,
            },
        )
        return change.number

    def announce_vote(
        self, ctx: Context, process: str, vote: str, about: str, tally: tuple[int, int]
    ) -> None:
        """Announce a vote that has decided nothing yet."""
        voted, needed = tally
        self.announce(
            ctx,
            "ProcessVoted",
            {
                "process": process,
                "vote": vote,
                "about": about,
                "organisation": caller_of(ctx).organisation,
                "voted": voted,
                "needed": needed,
            },
        )


def _opened(ctx: Context, process: str, reason: str) -> tuple[Process, ProcessProgress]:
    check_text(reason, "the reason")
    found = Process.load(ctx, process)
    found.move(ProcessTransition.LEAVE_OUT)
    progress = ProcessProgress(ctx, process, found.plan)
    progress.need_say(caller_of(ctx))
    return found, progress


def _vote(ctx: Context, silence: Silence, voter: str, reason: str) -> AbsenceVote:
    """Make a vote, which counts if nothing has come since long enough, by the voter's own clock."""
    acts = silence.last_acts(ctx)
    seen = canonical.digest([act.tx for act in acts])
    last = _latest(acts)
    before = find_word(ctx, voter, silence.key_of(voter), AbsenceVote)
    began = last.time if before is None or before.seen != seen else before.since
    since = min(began, time_text(ctx.time))
    enough = timedelta(seconds=silence.process.specification.silence_seconds)
    return AbsenceVote(
        process=silence.process.id,
        organisation=silence.organisation,
        nodes=silence.nodes,
        whole=silence.whole,
        last=last,
        seen=seen,
        since=since,
        counts=ctx.time - datetime.fromisoformat(since) >= enough,
        by=ReasonedProvenance.of(provenance(ctx), reason),
    )


def _latest(acts: list[Provenance]) -> Provenance:
    return max(acts, key=lambda act: (act.time, act.tx))


def _last_of(task: TaskEvidence) -> Provenance:
    """Return the last transaction of a task: it is opened, shares, and is closed."""
    if task.closed is not None:
        return task.closed.by
    if task.share is not None:
        return task.share.by
    assert task.opened is not None  # noqa: S101
    return task.opened
