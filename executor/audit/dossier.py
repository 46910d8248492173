"""Everything the chain says about one process, task, estimator or model, in the order of the blocks."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from executor.audit.chain import Position
from executor.audit.findings import Claim, Failure, Findings
from executor.audit.replay.models import greatest_vote
from executor.audit.replay.openings import profile_of
from executor.audit.replay.view import View, Written
from executor.audit.sentences import facts_of, sentence_of
from protocol.errors import IdentifierError
from protocol.identifiers import check_counter, parse_node, parse_process
from protocol.ledger import keys
from protocol.ledger.models import ModelRecord
from protocol.task.opening import TaskId

OF_ONE_TREE = ("estimator", "offer", "member")
"""Records about single trees: a process has too many of them to be told one by one."""


@dataclass(frozen=True)
class Subject:
    """What an audit is about, and which keys of the ledger belong to it."""

    kind: str
    name: str
    process: str
    includes: Callable[[keys.Key], bool] = field(repr=False)

    def rests_on(self, task: TaskId) -> bool:
        """Whether a challenge of a task concerns it: its own task, or any of the process it came from."""
        return self.name == str(task) if self.kind == "task" else task.process == self.process

    @classmethod
    def parse(cls, kind: str, name: str) -> "Subject":
        """Read PROCESS, PROCESS/NODE/ITERATION, PROCESS/NODE/COUNTER or PROCESS/NODE."""
        words = name.split("/")
        process = parse_process(words[0])
        if kind == "process" and len(words) == 1:
            return cls(kind, name, process, lambda key: process in key.parts)
        if kind == "model" and len(words) == 2:
            node = parse_node(words[1])
            known = {("model", process, node), ("access", process, node)}
            return cls(kind, name, process, lambda key: (key.kind, *key.parts[:2]) in known)
        if kind in ("task", "estimator") and len(words) == 3 and words[2].isdecimal():
            node, number = parse_node(words[1]), check_counter(int(words[2]), kind)
            if kind == "task":
                return cls(kind, name, process, _task_keys(process, node, number))
            wanted = (process, node, number)
            kinds = ("estimator", "sharedtree", "creation", "offer", "member", "tree")
            return cls(kind, name, process, lambda key: key.kind in kinds and key.parts[:3] == wanted)
        raise IdentifierError("NAME_SYNTAX", f"{name[:80]!r} names no {kind}")


def _task_keys(process: str, node: str, iteration: int) -> Callable[[keys.Key], bool]:
    known = {
        ("task", process, node, iteration),
        ("share", process, iteration, node),
        ("result", process, iteration, node),
    }

    def includes(key: keys.Key) -> bool:
        about = ("refusal", "challenge", "answer", "verdict")
        mine = key.kind in about and key.parts[:3] == (process, node, iteration)
        return mine or (key.kind, *key.parts) in known

    return includes


@dataclass(frozen=True)
class Happened:
    """One thing that happened to the subject, and by which transaction."""

    position: Position
    tx_id: str
    by: str
    endorsed_by: tuple[str, ...]
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {
            "block": self.position.block,
            "transaction": self.position.tx,
            "tx_id": self.tx_id,
            "by": self.by,
            "endorsed_by": list(self.endorsed_by),
            "sentence": self.sentence,
        }


class SubjectFindings(Findings):
    """Findings that are also counted for one subject, while its records are judged."""

    def __init__(self, sentences: dict[str, str], subject: Subject) -> None:
        super().__init__(sentences)
        self.subject = subject
        self.about = Findings(sentences)
        self._inside = False

    def enter(self, key: object) -> None:
        """Say whose record is judged from now on."""
        self._inside = isinstance(key, keys.Key) and self.subject.includes(key)

    def count(self, claim: str, times: int = 1) -> None:
        """Count checks, for the subject too while its record is judged."""
        super().count(claim, times)
        if self._inside:
            self.about.count(claim, times)

    def fail(self, claim: str, what: str, where: str) -> None:
        """Note a failure, for the subject too while its record is judged."""
        super().fail(claim, what, where)
        if self._inside:
            self.about.fail(claim, what, where)


@dataclass
class Dossier:
    """What was seen of a subject."""

    subject: Subject
    events: list[Happened] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """What the last record says, by name."""
    organisations: Counter[str] = field(default_factory=Counter)

    def observe(self, view: View, item: Written) -> None:
        """Take note of a record that belongs to the subject."""
        if not self.subject.includes(item.key):
            return
        sentence, of_process = sentence_of(item), self.subject.kind == "process"
        if not sentence or (of_process and item.key.kind in OF_ONE_TREE):
            return
        found = view.committed.transaction
        by = f"{found.creator.name[:64]} of {found.creator.organisation.msp_id}"
        self.events.append(Happened(view.committed.position, found.tx_id, by, found.endorsed_by, sentence))
        # Of a process, what its own record says: each of its tasks has digests of its own.
        if not of_process or item.key.kind == "process":
            self.facts.update(facts_of(item))
            if isinstance(item.record, ModelRecord):
                name, share = greatest_vote(view, item.record)
                self.facts["greatest vote of another organisation"] = f"{share:.4f} {name}".strip()
            profile = profile_of(view) if item.key.kind == "task" else b""
            if profile:
                self.facts["sandbox profile"] = profile.decode(errors="replace")


def claims_of(findings: SubjectFindings, positions: set[Position]) -> tuple[list[Claim], list[Failure]]:
    """Return the claims about a subject, and what is wrong with it or with the transactions about it."""
    places = tuple(str(position) for position in positions)
    own = set(findings.about.failures)
    own |= {failure for failure in findings.failures if failure.where.split(" (")[0] in places}
    ordered = [failure for failure in findings.failures if failure in own]
    return findings.about.claims, ordered
