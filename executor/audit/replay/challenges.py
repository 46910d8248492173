"""Challenges: raised, answered and judged by those who may, about what was on the ledger by then."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from executor.audit.fabric.state import Key, State
from executor.audit.findings import Findings
from executor.audit.replay.view import EXECUTION, View, Written, is_vouched, parse_record
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.ledger import keys
from protocol.ledger.challenges import (
    MAX_OPEN,
    AnswerRecord,
    ChallengedTask,
    ChallengeEvidence,
    ChallengeRecord,
    OpenChallenges,
    VerdictRecord,
    judged,
    third_parties,
)
from protocol.ledger.changes import OwnWord
from protocol.ledger.tasks import ResultRecord, ShareRecord

W = TypeVar("W", bound=OwnWord)

SENTENCES = {
    "challenges": "each challenge, answer and verdict was written once, by who may, of what there was, and"
    " vouched for",
}


def check_challenge(findings: Findings, view: View, item: Written) -> None:
    """A challenge is another organisation's, of what the task had put on the ledger, and has an auditor."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ChallengeRecord)  # noqa: S101
    check = findings.check
    _check_word(findings, view, item, record.organisation)
    owner = view.plan(record.process).nodes.get(record.node)
    own = view.creator.organisation.msp_id == record.organisation
    check("challenges", own and record.challenged == owner, f"{key} is not by or of whom it says", where)
    third = third_parties(record.auditors, (record.organisation, record.challenged))
    fair = record.organisation != owner and record.auditors == third != ()
    check("challenges", fair, f"{key} names auditors who are no third parties", where)
    share = view.find(keys.share(record.process, record.iteration, record.node), ShareRecord)
    result = view.find(keys.result(record.process, record.iteration, record.node), ResultRecord)
    there = (_digest(share), _digest(result))
    same = there == (record.share, record.result) != (None, None)
    check("challenges", same, f"{key} is about another share or result than the task's", where)
    counted = view.written.get(keys.openchallenges(record.process, record.challenged, record.organisation))
    task = ChallengedTask(record.node, record.iteration)
    noted = isinstance(counted, OpenChallenges) and task in counted.tasks
    check("challenges", noted, f"{key} was not counted", where)


def check_answer(findings: Findings, view: View, item: Written) -> None:
    """An answer is the owner's, before an auditor whom the challenger accepts."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AnswerRecord)  # noqa: S101
    check = findings.check
    challenge = _challenge(view, record)
    _check_word(findings, view, item, "" if challenge is None else challenge.challenged)
    fits = challenge is not None and record.auditor in challenge.auditors
    check("challenges", fits, f"{key} names an auditor that no challenge accepts", where)
    own = challenge is not None and view.creator.organisation.msp_id == challenge.challenged
    check("challenges", own, f"{key} was written by another organisation than the owner's", where)


def check_verdict(findings: Findings, view: View, item: Written) -> None:
    """A verdict is the auditor's before whom the owner answered, and says what its digests say."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, VerdictRecord)  # noqa: S101
    check = findings.check
    _check_word(findings, view, item, record.auditor)
    challenge = _challenge(view, record)
    place = (record.process, record.node, record.iteration, record.organisation, record.auditor)
    owner = "" if challenge is None else challenge.challenged
    answered = view.had_word(EXECUTION, owner, keys.answer(*place), AnswerRecord) is not None
    check("challenges", answered, f"{key} was given without an answer", where)
    creator = view.creator
    auditor = (creator.organisation.msp_id, creator.attributes.get("role")) == (record.auditor, "auditor")
    check("challenges", auditor, f"{key} was written by {creator.name[:64]}, no such auditor", where)
    right = challenge is not None and judged(challenge, record.replayed) is record.verdict
    check("challenges", right, f"{key} says {record.verdict}, which its digests do not", where)


def _check_word(findings: Findings, view: View, item: Written, organisation: str) -> None:
    """What an organisation says is vouched for by itself, and said once; a forged one does not silence it."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, OwnWord)  # noqa: S101
    fresh = view.had_word(EXECUTION, organisation, item.raw_key, type(record)) is None
    findings.check("challenges", fresh, f"{key} was overwritten", where)
    vouched = view.has_mark(EXECUTION, organisation, item.raw_key, record.mark)
    findings.check("challenges", vouched, f"{organisation or 'its owner'} did not vouch for {key}", where)


def check_open(findings: Findings, view: View, item: Written) -> None:
    """An organisation has no more open challenges than it may, and only what was judged is forgotten."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, OpenChallenges)  # noqa: S101
    before = view.before(item.raw_key, OpenChallenges)
    findings.check("challenges", len(record.tasks) <= MAX_OPEN, f"{key} is beyond the quota", where)
    for task in before.tasks if before is not None else ():
        kept = task in record.tasks or _is_judged(view, record, task)
        findings.check("challenges", kept, f"{key} leaves out {task.node}/{task.iteration}", where)


RULES = {
    "challenge": (check_challenge,),
    "answer": (check_answer,),
    "verdict": (check_verdict,),
    "openchallenges": (check_open,),
}


def standing_challenges(state: State) -> list[ChallengeEvidence]:
    """Return every challenge on the channel with its answers and verdicts, as the last block left them.

    What its organisation did not vouch for does not count, as on the ledger.
    """
    return [_evidence(state, found) for found in _words(state, ChallengeRecord, _challenger, "challenge")]


def _challenger(challenge: ChallengeRecord) -> str:
    return challenge.organisation


def _evidence(state: State, challenge: ChallengeRecord) -> ChallengeEvidence:
    """Gather what its owner and the auditors said about a challenge."""
    task = challenge.task
    place = (task.process, task.node, task.iteration, challenge.organisation)

    def owner(_: AnswerRecord) -> str:
        return challenge.challenged

    def auditor(verdict: VerdictRecord) -> str:
        return verdict.auditor

    answers = _words(state, AnswerRecord, owner, "answer", *place)
    verdicts = _words(state, VerdictRecord, auditor, "verdict", *place)
    return ChallengeEvidence(challenge, tuple(answers), tuple(verdicts))


def _words(
    state: State, kind: type[W], speaker: Callable[[W], str], name: str, *parts: str | int
) -> Iterator[W]:
    """Iterate over what organisations said; what is of no known form was found as it was read."""
    for key in state.between(EXECUTION, *keys.range_of(keys.prefix(name, *parts))):
        try:
            record = parse_record(name, state.value(Key(EXECUTION, "", key)) or b"")
        except AttestreeError:
            continue
        if isinstance(record, kind) and is_vouched(state, EXECUTION, speaker(record), key, record.mark):
            yield record


def _challenge(view: View, record: AnswerRecord | VerdictRecord) -> ChallengeRecord | None:
    place = (record.process, record.node, record.iteration, record.organisation)
    return view.had_word(EXECUTION, record.organisation, keys.challenge(*place), ChallengeRecord)


def _is_judged(view: View, record: OpenChallenges, task: ChallengedTask) -> bool:
    """Whether a challenge no longer counts: judged, or none that the organisation made."""
    place = (record.process, task.node, task.iteration, record.organisation)
    challenge = view.had_word(EXECUTION, record.organisation, keys.challenge(*place), ChallengeRecord)
    return challenge is None or any(
        view.had_word(EXECUTION, auditor, keys.verdict(*place, auditor), VerdictRecord)
        for auditor in challenge.auditors
    )


def _digest(record: ShareRecord | ResultRecord | None) -> Digest | None:
    return None if record is None else record.signed.payload_digest
