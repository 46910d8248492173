"""Requests about who reads models of completed processes, the votes on them, and the catalogue of models.

Each stands under a key that one organisation writes, and counts with that organisation's endorsement.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

from protocol import canonical
from protocol.agreement.consent import Consent
from protocol.agreement.parameters import InitialModel
from protocol.agreement.process import ModelAccess
from protocol.digest import Digest
from protocol.errors import RecordError, StateError
from protocol.ledger import keys
from protocol.ledger.changes import OwnWord
from protocol.ledger.common import Provenance
from protocol.ledger.models import AccessRecord
from protocol.ledger.record import ABSENT, SMALL, LedgerRecord, Raw
from protocol.task.output import MetricsOutput
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class RequestCount(LedgerRecord):
    """How often an organisation has asked for models of a process."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    asked: Annotated[int, "how often, which is the number of its next request"]


@dataclass(frozen=True, slots=True)
class AccessDecision(LedgerRecord):
    """What the votes on a request came to."""

    granted: Annotated[bool, "whether what was asked for was done"]
    agreed: Annotated[tuple[str, ...], "the organisations that voted for it"]
    refused: Annotated[tuple[str, ...], "the organisations that voted against it"]
    by: Annotated[Provenance, "whose vote decided"]


@dataclass(frozen=True, slots=True)
class AccessRequest(OwnWord):
    """An organisation asks to read a model, on the licence of the process, or that another no longer may."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node whose model it is"]
    organisation: Annotated[str, "the organisation that asks"]
    number: Annotated[int, "how often it had asked for models of the process before"]
    purpose: Annotated[str, "what for, in its words"]
    licence: Annotated[Digest | None, "SHA-256 of the licence text that it accepts; null where there is none"]
    expires: Annotated[str | None, "until when; null for no end"]
    by: Annotated[Provenance, "who asked for it"]
    decision: Annotated[AccessDecision | None, "what the votes came to, null before that"] = None
    revokes: Annotated[str | None, "whose access is to end; absent where it asks for its own", ABSENT] = None
    after: Annotated[
        str | None,
        "the transaction that had last decided on this access when it was asked; absent where none had",
        ABSENT,
    ] = None

    @property
    def subject(self) -> str:
        """Whose access it is about."""
        return self.organisation if self.revokes is None else self.revokes

    @property
    def key(self) -> str:
        """Where it stands."""
        return keys.request(self.process, self.node, self.organisation, self.number)

    @property
    def digest(self) -> Digest:
        """What a vote names: SHA-256 of the request as it was asked."""
        return canonical.digest(replace(self, decision=None).to_dict())

    @property
    def mark(self) -> str:
        """As of every word, without the decision, which the last to vote writes into it."""
        return str(self.digest)

    def carried_out(self, access: AccessRecord, by: Provenance) -> AccessRecord:
        """Return who may read the model once the request is decided."""
        asked = None if self.revokes is None else self.organisation
        if self.decision is not None and not self.decision.granted:
            return access.refused(self.subject, by, self.number, asked)
        if asked is None:
            return access.with_grant(self.organisation, self.expires, by, self.number)
        return access.without(self.subject, by, self.number, asked)

    def check_current(self, access: AccessRecord, now: str) -> None:
        """Refuse a request whose access was decided on since it was asked, or that asks until a time past.

        Else votes on it would wait for the one that is missing, and undo then what others decided meanwhile.
        """
        if self.after != access.last_decision(self.subject):
            raise StateError(
                "REQUEST_STALE",
                f"the access of {self.subject} was decided on after request {self.number} of"
                f" {self.organisation}",
            )
        if self.expires is not None and self.expires <= now:
            raise StateError(
                "REQUEST_STALE", f"request {self.number} of {self.organisation} is until {self.expires}"
            )

    def is_stale(self, access: AccessRecord, now: str) -> bool:
        """Whether nobody has decided on the request, and nobody can any more."""
        try:
            self.check_current(access, now)
        except StateError:
            return self.decision is None
        return False

    def key_of(self, voter: str) -> str:
        """Where an organisation's vote on it stands."""
        return keys.decision(self.process, self.node, self.organisation, self.number, voter)


