"""What the ledger stores and answers about estimators, and where their trees are decoded."""

import base64
import binascii
from typing import Annotated, ClassVar, Self

from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.identifiers import EstimatorId
from protocol.ledger.common import EnsembleMember, ImageVersion, Provenance
from protocol.ledger.record import ABSENT, SMALL, LedgerRecord
from protocol.signing import VerifyKey
from protocol.trees.content import Content
from protocol.trees.estimator import Estimator
from protocol.trees.kinds import read
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass


def encode_tree(tree: Content) -> str:
    """Write a tree as it stands in records."""
    return base64.b64encode(tree.to_bytes()).decode()


@dataclass(frozen=True, slots=True)
class SharedEstimator(LedgerRecord):
    """An estimator as the ledger hands it out."""

    id: Annotated[EstimatorId, "which estimator"]
    digest: Annotated[Digest, "SHA-256 of the tree's bytes"]
    tree: Annotated[str, "the bytes of the tree (estimator-v1) in base64"]

    @classmethod
    def of(cls, estimator: Estimator) -> Self:
        """Write an estimator."""
        return cls(estimator.id, estimator.tree.digest, encode_tree(estimator.tree))

    def decode(self, limits: TreeLimits) -> Estimator:
        """Return the estimator if its bytes have the digest stated and are a tree within the limits."""
        try:
            raw = base64.b64decode(self.tree, validate=True)
        except (binascii.Error, ValueError) as error:
            raise RecordError("RECORD_VALUE", f"the tree of {self.id} is not base64") from error
        found = Digest.of(raw)
        if found != self.digest:
            raise RecordError("PAYLOAD_DIGEST", f"{self.id} is {found}, not {self.digest}")
        return Estimator(self.id, read(raw, limits))


@dataclass(frozen=True, slots=True)
class TreeRecord(SharedEstimator):
    """The bytes of a tree, apart from all records about it, so that these are small."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = 2 << 20

    @property
    def shared(self) -> SharedEstimator:
        """The estimator as the ledger hands it out."""
        return SharedEstimator(self.id, self.digest, self.tree)


@dataclass(frozen=True, slots=True)
class EstimatorRecord(LedgerRecord):
    """An estimator, stored once under its creator's id: where it comes from, and the digest of its tree."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    id: Annotated[EstimatorId, "which estimator"]
    digest: Annotated[Digest, "SHA-256 of the tree's bytes"]
    iteration: Annotated[int, "the iteration of the task that put it on the ledger"]
    attempt: Annotated[int, "which launch of that task"]
    organisation: Annotated[str, "the MSP id of its creator"]
    image: Annotated[ImageVersion | None, "the image that ran"]
    n_nodes: Annotated[int, "the nodes of the tree, leaves included"]
    depth: Annotated[int, "its depth"]
    bytes: Annotated[int, "its size"]
    by: Annotated[Provenance, "who shared it first"]


@dataclass(frozen=True, slots=True)
class EstimatorEvidence(EstimatorRecord):
    """An estimator with its tree."""

    tree: Annotated[str, "the bytes of the tree (estimator-v1) in base64"]


@dataclass(frozen=True, slots=True)
class SharedEstimators(LedgerRecord):
    """Estimators by id, and those that were never shared."""

    estimators: Annotated[tuple[SharedEstimator, ...], "those that are on the ledger, in the order asked for"]
    missing: Annotated[tuple[EstimatorId, ...], "those that were never shared in the process"]


@dataclass(frozen=True, slots=True)
class SharedDigests(LedgerRecord):
    """The digests of estimators by id, and those that were never shared."""

    estimators: Annotated[tuple[EnsembleMember, ...], "those that are on the ledger, in the order asked for"]
    missing: Annotated[tuple[EstimatorId, ...], "those that were never shared in the process"]


@dataclass(frozen=True, slots=True)
class CreationRecord(LedgerRecord):
    """That FIT announced an estimator, shared or not."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    digest: Annotated[Digest, "SHA-256 of the tree that FIT announced under this id"]
    iteration: Annotated[int, "the iteration of that FIT"]


@dataclass(frozen=True, slots=True)
class TwinRecord(LedgerRecord):
    """That a creator shared a tree: others who share the very same one stand beside it."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    digest: Annotated[Digest, "SHA-256 of the tree's bytes"]
    id: Annotated[EstimatorId, "under which id it was shared"]
    iteration: Annotated[int, "the iteration of the task that shared it"]
    n_internal: Annotated[int, "how many splits it has: small trees may be equal by chance"]
    tx: Annotated[str, "the transaction that shared it; the order of blocks says who was first"]


@dataclass(frozen=True, slots=True)
class OfferRecord(LedgerRecord):
    """That a share offered an estimator."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    sender: Annotated[str, "who offered it"]
    iteration: Annotated[int, "in which iteration"]
    place: Annotated[int, "its rank in the share, from 0"]


@dataclass(frozen=True, slots=True)
class OfferTrace(OfferRecord):
    """A share that offered an estimator, and to whom."""

    recipients: Annotated[tuple[str, ...], "the neighbours it was offered to"]


@dataclass(frozen=True, slots=True)
class TakenRecord(LedgerRecord):
    """What a node took when it read a share: one record for each slot that was read, however many trees."""

    versioned: ClassVar[bool] = True

    node: Annotated[str, "who took"]
    iteration: Annotated[int, "in which iteration of its own"]
    places: Annotated[tuple[int, ...], "the ranks in the share of what was taken, from 0"]


@dataclass(frozen=True, slots=True)
class Taker(LedgerRecord):
    """That a node took an estimator from a slot."""

    node: Annotated[str, "who took it"]
    iteration: Annotated[int, "in which iteration of its own"]


@dataclass(frozen=True, slots=True)
class LineageImage(LedgerRecord):
    """The code that made an estimator, as far as its task's record says."""

    image_id: Annotated[Digest | None, "what ran"]
    name: Annotated[str | None, "the image's name", ABSENT] = None
    version: Annotated[str | None, "its version", ABSENT] = None


@dataclass(frozen=True, slots=True)
class Lineage(LedgerRecord):
    """Where an estimator came from and where it went."""

    process: Annotated[str, "the process id"]
    id: Annotated[EstimatorId, "which estimator"]
    digest: Annotated[Digest, "SHA-256 of the tree's bytes"]
    creator: Annotated[str, "the node that created it"]
    organisation: Annotated[str | None, "the creator's organisation"]
    iteration: Annotated[int, "the iteration of its FIT"]
    attempt: Annotated[int | None, "which launch of that task"]
    image: Annotated[LineageImage, "the image that ran"]
    public_key: Annotated[VerifyKey | None, "the key of that task"]
    shared: Annotated[bool, "whether it was ever shared"]
    offers: Annotated[tuple[OfferTrace, ...], "every SHARE that offered it, page by page"]
    bookmark: Annotated[str, "where the next page of offers begins; empty after the last"]
    taken: Annotated[tuple[Taker, ...], "who took it from these offers"]
    models: Annotated[tuple[str, ...], "the nodes whose published models hold it"]
    twins: Annotated[tuple[TwinRecord, ...], "other estimators of the process with the very same tree"]
