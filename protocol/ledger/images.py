"""What the image chaincode stores and answers."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from protocol.agreement.image import Image
from protocol.agreement.lifecycle import ImageState
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.record import LedgerRecord


@dataclass(frozen=True, slots=True)
class ImageNameRecord(LedgerRecord):
    """Whose an image's name is: its versions are registered by the organisation that registered the first."""

    versioned: ClassVar[bool] = True

    name: Annotated[str, "the image's name"]
    organisation: Annotated[str, "the MSP id of its owner"]
    by: Annotated[Provenance, "who registered its first version"]


@dataclass(frozen=True, slots=True)
class ImageRecord(LedgerRecord):
    """A version of an image, written once and perhaps retired."""

    versioned: ClassVar[bool] = True

    image: Annotated[Image, "name, version, digests, repository and description, as registered"]
    status: Annotated[ImageState, "whether it may start new tasks"]
    registered: Annotated[Provenance, "who registered it"]
    retired: Annotated[ReasonedProvenance | None, "who retired it, and why"] = None
