"""What the model chaincode stores and answers."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar, Self

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.common import EnsembleMember, ImageVersion, Provenance
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.record import ABSENT, SMALL, LedgerRecord, Raw
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class ModelRecord(LedgerRecord):
    """A node's last ensemble, published once."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = 4 << 20

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    owner: Annotated[str, "the MSP id that owns it"]
    iteration: Annotated[int, "the iteration of the task whose ensemble it is"]
    image: Annotated[ImageVersion | None, "the image of that task"]
    result: Annotated[Digest, "payload digest of that task's signed result"]
    estimators: Annotated[tuple[EnsembleMember, ...], "its estimators, by ascending id"]
    digest: Annotated[Digest, "the ensemble digest that the task signed"]
    metrics: Annotated[Raw, "figures of the model, fractional ones as text"]
    stored: Annotated[tuple[EstimatorId, ...], "trees that were never shared and are kept with the model"]
    published: Annotated[Provenance, "who published it"]
    missing: Annotated[
        tuple[EstimatorId, ...] | None,
        "its trees that are not on the ledger, where a member published it for the node; else absent",
        ABSENT,
    ] = None


@dataclass(frozen=True, slots=True)
class ModelBrief(LedgerRecord):
    """A model in a list; that it exists is no secret."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    owner: Annotated[str, "the MSP id that owns it"]
    iteration: Annotated[int, "the iteration of the task whose ensemble it is"]
    digest: Annotated[Digest, "the ensemble digest that the task signed"]
    published: Annotated[Provenance, "who published it"]
    size: Annotated[int, "how many estimators it has"]


@dataclass(frozen=True, slots=True)
class ModelMembers(LedgerRecord):
    """The estimators of a model by their digests."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    digest: Annotated[Digest, "the ensemble digest that the task signed"]
    estimators: Annotated[tuple[EnsembleMember, ...], "its estimators, by ascending id"]
    missing: Annotated[int, "how many of its trees are not on the ledger"]


@dataclass(frozen=True, slots=True)
class Unpublished(LedgerRecord):
    """Which nodes have no model."""

    nodes: Annotated[tuple[str, ...], "those of the nodes asked about that have none"]


@dataclass(frozen=True, slots=True)
class ModelTrees(LedgerRecord):
    """Some of a model's trees."""

    items: Annotated[tuple[SharedEstimator, ...], "the trees asked for, in the model's order"]
    total: Annotated[int, "how many the model has"]


@dataclass(frozen=True, slots=True)
class ModelUses(LedgerRecord):
    """Where an estimator is in use."""

    models: Annotated[tuple[str, ...], "the nodes whose published models hold it"]


@dataclass(frozen=True, slots=True)
class Grant(LedgerRecord):
    """That an organisation may read a model."""

    expires: Annotated[str | None, "until when; null for no end"]
    by: Annotated[Provenance, "who allowed it"]


@dataclass(frozen=True, slots=True)
class AccessChange(LedgerRecord):
    """What changed last about who may read a model."""

    action: Annotated[str, "publish, grant or revoke; refuse where a request was, so that nothing changed"]
    organisation: Annotated[str, "whose access it is about"]
    expires: Annotated[str | None, "until when it holds; null for no end"]
    by: Annotated[Provenance, "who changed it"]
    request: Annotated[int | None, "the number of the request that was decided, if it was one", ABSENT] = None
    asked: Annotated[str | None, "who made it, where it asked to revoke another's access", ABSENT] = None


@dataclass(frozen=True, slots=True)
class AccessRecord(LedgerRecord):
    """Who may read a model, besides its owner."""

    versioned: ClassVar[bool] = True

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    owner: Annotated[str, "the MSP id that owns the model"]
    organisations: Annotated[dict[str, Grant], "by organisation, until when and by whom"]
    change: Annotated[AccessChange, "what changed last"]
    decided: Annotated[
        dict[str, str] | None,
        "by organisation, in which transaction its access was last decided on; absent while none was",
        ABSENT,
    ] = None

    @classmethod
    def opened(cls, process: str, node: str, owner: str, consortium: Iterable[str], by: Provenance) -> Self:
        """Begin with the owner and every organisation of the consortium, without end."""
        granted = {name: Grant(None, by) for name in consortium}
        return cls(process, node, owner, granted, AccessChange("publish", owner, None, by))

    def with_grant(
        self, organisation: str, expires: str | None, by: Provenance, request: int | None = None
    ) -> Self:
        """Give an organisation access; a second grant replaces the first."""
        granted = {**self.organisations, organisation: Grant(expires, by)}
        return self._after(AccessChange("grant", organisation, expires, by, request), granted)

    def without(
        self, organisation: str, by: Provenance, request: int | None = None, asked: str | None = None
    ) -> Self:
        """Take an organisation's access away."""
        kept = {name: given for name, given in self.organisations.items() if name != organisation}
        return self._after(AccessChange("revoke", organisation, None, by, request, asked), kept)

    def refused(self, organisation: str, by: Provenance, request: int, asked: str | None = None) -> Self:
        """Leave an organisation's access as it is, by a decision."""
        return self._after(AccessChange("refuse", organisation, None, by, request, asked), self.organisations)

    def _after(self, change: AccessChange, organisations: dict[str, Grant]) -> Self:
        decided = {**(self.decided or {}), change.organisation: change.by.tx}
        return replace(self, organisations=organisations, change=change, decided=decided)

    def last_decision(self, organisation: str) -> str | None:
        """Return in which transaction an organisation's access was last decided on; None if it never was."""
        return (self.decided or {}).get(organisation)

    def allows(self, organisation: str, now: str) -> bool:
        """Whether an organisation may read the model at a time of the ledger."""
        if organisation == self.owner:
            return True
        found = self.organisations.get(organisation)
        return found is not None and (found.expires is None or now < found.expires)

    def allows_until(self, organisation: str, now: str, end: str | None) -> bool:
        """Whether an organisation may read the model at a time and from then to an end; None for no end."""
        if organisation == self.owner:
            return True
        if not self.allows(organisation, now):
            return False
        until = self.organisations[organisation].expires
        return until is None or (end is not None and end <= until)


@dataclass(frozen=True, slots=True)
class MemberRecord(LedgerRecord):
    """That an estimator is in a node's model."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    node: Annotated[str, "the node whose model holds the estimator"]
