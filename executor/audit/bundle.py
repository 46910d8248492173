"""An export of a channel as one tar file, in exactly one form, so that no bit of it is without meaning.

    manifest.json             format, version, channel, process, height and the hash of the first block
    blocks/0000000000.block   every block from the first on, as a peer serves it; or from the height of a
                              checkpoint on, which the manifest then names as `first`
    configuration.pb          the configuration in force at the end (common.Config)
    certificates/ORG-N.pem    the organisations' root and intermediate authorities, for people who look

Members are plain files with fixed times, owners and modes, in this order; anything else is refused. Nothing
is ever unpacked to disk. What follows the blocks is a copy of what the blocks say, and is compared with it.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO, Any, Self

from executor.audit.errors import BundleError
from protocol.canonical import decode, encode
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.values import dataclass

FORMAT, VERSION = "attestree-audit", 1
MANIFEST, CONFIGURATION = "manifest.json", "configuration.pb"
RECORD = 512
MAX_MANIFEST = 1 << 16
MAX_MEMBER = 200 << 20
"""More than the largest block that the network's orderers make."""
MAX_BLOCKS = 10**10
_NAME = re.compile(
    r"manifest\.json|blocks/[0-9]{10}\.block|configuration\.pb|certificates/[A-Za-z0-9.-]{1,64}-[0-9]{1,3}\.pem"
)
_END = bytes(2 * RECORD)
_OWNERS = b"0000644\0" + b"0000000\0" * 2
_TIME = b"\0" + b"00000000000\0"
_KIND = (b"0" + bytes(100) + b"ustar\x0000").ljust(RECORD - 156, b"\0")
_FIXED = sum(_OWNERS) + sum(_TIME) + sum(b" " * 8) + sum(_KIND)
"""What the parts of a header that never change add to its checksum."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export says about itself; nothing of it is believed."""

    channel: str
    process: str
    height: int
    genesis: str
    first: int = 0
    """The number of its first block: the height of the checkpoint that it goes on from, if it does."""

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the one form of a manifest."""
        try:
            found: Any = decode(raw, max_bytes=MAX_MANIFEST)
        except AttestreeError as error:
            raise BundleError("BUNDLE_FORMAT", f"{MANIFEST}: {error.cause}") from error
        names = {"format", "version", "channel", "process", "height", "genesis"}
        if not isinstance(found, dict) or found.keys() - {"first"} != names or found["format"] != FORMAT:
            raise BundleError("BUNDLE_FORMAT", f"{MANIFEST} is not that of an export")
        if found["version"] != VERSION or type(found["version"]) is not int:
            raise BundleError(
                "BUNDLE_VERSION", f"it is of version {str(found['version'])[:20]}, not {VERSION}"
            )
        height = found["height"]
        if type(height) is not int or not 1 <= height <= MAX_BLOCKS:
            raise BundleError("BUNDLE_FORMAT", f"{MANIFEST} names no height")
        first = found.get("first", 0)
        if type(first) is not int or not ("first" in found) <= first < height:
            raise BundleError("BUNDLE_FORMAT", f"{MANIFEST} names no first block")
        texts = [found["channel"], found["process"], found["genesis"]]
        if not all(type(text) is str and len(text) <= 256 for text in texts):
            raise BundleError("BUNDLE_FORMAT", f"{MANIFEST} holds something else than names")
        return cls(texts[0], texts[1], height, texts[2], first)

    def to_bytes(self) -> bytes:
        """Return the one form."""
        fields = asdict(self)
        if not self.first:
            del fields["first"]
        return encode({"format": FORMAT, "version": VERSION, **fields})


def block_name(number: int) -> str:
    """Name the member that holds a block."""
    return f"blocks/{number:010d}.block"


class BundleWriter:
    """Writes an export member by member; the same members give the same bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, name: str, content: bytes) -> None:
        """Append a member."""
        self._file.write(_header(name, len(content)) + content + bytes(-len(content) % RECORD))

    def close(self) -> None:
        """Write the end of the archive."""
        self._file.write(_END)


def read_members(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Iterate over the members of an export, each whole; raise where it is not in its one form."""
    while True:
        header = _exactly(file, RECORD)
        if header == bytes(RECORD):
            if _exactly(file, RECORD) != bytes(RECORD) or file.read(1):
                raise BundleError("BUNDLE_FORMAT", "something follows the end of the archive")
            return
        name, size = _read_header(header)
        content = _exactly(file, size)
        if _exactly(file, -size % RECORD) != _END[: -size % RECORD]:
            raise BundleError("BUNDLE_FORMAT", f"{name} is followed by something else than zeros")
        yield name, content


def _read_header(header: bytes) -> tuple[str, int]:
    name = header[:100].rstrip(b"\0").decode("latin-1")
    if not _NAME.fullmatch(name):
        raise BundleError("BUNDLE_MEMBER", f"{name[:80]!r} is no part of an export")
    digits = header[124:135]
    if not digits.isdigit() or set(digits) & set(b"89"):
        raise BundleError("BUNDLE_FORMAT", f"{name} has no size")
    size = int(digits, 8)
    if size > MAX_MEMBER:
        raise BundleError("BUNDLE_SIZE", f"{name} has {size} bytes, more than {MAX_MEMBER}")
    if header != _header(name, size):
        raise BundleError("BUNDLE_FORMAT", f"{name} is not a plain file as an export has it")
    return name, size


def _header(name: str, size: int) -> bytes:
    """Return the one header of a member: a plain file of nobody's, from the epoch."""
    called, length = name.encode(), b"%011o" % size
    checksum = _FIXED + sum(called) + sum(length)
    return called.ljust(100, b"\0") + _OWNERS + length + _TIME + b"%06o\0 " % checksum + _KIND


def _exactly(file: IO[bytes], size: int) -> bytes:
    raw = file.read(size)
    if len(raw) != size:
        raise BundleError("BUNDLE_TRUNCATED", f"it ends {size - len(raw)} bytes too early")
    return raw


def parse_anchor(text: str) -> bytes:
    """Read the hash of a first block, with or without `sha256:` before it."""
    return Digest.parse(text if text.startswith("sha256:") else f"sha256:{text}").raw
