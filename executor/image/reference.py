"""References as people type them: NAME or NAME:VERSION, the words of the ledger."""

from executor.errors import UsageError
from protocol.errors import IdentifierError
from protocol.identifiers import ImageName, ImageVersion, parse_image_name, parse_image_version
from protocol.values import dataclass


@dataclass(frozen=True)
class Reference:
    """An image name with or without a version; never `latest`, which is another image tomorrow."""

    name: ImageName
    version: ImageVersion | None

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Read NAME or NAME:VERSION; a registry's host and a digest are not part of it."""
        if "@" in text:
            raise UsageError("IMAGE_REFERENCE", f"{text[:80]!r} names an image by digest")
        name, colon, version = text.partition(":")
        try:
            return cls(parse_image_name(name), parse_image_version(version) if colon else None)
        except IdentifierError as error:
            raise UsageError("IMAGE_REFERENCE", f"{text[:80]!r}: {error.cause}") from error

    @classmethod
    def versioned(cls, text: str) -> tuple[ImageName, ImageVersion]:
        """Read NAME:VERSION."""
        found = cls.parse(text)
        if found.version is None:
            raise UsageError("IMAGE_REFERENCE", f"{text[:80]!r} names no version")
        return found.name, found.version


def split_repository(repository: str) -> tuple[str, str]:
    """Part a repository, as the ledger has it, into the registry's host and the name there."""
    host, _, name = repository.partition("/")
    return host, name
