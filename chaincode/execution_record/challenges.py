"""Challenges: a doubt about a task, the owner's answer in front of an auditor, the auditor's verdict.

Nothing that a task reads or writes is touched: a challenge holds up neither the process nor anybody in it.
"""

from typing import Any

from chaincode.common import (
    DEFAULT_PAGE,
    STAFF,
    LedgerContract,
    Role,
    allow,
    caller_of,
    page,
    provenance,
    read,
    read_many,
    write,
)
from chaincode.common.calls import EXECUTION_RECORD
from chaincode.common.own import find_word, find_words, is_word, write_word
from chaincode.execution_record.store import find_result, find_share, get_task
from chaincode.shim import Context, evaluate, submit
from protocol import canonical
from protocol.agreement.image import check_text
from protocol.digest import Digest
from protocol.errors import AccessError, StateError
from protocol.identifiers import parse_node, parse_organisation, parse_process
from protocol.ledger import keys
from protocol.ledger.challenges import (
    MAX_OPEN,
    AnswerRecord,
    ChallengedTask,
    ChallengeEvidence,
    ChallengeRecord,
    OpenChallenges,
    Replayed,
    VerdictRecord,
    judged,
    third_parties,
)
from protocol.ledger.common import Page
from protocol.ledger.record import VERSION
from protocol.task.opening import TaskId

_CHALLENGE = "version, process, node, iteration, organisation (who challenges), challenged"
EVENTS = {
    "TaskChallenged": f"an organisation doubts that a task ran: {_CHALLENGE}",
    "ChallengeAnswered": f"the owner opened a task's inputs to an auditor: {_CHALLENGE}, auditor",
    "ChallengeJudged": f"an auditor ran a challenged task again: {_CHALLENGE}, auditor, verdict",
}


class Challenges(LedgerContract):
    """Challenge, AnswerChallenge, JudgeChallenge and ListChallenges."""

    @submit
    @allow(*STAFF, Role.AUDITOR)
    def challenge(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, iteration: int, auditors: list[str], reason: str = ""
    ) -> ChallengeRecord:
        """Doubt that a task of another organisation ran as the ledger says.

        It is due to be run again in front of an auditor of a third organisation: one of those named, or any
        of the channel if none is. An organisation challenges a task once, and has 8 challenges at most open
        against another organisation of a process.
        """
        check_text(reason, "the reason")
        task, caller = get_task(ctx, TaskId(process, node, iteration)), caller_of(ctx)
        if caller.organisation == task.organisation:
            raise AccessError("CHALLENGE_OWN", f"{node} is a node of {task.organisation} itself")
        share, result = find_share(ctx, task.id), find_result(ctx, task.id)
        if share is None and result is None:
            raise StateError("CHALLENGE_TASK", f"task {task.id} has put nothing on the ledger yet")
        record = ChallengeRecord(
            process,
            node,
            iteration,
            caller.organisation,
            task.organisation,
            None if share is None else share.signed.payload_digest,
            None if result is None else result.signed.payload_digest,
            _auditors(ctx, auditors, (caller.organisation, task.organisation)),
            reason,
            provenance(ctx),
        )
        key = keys.challenge(process, node, iteration, caller.organisation)
        if find_word(ctx, caller.organisation, key, ChallengeRecord) is not None:
            raise StateError("CHALLENGE_EXISTS", f"{caller.organisation} has challenged {task.id} before")
        _count(ctx, record)
        write_word(ctx, caller.organisation, key, record)
        self._announce(ctx, "TaskChallenged", record)
        return record

    @submit
    @allow(*STAFF, Role.NODE)
    def answer_challenge(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        iteration: int,
        organisation: str,
        auditor: str,
        evidence: str,
    ) -> AnswerRecord:
        """Open the inputs of a challenged task to one of the auditors that the challenge names.

        `organisation` is who challenged, `auditor` the auditor's organisation, and `evidence` the SHA-256 of
        the file that the auditor is given. An owner may answer before several auditors, once each.
        """
        challenge = _challenge(ctx, process, node, iteration, organisation)
        caller_of(ctx).need_organisation(challenge.challenged)
        if auditor not in challenge.auditors:
            named = ", ".join(challenge.auditors)
            raise AccessError("CHALLENGE_AUDITOR", f"{organisation} accepts the verdict of {named} alone")
        place = (process, node, iteration, organisation, auditor)
        if _answer(ctx, challenge, auditor) is not None:
            raise StateError("CHALLENGE_ANSWERED", f"{auditor} was named before")
        answer = AnswerRecord(*place, Digest.parse(evidence), provenance(ctx))
        write_word(ctx, challenge.challenged, keys.answer(*place), answer)
        self._announce(ctx, "ChallengeAnswered", challenge, auditor=auditor)
        return answer

    @submit
    @allow(Role.AUDITOR)
    def judge_challenge(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        iteration: int,
        organisation: str,
        replayed: dict[str, Any],
    ) -> VerdictRecord:
        """Record what running a challenged task again came to, by the auditor that its owner answered before.

        `replayed` has the digests `share` and `result` that came out, and in `differing` up to 20 trees that
        came out otherwise; it is empty if what the auditor was given does not open the task's commitment.
        The verdict follows from it: same, differs or unopened.
        """
        challenge = _challenge(ctx, process, node, iteration, organisation)
        auditor = caller_of(ctx).organisation
        place = (process, node, iteration, organisation, auditor)
        if auditor not in challenge.auditors:
            raise AccessError("CHALLENGE_AUDITOR", f"the challenge does not name {auditor}")
        if _answer(ctx, challenge, auditor) is None:
            raise StateError(
                "CHALLENGE_UNANSWERED", f"{challenge.challenged} has opened nothing to {auditor}"
            )
        if find_word(ctx, auditor, keys.verdict(*place), VerdictRecord) is not None:
            raise StateError("CHALLENGE_JUDGED", f"{auditor} has given its verdict")
        found = Replayed.from_dict(replayed) if replayed else None
        verdict = VerdictRecord(*place, judged(challenge, found), found, provenance(ctx))
        write_word(ctx, auditor, keys.verdict(*place), verdict)
        self._announce(ctx, "ChallengeJudged", challenge, auditor=auditor, verdict=verdict.verdict.value)
        return verdict

    @evaluate
    def list_challenges(
        self, ctx: Context, process: str, node: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ChallengeEvidence]:
        """List the challenges of a process's tasks, or of one node's, with their answers and verdicts.

        What the organisation that it is of did not endorse itself is left out.
        """
        prefix = ("challenge", parse_process(process), *([parse_node(node)] if node else ()))
        return page(ctx, prefix, size, bookmark, ChallengeRecord, lambda record: _evidence(ctx, record))

    def _announce(
        self, ctx: Context, event: str, challenge: ChallengeRecord, **more: canonical.Record
    ) -> None:
        payload: dict[str, canonical.Record] = {
            "version": VERSION,
            **challenge.task.to_dict(),
            "organisation": challenge.organisation,
            "challenged": challenge.challenged,
            **more,
        }
        self.announce(ctx, event, payload)


