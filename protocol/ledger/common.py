"""What records of several chaincodes have in common: who did it, what was signed, pages and histories."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, Self, TypeVar

from protocol.digest import Digest
from protocol.fields import Fields
from protocol.identifiers import EstimatorId
from protocol.ledger.record import LedgerRecord
from protocol.values import dataclass

T = TypeVar("T", bound=LedgerRecord)

MAX_PAGE = 1000
"""The most items of a page, and the most estimators that one call returns."""


@dataclass(frozen=True, slots=True)
class Provenance(LedgerRecord):
    """Who changed a record, when and in which transaction."""

    organisation: Annotated[str, "the MSP id of the caller"]
    identity: Annotated[str, "the name in the caller's certificate"]
    role: Annotated[str, "the caller's role"]
    certificate: Annotated[Digest, "SHA-256 of the caller's certificate"]
    time: Annotated[str, "what the client put into its proposal; the order of events is that of the blocks"]
    tx: Annotated[str, "the transaction id"]


@dataclass(frozen=True, slots=True)
class ReasonedProvenance(Provenance):
    """Who did it, and why."""

    reason: Annotated[str, "why, in the caller's words"]

    @property
    def without_reason(self) -> Provenance:
        """Who did it."""
        return Provenance(self.organisation, self.identity, self.role, self.certificate, self.time, self.tx)

    @classmethod
    def of(cls, by: Provenance, reason: str) -> Self:
        """Give a change its reason."""
        return cls(by.organisation, by.identity, by.role, by.certificate, by.time, by.tx, reason)


@dataclass(frozen=True, slots=True)
class Signed(LedgerRecord):
    """A result as the task's key signed it, and the transaction that brought it."""

    payload_digest: Annotated[Digest, "SHA-256 of the share or of the result"]
    signature: Annotated[str, "the task key's signature over the task statement, in hex"]
    by: Annotated[Provenance, "who brought it"]


@dataclass(frozen=True, slots=True)
class ImageVersion(LedgerRecord):
    """Which version of which image."""

    name: Annotated[str, "the image's name"]
    version: Annotated[str, "its version"]


@dataclass(frozen=True, slots=True)
class EnsembleMember(LedgerRecord):
    """An estimator of an ensemble, by the digest of its tree."""

    id: Annotated[EstimatorId, "which estimator"]
    digest: Annotated[Digest, "SHA-256 of the tree's bytes"]


@dataclass(frozen=True, slots=True)
class HistoryEntry(Generic[T]):
    """One change of a record; the value is None where the record was removed."""

    tx: str
    time: str
    value: T | None

    @classmethod
    def from_dict(cls, record: Any, read: Callable[[Any], T]) -> Self:
        """Read an entry whose value is of a known kind."""
        found = Fields(record, "a change", ("tx", "time", "value"))
        value = found["value"]
        return cls(found.text("tx"), found.text("time"), None if value is None else read(value))

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {"tx": self.tx, "time": self.time, "value": self.value and self.value.to_dict()}


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list; an empty bookmark ends the list, and a page may be short and still have one."""

    items: tuple[T, ...]
    bookmark: str

    @classmethod
    def from_dict(cls, record: Any, read: Callable[[Any], T]) -> Self:
        """Read a page whose items are of a known kind."""
        found = Fields(record, "a page", ("items", "bookmark"))
        return cls(tuple(map(read, found.items("items", MAX_PAGE))), found.text("bookmark"))

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {"items": [item.to_dict() for item in self.items], "bookmark": self.bookmark}


@dataclass(frozen=True, slots=True)
class History(Generic[T]):
    """A part of a record's changes, newest first."""

    items: tuple[HistoryEntry[T], ...]
    bookmark: str

    @classmethod
    def from_dict(cls, record: Any, read: Callable[[Any], T]) -> Self:
        """Read a page of changes whose values are of a known kind."""
        found = Fields(record, "a history", ("items", "bookmark"))
        items = [HistoryEntry.from_dict(item, read) for item in found.items("items", MAX_PAGE)]
        return cls(tuple(items), found.text("bookmark"))

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {"items": [item.to_dict() for item in self.items], "bookmark": self.bookmark}
