"""SHA-256 digests as values, so that a hash is never a string that might be another hash."""

import hashlib
import re
from dataclasses import dataclass
from typing import Self

from protocol.errors import DigestError

PREFIX = "sha256:"
SIZE = 32

_HEX = re.compile(r"[0-9a-f]*")
_LENGTH = len(PREFIX) + 2 * SIZE


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Digest:
    """The SHA-256 of some bytes; the only hash that parties exchange."""

    raw: bytes

    def __post_init__(self) -> None:
        if type(self.raw) is not bytes or len(self.raw) != SIZE:
            raise DigestError("DIGEST_LENGTH", "a digest is 32 bytes")

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Hash the data."""
        return cls(hashlib.sha256(data).digest())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the one spelling, `sha256:` and 64 lower-case hex digits, and refuse every other."""
        if not isinstance(text, str):
            raise DigestError("DIGEST_SYNTAX", f"a digest is text, not {type(text).__name__}")
        if len(text) == _LENGTH and text.startswith(PREFIX):
            digits = text[len(PREFIX) :]
            try:
                raw = bytes.fromhex(digits)
            except ValueError:
                raw = b""
            if raw.hex() == digits:  # no capitals and no spaces, which Python reads, too
                return cls(raw)
        algorithm, separator, digits = text.partition(":")
        if not separator or not _HEX.fullmatch(digits):
            raise DigestError("DIGEST_SYNTAX", f"{text[:80]!r} is not a digest")
        if algorithm != "sha256":
            raise DigestError("DIGEST_ALGORITHM", f"{algorithm[:20]!r} is not sha256")
        raise DigestError("DIGEST_LENGTH", f"{len(digits)} hex digits instead of {2 * SIZE}")

    @property
    def hex(self) -> str:
        """The 64 hex digits, for tools that want no prefix."""
        return self.raw.hex()

    def __str__(self) -> str:
        return PREFIX + self.raw.hex()

    def __repr__(self) -> str:
        return f"Digest({self})"