@dataclass(frozen=True, slots=True)
class AccessVote(OwnWord):
    """An organisation's vote on a request to read a model."""

    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node whose model it is"]
    organisation: Annotated[str, "the organisation that asks"]
    number: Annotated[int, "the number of its request"]
    voter: Annotated[str, "the organisation that votes"]
    agrees: Annotated[bool, "whether it votes for it"]
    digest: Annotated[Digest, "SHA-256 of the request that it votes on"]
    by: Annotated[Provenance, "who voted for it"]


@dataclass(frozen=True, slots=True)
class RequestStatus(LedgerRecord):
    """A request with the votes on it."""

    request: Annotated[AccessRequest, "what is asked for, and what was decided"]
    digest: Annotated[Digest, "SHA-256 of what is asked for: what a vote names"]
    agreed: Annotated[tuple[str, ...], "the organisations that voted for it"]
    refused: Annotated[tuple[str, ...], "the organisations that voted against it"]
    missing: Annotated[tuple[str, ...], "the organisations that may still vote"]
    needed: Annotated[int, "how many votes for it it takes"]
    stale: Annotated[
        bool | None,
        "true where the access was decided on since, or its time is over: no vote counts; else absent",
        ABSENT,
    ] = None

    @classmethod
    def of(
        cls, request: AccessRequest, consent: Consent, votes: Mapping[str, AccessVote], stale: bool = False
    ) -> "RequestStatus":
        """Say where a request stands."""
        agreed, refused = tally(votes)
        missing = () if stale or request.decision is not None else consent.missing(votes)
        return cls(request, request.digest, agreed, refused, missing, consent.needed, stale or None)

    @property
    def open(self) -> bool:
        """Whether it may still be decided."""
        return self.request.decision is None and not self.stale


@dataclass(frozen=True, slots=True)
class CatalogueEntry(LedgerRecord):
    """A model as whoever might want it sees it: what it is, how good, and on which terms it is to be had."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    owner: Annotated[str, "the MSP id that owns it"]
    description: Annotated[str, "what its process is for, in its proposer's words"]
    iteration: Annotated[int, "the iteration of the task whose ensemble it is"]
    digest: Annotated[Digest, "the ensemble digest that the task signed"]
    size: Annotated[int, "how many estimators it has"]
    missing: Annotated[int, "how many of its trees are not on the ledger"]
    metrics: Annotated[Raw, "figures of the model in its publisher's words, fractional ones as text"]
    access: Annotated[ModelAccess, "who decides on a request to read it"]
    licence: Annotated[Digest | None, "SHA-256 of the licence that a request accepts; null for none"]
    measured: Annotated[
        MetricsOutput | None,
        "how well it does on rows that no step learned from, as the node's last task signed it"
        " (docs/formats/output-v1.md); absent where the process does not end with an evaluation",
        ABSENT,
    ] = None
    initial: Annotated[
        InitialModel | None,
        "the model that its process started from, which may have learned from these rows; absent if none",
        ABSENT,
    ] = None

    def __post_init__(self) -> None:
        if not isinstance(self.measured, MetricsOutput | None):
            raise RecordError("RECORD_VALUE", "measured is an output of another type than metrics")


def tally(votes: Mapping[str, AccessVote]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return who voted for a request, and who against it."""
    agreed = tuple(sorted(name for name, vote in votes.items() if vote.agrees))
    return agreed, tuple(sorted(name for name in votes if name not in agreed))


def outcome_of(consent: Consent, votes: Mapping[str, AccessVote], by: Provenance) -> AccessDecision | None:
    """Return what votes come to: granted by enough, refused once enough are out of reach, or nothing yet."""
    agreed, refused = tally(votes)
    if consent.is_given(agreed):
        return AccessDecision(True, agreed, refused, by)
    return AccessDecision(False, agreed, refused, by) if consent.is_out_of_reach(refused) else None
