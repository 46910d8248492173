"""What an image version is on the ledger: names, digests in their one spelling, and where to pull it from."""

import re
from collections.abc import Mapping
from typing import Any, Self

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import EncodingError, ImageError
from protocol.fields import Fields
from protocol.identifiers import parse_image_name, parse_image_version
from protocol.text import UNPRINTABLE
from protocol.values import dataclass

MAX_TEXT = 1000
MAX_REPOSITORY = 255

_HOST = r"[a-zA-Z0-9]+(?:[.-][a-zA-Z0-9]+)*(?::[1-9][0-9]{0,4})?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_HOST}(?:/{_COMPONENT})+")

_FIELDS = ("name", "version", "manifest_digest", "image_id", "repository", "description")
_NEEDED = frozenset(_FIELDS)


@dataclass(frozen=True, slots=True)
class Image:
    """A version of an image, written once.

    A registry serves it by the digest of its manifest; an engine runs it by its id, the digest of its
    configuration. Both are kept, because a tag can be moved and neither of these can.
    """

    name: str
    version: str
    manifest_digest: Digest
    image_id: Digest
    repository: str
    description: str = ""

    def __post_init__(self) -> None:
        parse_image_name(self.name)
        parse_image_version(self.version)
        if len(self.repository) > MAX_REPOSITORY or not _REPOSITORY.fullmatch(self.repository):
            raise ImageError("IMAGE_REPOSITORY", f"{self.repository[:80]!r} is not a repository")
        check_text(self.description, "the description")

    @classmethod
    def parse(
        cls,
        name: str,
        version: str,
        *,
        manifest_digest: str,
        image_id: str,
        repository: str,
        description: str,
    ) -> Self:
        """Accept what a client registers, every text in its one spelling, or raise."""
        return cls(
            name, version, Digest.parse(manifest_digest), Digest.parse(image_id), repository, description
        )

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Read the fields back from the ledger's record."""
        found = Fields(record, "an image", _NEEDED)
        name, version, manifest_digest, image_id, repository, description = found.texts(_FIELDS)
        return cls(
            name, version, Digest.parse(manifest_digest), Digest.parse(image_id), repository, description
        )

    def check_registrable(self) -> None:
        """Return if what is registered can be an image; what is on a ledger already is read as it is."""
        if self.manifest_digest == self.image_id:
            raise ImageError(
                "IMAGE_ONE_DIGEST", f"{self.image_id} is given as manifest digest and as image id"
            )

    @property
    def by_digest(self) -> str:
        """What an engine pulls: the repository and the digest of the manifest, no tag."""
        return f"{self.repository}@{self.manifest_digest}"

    @property
    def pin(self) -> "ImagePin":
        """The two digests that fix what runs."""
        return ImagePin(self.image_id, self.manifest_digest)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the fields as they stand in the ledger's record."""
        return {
            "name": self.name,
            "version": self.version,
            "manifest_digest": str(self.manifest_digest),
            "image_id": str(self.image_id),
            "repository": self.repository,
            "description": self.description,
        }


@dataclass(frozen=True, slots=True)
class ImagePin:
    """Which bytes an image version stands for, so that a name's owner cannot change what runs."""

    image_id: Digest
    manifest_digest: Digest

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read the fields from where they stand beside name and version."""
        return cls(Digest.parse(record["image_id"]), Digest.parse(record["manifest_digest"]))

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the fields as they stand beside name and version."""
        return {"image_id": str(self.image_id), "manifest_digest": str(self.manifest_digest)}


def check_text(text: str, what: str) -> None:
    """Refuse free text that is too long, has no canonical form, or does not show as it reads."""
    if len(text) > MAX_TEXT:
        raise ImageError("IMAGE_TEXT", f"{what} has {len(text)} characters")
    if text.isascii() and text.isprintable():
        return
    try:
        canonical.encode(text)
    except EncodingError as error:
        raise ImageError("IMAGE_TEXT", f"{what}: {error.cause}") from error
    unprintable = UNPRINTABLE.search(text)
    if unprintable is not None:
        raise ImageError("IMAGE_TEXT", f"{what} has the character U+{ord(unprintable.group()):04X}")
