"""The challenges of a channel in an audit: those that nobody answered stand in every report.

A verdict is an auditor's word and nothing that an audit computes again. It counts against the task that it is
about, and all that rests on it, because challenger and owner both accepted that auditor. A challenge without
a verdict is shown and counts against nobody: any organisation can raise one.
"""

from collections.abc import Callable, Iterable
from typing import Any

from executor.audit.findings import Claim, Failure
from protocol.ledger.challenges import ADVERSE, OPEN, ChallengeEvidence, Standing
from protocol.task.opening import TaskId

SIGNS = {standing: "✗" if standing in ADVERSE else "?" if standing in OPEN else "✓" for standing in Standing}
SHOWN = 5
SOUND = "no auditor who ran a challenged task of the process again found something else"


def about(found: Iterable[ChallengeEvidence], wanted: Callable[[TaskId], bool]) -> list[ChallengeEvidence]:
    """Return the challenges of some tasks."""
    return [each for each in found if wanted(each.challenge.task)]


def is_sound(found: Iterable[ChallengeEvidence]) -> bool:
    """Whether no auditor found that a task gives something else."""
    return not any(each.standing in ADVERSE for each in found)


def verdicts(found: Iterable[ChallengeEvidence], process: str) -> tuple[list[Claim], list[Failure]]:
    """Return what auditors found who ran challenged tasks of a process again, as a claim about it.

    Nothing where no verdict is there. What was found of other processes is said in the report, and no more.
    """
    judged = [each for each in about(found, lambda task: task.process == process) if each.verdicts]
    if not judged:
        return [], []
    adverse = [each for each in judged if not is_sound([each])]
    failures = [Failure("verdicts", sentence(each), f"task {each.challenge.task}") for each in adverse]
    return [Claim("verdicts", SOUND, len(judged), len(adverse))], failures


def to_dict(found: ChallengeEvidence) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        "task": str(found.challenge.task),
        "standing": found.standing.value,
        "sentence": sentence(found),
        **found.to_dict(),
    }


def sentence(found: ChallengeEvidence) -> str:
    """Say where a challenge stands, and whose turn it is."""
    challenge = found.challenge
    said = f"{challenge.organisation} challenged task {challenge.task} of {challenge.challenged}"
    if found.standing is Standing.UNANSWERED:
        return f"{said}, which has not answered; it may before {', '.join(challenge.auditors)}"
    if found.standing is Standing.ANSWERED:
        before = ", ".join(answer.auditor for answer in found.answers)
        return f"{said}, which answered before {before}: no verdict yet"
    told = "; ".join(f"{each.auditor} found {_words(each.verdict.value)}" for each in found.verdicts)
    trees = [str(id_) for each in found.verdicts if each.replayed for id_ in each.replayed.differing]
    named = f", among others {', '.join(trees[:SHOWN])}" if trees else ""
    return f"{said}: {told}{named}"


def lines(found: Iterable[ChallengeEvidence]) -> list[str]:
    """Return the part of a report for people; nothing where nobody challenged anything."""
    told = [f"{SIGNS[each.standing]} {each.standing}: {sentence(each)}" for each in found]
    return ["", "Challenges:", *told] if told else []


def _words(verdict: str) -> str:
    return {
        "same": "the same trees",
        "differs": "other trees",
        "unopened": "no inputs that open the task's commitment",
    }[verdict]
