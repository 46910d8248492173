"""What the orchestration chaincode keeps of changes and votes, each under a key that one organisation writes.

A task reads the process and the changes that hold, and none of the rest: whoever asks, agrees, votes or
withdraws holds up nobody's results.
"""

from dataclasses import replace
from typing import Annotated, ClassVar

from protocol import canonical
from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.plan import Plan
from protocol.digest import Digest
from protocol.ledger import keys
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.record import ABSENT, SMALL, LedgerRecord, Raw
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class OwnWord(LedgerRecord):
    """What an organisation says for itself: it counts only with a mark that the organisation endorsed."""

    versioned: ClassVar[bool] = True

    @property
    def mark(self) -> str:
        """What the organisation's own collection holds for it: SHA-256 of the record as it was written."""
        return str(canonical.digest(self.to_dict()))


@dataclass(frozen=True, slots=True)
class AcceptanceRecord(LedgerRecord):
    """An organisation accepted a proposed process."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    organisation: Annotated[str, "the organisation that accepts"]
    specification_digest: Annotated[Digest, "what it accepts"]
    by: Annotated[Provenance, "who accepted for it"]


@dataclass(frozen=True, slots=True)
class AskCount(LedgerRecord):
    """How many changes of a process an organisation has asked for."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    asked: Annotated[int, "how many, which is the number of its next"]


@dataclass(frozen=True, slots=True)
class AskRecord(OwnWord):
    """A change that an organisation asks for, until it holds or the asker withdraws it."""

    process: Annotated[str, "the process id"]
    asked: Annotated[str, "the organisation that asks"]
    number: Annotated[int, "how many it had asked for before"]
    kind: Annotated[ChangeKind, "what changes"]
    iteration: Annotated[int, "the first iteration it is to hold for"]
    subject: Annotated[Raw, "the node, the topology or the image version that it is about"]
    digest: Annotated[Digest, "SHA-256 of kind, iteration and subject: what an agreement names"]
    by: Annotated[Provenance, "who asked for it"]
    change: Annotated[int | None, "the number of the change that it became, null while it does not hold"] = (
        None
    )
    withdrawn: Annotated[Provenance | None, "who withdrew it"] = None
    after: Annotated[
        int | None,
        "how many changes held when it was asked; absent in asks of earlier versions, which count as 0",
        ABSENT,
    ] = None

    @property
    def wanted(self) -> Change:
        """What is to change, from when on."""
        return Change(self.kind, self.iteration, self.subject)

    def overtaken_by(self, plan: Plan) -> int | None:
        """Return the change that decided on the same since it was asked; None while there is none.

        Agreements are not taken back: else those to what was given up would wait for the one that is missing,
        and replace what others decided meanwhile.
        """
        last = plan.last_like(self.wanted)
        return None if last is None or last < (self.after or 0) else last

    @property
    def mark(self) -> str:
        """As of every word, without the number that the last to agree writes into it."""
        return str(canonical.digest(replace(self, change=None).to_dict()))


@dataclass(frozen=True, slots=True)
class AgreementRecord(OwnWord):
    """An organisation's agreement to what another asked for."""

    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    asked: Annotated[str, "the organisation that asked"]
    number: Annotated[int, "the number of its ask"]
    organisation: Annotated[str, "the organisation that agrees"]
    digest: Annotated[Digest, "SHA-256 of what it agrees to"]
    by: Annotated[Provenance, "who agreed for it"]


