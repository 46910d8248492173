"""What the image chaincode stores and answers."""

from collections.abc import Collection, Iterable
from typing import Annotated, ClassVar

from protocol.agreement.image import Image
from protocol.agreement.lifecycle import ImageState
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.changes import OwnWord
from protocol.ledger.common import ImageVersion, Provenance, ReasonedProvenance
from protocol.ledger.record import SMALL, LedgerRecord
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class ImageNameRecord(LedgerRecord):
    """Whose an image's name is: its versions are registered by the organisation that registered the first."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    name: Annotated[str, "the image's name"]
    organisation: Annotated[str, "the MSP id of its owner"]
    by: Annotated[Provenance, "who registered its first version"]


@dataclass(frozen=True, slots=True)
class ImageRecord(LedgerRecord):
    """A version of an image, written once and perhaps retired."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    image: Annotated[Image, "name, version, digests, repository and description, as registered"]
    status: Annotated[ImageState, "whether it may be proposed"]
    registered: Annotated[Provenance, "who registered it"]
    retired: Annotated[ReasonedProvenance | None, "who retired it, and why"] = None


@dataclass(frozen=True, slots=True)
class RebuildRecord(OwnWord):
    """What an organisation got that built an image version from its source by itself."""

    max_bytes: ClassVar[int] = SMALL

    image: Annotated[ImageVersion, "which version of which image"]
    organisation: Annotated[str, "the MSP id of who built it"]
    image_id: Annotated[Digest, "the image id that came out"]
    same: Annotated[bool, "whether that is the registered one"]
    by: Annotated[Provenance, "who said so"]


def check_attested(
    needed: int, image: Image, rebuilds: Iterable[RebuildRecord], consortium: Collection[str]
) -> None:
    """Return if so many organisations of a consortium say that the source gives this image."""
    same = {
        found.organisation
        for found in rebuilds
        if found.image_id == image.image_id and found.organisation in consortium
    }
    if len(same) < needed:
        who = ", ".join(sorted(same)) or "nobody"
        raise StateError(
            "IMAGE_UNATTESTED",
            f"{who} got the id of {image.name} {image.version} from its source, and {needed} have to",
        )
