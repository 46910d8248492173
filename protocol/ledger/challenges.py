"""Challenges of tasks: who doubts a task, before which auditor its owner ran it again, and what came of it.

One rule for each question, for the chaincode, the client and the offline audit: what may be challenged
(`Challenged`), who may judge (`ChallengeRecord.auditors`), what a replay shows (`judged`), and where a
challenge stands (`ChallengeEvidence.standing`).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, ClassVar

from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.identifiers import EstimatorId
from protocol.ledger.changes import OwnWord
from protocol.ledger.common import Provenance
from protocol.ledger.record import SMALL, LedgerRecord
from protocol.task.opening import TaskId
from protocol.values import dataclass

MAX_OPEN = 8
"""How many challenges one organisation may have open against another in one process."""
MAX_NAMED = 20
"""How many trees a verdict names; the digests of share and result cover all of them."""


class Verdict(StrEnum):
    """What an auditor found."""

    SAME = "same"
    DIFFERS = "differs"
    UNOPENED = "unopened"


class Standing(StrEnum):
    """Where a challenge stands; the graver of several verdicts counts."""

    UNANSWERED = "unanswered"
    ANSWERED = "answered"
    SAME = "same"
    UNOPENED = "unopened"
    DIFFERS = "differs"


ADVERSE = frozenset((Standing.UNOPENED, Standing.DIFFERS))
"""A replay in front of an auditor did not give what the ledger has."""
OPEN = frozenset((Standing.UNANSWERED, Standing.ANSWERED))
"""Nobody has judged yet."""


@dataclass(frozen=True, slots=True)
class Replayed(LedgerRecord):
    """What running a task again came to."""

    share: Annotated[Digest | None, "digest of what it offers; null for a task without neighbours"]
    result: Annotated[Digest | None, "digest of its result; null if only its share was on the ledger"]
    differing: Annotated[tuple[EstimatorId, ...], "trees that came out otherwise, 20 of them at most"] = ()


@dataclass(frozen=True, slots=True)
class ChallengeRecord(OwnWord):
    """That an organisation doubts that a task ran as the ledger says."""

    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node of the task"]
    iteration: Annotated[int, "its iteration"]
    organisation: Annotated[str, "the MSP id of who challenges"]
    challenged: Annotated[str, "the MSP id of the node, whose turn it is to answer"]
    share: Annotated[Digest | None, "digest of what the task had offered by then"]
    result: Annotated[Digest | None, "digest of the result it had by then"]
    auditors: Annotated[tuple[str, ...], "the MSP ids of those whose verdict the challenger accepts"]
    reason: Annotated[str, "why, in the challenger's words"]
    by: Annotated[Provenance, "who challenged"]

    @property
    def task(self) -> TaskId:
        """Which task."""
        return TaskId(self.process, self.node, self.iteration)


@dataclass(frozen=True, slots=True)
class AnswerRecord(OwnWord):
    """That the owner of a challenged task opens its inputs to an auditor."""

    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node of the task"]
    iteration: Annotated[int, "its iteration"]
    organisation: Annotated[str, "the MSP id of who challenged"]
    auditor: Annotated[str, "the MSP id of the auditor's organisation"]
    evidence: Annotated[Digest, "SHA-256 of the file that the auditor is given: data, salt, state and slots"]
    by: Annotated[Provenance, "who answered"]


@dataclass(frozen=True, slots=True)
class VerdictRecord(OwnWord):
    """What an auditor found who ran a challenged task again."""

    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node of the task"]
    iteration: Annotated[int, "its iteration"]
    organisation: Annotated[str, "the MSP id of who challenged"]
    auditor: Annotated[str, "the MSP id of the auditor's organisation"]
    verdict: Annotated[Verdict, "same, differs, or unopened: what was given does not open the commitment"]
    replayed: Annotated[Replayed | None, "what the replay came to; null if there was nothing to replay"]
    by: Annotated[Provenance, "the auditor"]


@dataclass(frozen=True, slots=True)
class ChallengedTask(LedgerRecord):
    """One task that an organisation has challenged."""

    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]


@dataclass(frozen=True, slots=True)
class OpenChallenges(LedgerRecord):
    """What one organisation challenged of another and found unjudged when it challenged last."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    challenged: Annotated[str, "the MSP id of who is challenged"]
    organisation: Annotated[str, "the MSP id of who challenges"]
    tasks: Annotated[tuple[ChallengedTask, ...], "the tasks, 8 at most"]


@dataclass(frozen=True, slots=True)
class ChallengeEvidence(LedgerRecord):
    """A challenge with its answers and verdicts."""

    challenge: Annotated[ChallengeRecord, "who doubts which task, and why"]
    answers: Annotated[tuple[AnswerRecord, ...], "to whom the owner opened its inputs"]
    verdicts: Annotated[tuple[VerdictRecord, ...], "what those auditors found"]

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        found = {record.verdict for record in self.verdicts}
        for verdict in (Verdict.DIFFERS, Verdict.UNOPENED, Verdict.SAME):
            if verdict in found:
                return Standing(verdict.value)
        return Standing.ANSWERED if self.answers else Standing.UNANSWERED


def judged(challenge: ChallengeRecord, replayed: Replayed | None) -> Verdict:
    """Judge a replay by the digests that the challenge names, and by nothing else."""
    if replayed is None:
        return Verdict.UNOPENED
    same = (replayed.share, replayed.result) == (challenge.share, challenge.result)
    if same and replayed.differing:
        raise RecordError("RECORD_VALUE", "trees are said to differ whose share and result are the same")
    if len(replayed.differing) > MAX_NAMED:
        raise RecordError("RECORD_VALUE", f"a verdict names {MAX_NAMED} trees at most")
    return Verdict.SAME if same else Verdict.DIFFERS


def third_parties(organisations: Iterable[str], challenge: tuple[str, str]) -> tuple[str, ...]:
    """Return those who are neither the challenger nor the challenged: only they can be auditors."""
    return tuple(sorted({*organisations} - {*challenge}))