@dataclass(frozen=True, slots=True)
class ChangeRecord(LedgerRecord):
    """A change that holds, written once."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = 2 << 20

    process: Annotated[str, "the process id"]
    number: Annotated[int, "how many came to hold before"]
    kind: Annotated[ChangeKind, "what changes"]
    iteration: Annotated[int, "the first iteration it holds for"]
    subject: Annotated[Raw, "the node, the topology or the image version that it is about"]
    asked: Annotated[str, "the organisation that asked for it"]
    ask: Annotated[int | None, "the number of its ask; null for a vote to leave somebody out"]
    agreed: Annotated[dict[str, Provenance], "by organisation, who agreed"]
    members: Annotated[tuple[str, ...], "the organisations that had a say in it"]

    @property
    def change(self) -> Change:
        """What changes, from when on."""
        return Change(self.kind, self.iteration, self.subject)


@dataclass(frozen=True, slots=True)
class AskStatus(LedgerRecord):
    """An ask after an organisation asked or agreed: whether it holds, and who has yet to agree."""

    process: Annotated[str, "the process id"]
    asked: Annotated[str, "the organisation that asked"]
    number: Annotated[int, "the number of its ask"]
    kind: Annotated[ChangeKind, "what changes"]
    iteration: Annotated[int, "the first iteration it is to hold for"]
    subject: Annotated[Raw, "the node, the topology or the image version that it is about"]
    digest: Annotated[Digest, "SHA-256 of kind, iteration and subject: what an agreement names"]
    agreed: Annotated[tuple[str, ...], "the organisations that have agreed, the asker included"]
    missing: Annotated[tuple[str, ...], "the organisations that may still agree"]
    needed: Annotated[int, "how many agreements it needs"]
    change: Annotated[int | None, "the number of the change that it became, null while it does not hold"]

    @property
    def holds(self) -> bool:
        """Whether all that is needed have agreed."""
        return self.change is not None


@dataclass(frozen=True, slots=True)
class AbsenceVote(OwnWord):
    """An organisation's vote to leave a silent node or organisation out, and what it has seen of it."""

    process: Annotated[str, "the process id"]
    organisation: Annotated[str, "the organisation of the silent node, or the silent organisation"]
    nodes: Annotated[dict[str, int], "the silent nodes, each with the iteration that is missing"]
    whole: Annotated[bool, "whether the organisation is meant, with its say and all of its nodes"]
    last: Annotated[Provenance, "the last transaction of whoever is silent"]
    seen: Annotated[
        Digest, "SHA-256 of the last transactions of all nodes meant: one more makes it another vote"
    ]
    since: Annotated[str, "from when on the voter counts: that transaction's time, or when it first voted"]
    counts: Annotated[bool, "whether the silence had lasted as long as the specification says"]
    by: Annotated[ReasonedProvenance, "who voted, and why"]

    @property
    def key(self) -> str:
        """Where it stands: a vote about a node is of the one that it names."""
        voter = self.by.organisation
        if self.whole:
            return keys.departure(self.process, self.organisation, voter)
        return keys.absence(self.process, next(iter(self.nodes), ""), voter)


@dataclass(frozen=True, slots=True)
class AbsenceStatus(LedgerRecord):
    """What a vote to leave somebody out came to."""

    vote: Annotated[AbsenceVote, "the vote"]
    voted: Annotated[tuple[str, ...], "the organisations whose votes count"]
    needed: Annotated[int, "how many votes it takes"]
    change: Annotated[int | None, "the number of the change that it became, null while it does not hold"]


@dataclass(frozen=True, slots=True)
class AbortVote(OwnWord):
    """An organisation's vote to give a running process up."""

    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    organisation: Annotated[str, "the organisation"]
    by: Annotated[ReasonedProvenance, "who voted for it, and why"]


@dataclass(frozen=True, slots=True)
class AbortStatus(LedgerRecord):
    """The votes to give a process up, and what they came to."""

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where the process stands"]
    voted: Annotated[dict[str, ReasonedProvenance], "by organisation, who voted for it, and why"]
    needed: Annotated[int, "how many votes it takes"]


@dataclass(frozen=True, slots=True)
class ProcessVotes(LedgerRecord):
    """The votes of a process that have come to nothing yet."""

    abort: Annotated[AbortStatus, "the votes to give it up"]
    absences: Annotated[tuple[AbsenceVote, ...], "the votes to leave somebody out"]


def change_digest(change: Change) -> Digest:
    """Return what an agreement to a change names."""
    return canonical.digest(change.to_dict())
