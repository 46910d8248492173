"""Leaving out who is silent: a majority of those who take part decides, after the time the process agreed on.

Since when somebody is silent, who only waits for others, and whether a vote counts, is in
`protocol/ledger/silence.py`; more than half of the organisations must have votes that count.
"""

from functools import cache, partial

from chaincode.common import STAFF, LedgerContract, allow, caller_of, provenance
from chaincode.common.calls import first_share
from chaincode.common.own import find_word, find_words, write_word
from chaincode.orchestration.process import Process, ProcessProgress, owner_of
from chaincode.shim import Context, submit
from protocol.agreement.consent import majority_of
from protocol.agreement.course import ChangeKind
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessTransition
from protocol.errors import StateError
from protocol.identifiers import parse_organisation
from protocol.ledger.changes import AbsenceStatus, AbsenceVote, ChangeRecord
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.silence import ShareOf, Silence


class Absences(LedgerContract):
    """LeaveOut and LeaveOutOrganisation."""

    @submit
    @allow(*STAFF)
    def leave_out(self, ctx: Context, process: str, node: str, reason: str) -> AbsenceStatus:
        """Vote to leave a silent node out, from the iteration on that it owes; returns what the vote came to.

        It holds when more than half of the organisations that take part have voted so after the node had
        been silent for `silence_seconds`: since its share of the iteration that it owes, or its last
        completed one. An earlier vote is kept, and counts when it is repeated in time. A node that waits for
        a neighbour's share is not silent. Each voter counts from its own first vote where the node could not
        go on before another organisation's act, and has done nothing since: a share that it waited for, the
        start, the opening of the step, or the agreement that it joins.
        """
        found, progress = _opened(ctx, process, reason)
        owner = owner_of(progress.plan.nodes, node, process)
        missing = progress.next_of(node)
        if missing is None:
            raise StateError("NODE_INACTIVE", f"{node} has nothing left to do in {process}")
        _check_open(progress, {node: missing})
        silence = _silence(found, progress, owner, {node: missing}, whole=False)
        return self._voted(ctx, (found, progress), silence, reason)

    @submit
    @allow(*STAFF)
    def leave_out_organisation(
        self, ctx: Context, process: str, organisation: str, reason: str
    ) -> AbsenceStatus:
        """Vote to leave a silent organisation out, with its say and all nodes that have work left.

        As LeaveOut, for an organisation none of whose nodes has advanced; one without nodes is silent since
        it accepted. One whose nodes have done all their work owes nothing, and keeps its say. Returns what
        the vote came to.
        """
        found, progress = _opened(ctx, process, reason)
        if parse_organisation(organisation) not in progress.present():
            raise StateError("NODE_INACTIVE", f"{organisation} takes no part in {process}")
        unfinished = progress.unfinished()
        own = {node: unfinished[node] for node in progress.plan.nodes_of(organisation) if node in unfinished}
        _check_open(progress, own)
        silence = _silence(found, progress, organisation, own, whole=True)
        return self._voted(ctx, (found, progress), silence, reason)

    def _voted(
        self, ctx: Context, place: tuple[Process, ProcessProgress], silence: Silence, reason: str
    ) -> AbsenceStatus:
        process, progress = place
        voter, present = caller_of(ctx).organisation, progress.present()
        share_of = cache(partial(first_share, ctx))
        _check_owing(silence, share_of)
        acts = silence.last_acts(share_of, process.change_of)
        waited = silence.waited(share_of, process.change_of)
        vote = _vote(ctx, acts, waited, silence, ReasonedProvenance.of(provenance(ctx), reason))
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
            change = self._left_out(ctx, place, vote, voted)
        else:
            self.announce_vote(ctx, process.id, "leave-out", silence.about, (len(voted), needed))
        return AbsenceStatus(vote, tuple(sorted(voted)), needed, change)

    def _left_out(
        self,
        ctx: Context,
        place: tuple[Process, ProcessProgress],
        vote: AbsenceVote,
        voted: dict[str, Provenance],
    ) -> int:
        process, progress = place
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


def _check_open(progress: ProcessProgress, nodes: dict[str, int]) -> None:
    """Refuse a vote about nodes that wait for the coordinator to open a step: they owe nothing yet."""
    waiting = [node for node, missing in sorted(nodes.items()) if not progress.plan.is_open(missing)]
    if waiting:
        raise StateError("STEP_UNOPENED", f"{waiting[0]} waits for {progress.plan.coordinator}")


def _silence(
    process: Process, progress: ProcessProgress, organisation: str, nodes: dict[str, int], *, whole: bool
) -> Silence:
    return Silence(process.record, progress.plan, progress.records, organisation, nodes, whole)


def _check_owing(silence: Silence, share_of: ShareOf) -> None:
    """Refuse a vote about who has done all its work, or waits for a share of somebody else."""
    about, process = silence.about, silence.record.process
    if not silence.owes:
        raise StateError("NODE_INACTIVE", f"the nodes of {about} have nothing left to do in {process}")
    if silence.waits(share_of):
        raise StateError("NODE_WAITING", f"{about} has shared, and waits for a share of its neighbours")


def _vote(
    ctx: Context, acts: list[Provenance], waited: bool, silence: Silence, by: ReasonedProvenance
) -> AbsenceVote:
    voter = by.organisation
    before = find_word(ctx, voter, silence.key_of(voter), AbsenceVote)
    return silence.vote(acts, waited, before, by)
