"""What a process has been changed in, what is asked for, and how votes stand, as lines and as an object."""

from collections.abc import Iterator, Mapping
from typing import Any

from executor.ledger.chaincodes.proxies import Ledger
from protocol.agreement.course import ChangeKind
from protocol.ledger.changes import AbsenceVote, AskStatus, ChangeRecord, ProcessVotes
from protocol.values import dataclass


@dataclass(frozen=True)
class Agreements:
    """The changes that hold, those asked for, and the votes."""

    changes: tuple[ChangeRecord, ...]
    asks: tuple[AskStatus, ...]
    votes: ProcessVotes

    @classmethod
    def read(cls, ledger: Ledger, process: str) -> "Agreements":
        """Read them from the ledger."""
        found = ledger.orchestration
        return cls(tuple(found.changes(process)), tuple(found.asks(process)), found.votes(process))

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "asks": [{**ask.to_dict(), "holds": ask.holds} for ask in self.asks],
            "votes": self.votes.to_dict(),
        }

    def lines(self) -> Iterator[str]:
        """Say each of them in a line."""
        for change in self.changes:
            yield f"change {change.number}: {change_text(change)}"
        for ask in self.asks:
            yield ask_text(ask)
        abort = self.votes.abort
        for organisation, vote in sorted(abort.voted.items()):
            yield f"{organisation} votes to abort: {vote.reason} ({len(abort.voted)} of {abort.needed} votes)"
        for absence in self.votes.absences:
            yield absence_text(absence)


def ask_text(ask: AskStatus) -> str:
    """Say what an organisation asks for, and who may still agree."""
    what = f"{ask.asked} asks for {change_text(ask)} (number {ask.number})"
    waiting = ", ".join(ask.missing)
    if ask.holds:
        return (
            f"{what}: holds; {waiting} run nothing with it until they agree" if waiting else f"{what}: holds"
        )
    return f"{what}: {len(ask.agreed)} of {ask.needed} agree, waiting for {waiting}"


def absence_text(vote: AbsenceVote) -> str:
    """Say whom an organisation would leave out, and since when nothing has come from it."""
    who = vote.organisation if vote.whole else ", ".join(vote.nodes)
    owed = "".join(f", {node} owes iteration {missing}" for node, missing in sorted(vote.nodes.items()))
    counts = "" if vote.counts else " (too early to count: vote again in time)"
    return f"{vote.by.organisation} votes to leave {who} out: silent since {vote.since}{owed}{counts}"


def change_text(change: ChangeRecord | AskStatus) -> str:
    """Say what changes, from which iteration on."""
    return f"{change.kind} {subject_text(change.kind, change.subject)} from iteration {change.iteration}"


def subject_text(kind: ChangeKind, subject: Mapping[str, Any]) -> str:
    """Say what a change is about: a node and whose it is, a topology, a version."""
    if kind is ChangeKind.TOPOLOGY:
        edges = "".join(f" {a}:{b}" for a, b in subject.get("edges", ()))
        return f"{subject['kind']}{edges}"
    if kind is ChangeKind.IMAGE:
        return f"{subject['version']} ({subject['image_id']})"
    if kind is ChangeKind.LEAVE_OUT:
        return str(subject["organisation"]) if subject["whole"] else ", ".join(sorted(subject["nodes"]))
    if kind is ChangeKind.COORDINATOR:
        return str(subject["coordinator"])
    if kind is ChangeKind.OPEN_STEP:
        return str(subject["step"])
    owner = f" of {subject['organisation']}" if "organisation" in subject else ""
    return f"{subject['node']}{owner}"