def _auditors(ctx: Context, named: list[str], parties: tuple[str, str]) -> tuple[str, ...]:
    """Return whose verdict counts: of those on the channel, so that an owner who is willing can answer."""
    present = third_parties(ctx.organisations(EXECUTION_RECORD), parties)
    wanted = third_parties(map(parse_organisation, named), ("", "")) or present
    strange = [name for name in wanted if name not in present]
    if strange or not wanted:
        who = ", ".join(strange) or "nobody"
        raise AccessError("CHALLENGE_AUDITOR", f"{who} is a third organisation on this channel")
    return wanted


def _count(ctx: Context, challenge: ChallengeRecord) -> None:
    """Keep one organisation's open challenges of another within bounds; what was judged is forgotten."""
    key = keys.openchallenges(challenge.process, challenge.challenged, challenge.organisation)
    before = read(ctx, key, OpenChallenges)
    still = tuple(task for task in (before.tasks if before else ()) if not _is_judged(ctx, challenge, task))
    if len(still) >= MAX_OPEN:
        raise StateError("CHALLENGE_QUOTA", f"{len(still)} challenges of {challenge.challenged} are open")
    tasks = (*still, ChallengedTask(challenge.node, challenge.iteration))
    write(ctx, key, OpenChallenges(challenge.process, challenge.challenged, challenge.organisation, tasks))


def _is_judged(ctx: Context, like: ChallengeRecord, task: ChallengedTask) -> bool:
    """Whether a challenge no longer counts: judged, or none that the organisation made."""
    key = keys.challenge(like.process, task.node, task.iteration, like.organisation)
    challenge = find_word(ctx, like.organisation, key, ChallengeRecord)
    return challenge is None or bool(_verdicts(ctx, challenge))


def _challenge(ctx: Context, process: str, node: str, iteration: int, organisation: str) -> ChallengeRecord:
    key = keys.challenge(process, node, iteration, organisation)
    found = find_word(ctx, organisation, key, ChallengeRecord)
    if found is None:
        task = TaskId(process, node, iteration)
        raise StateError("CHALLENGE_UNKNOWN", f"{organisation} has not challenged {task}")
    return found


def _evidence(ctx: Context, challenge: ChallengeRecord) -> ChallengeEvidence | None:
    """Gather what counts about a challenge; None where nobody vouched for the challenge itself."""
    key = keys.challenge(*_place(challenge))
    if not is_word(ctx, challenge.organisation, key, challenge):
        return None
    return ChallengeEvidence(challenge, _answers(ctx, challenge), _verdicts(ctx, challenge))


def _answers(ctx: Context, challenge: ChallengeRecord) -> tuple[AnswerRecord, ...]:
    """Read to whom the owner opened its inputs."""
    places = [keys.answer(*_place(challenge), auditor) for auditor in challenge.auditors]
    found = zip(places, read_many(ctx, places, AnswerRecord), strict=True)
    owner = challenge.challenged
    return tuple(answer for key, answer in found if answer is not None and is_word(ctx, owner, key, answer))


def _answer(ctx: Context, challenge: ChallengeRecord, auditor: str) -> AnswerRecord | None:
    """Read whether the owner opened its inputs to an auditor."""
    return find_word(ctx, challenge.challenged, keys.answer(*_place(challenge), auditor), AnswerRecord)


def _verdicts(ctx: Context, challenge: ChallengeRecord) -> tuple[VerdictRecord, ...]:
    """Read the verdicts that there are, each vouched for by its auditor's organisation."""
    places = {auditor: keys.verdict(*_place(challenge), auditor) for auditor in challenge.auditors}
    return tuple(find_words(ctx, places, VerdictRecord).values())


def _place(challenge: ChallengeRecord) -> tuple[str, str, int, str]:
    return challenge.process, challenge.node, challenge.iteration, challenge.organisation
