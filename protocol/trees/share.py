"""Share format v1: what a node offers its neighbours, as one byte string (docs/formats/share-v1.md).

    u8 version, u16 count
    per estimator: u8 length and ASCII text of the creator, u32 counter, u32 length and bytes of the tree

All numbers little-endian. The order is the sender's ranking, best first, and part of the content; an id
stands once.
"""

import struct
from typing import Self

from protocol.digest import Digest
from protocol.errors import ShareError
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.kinds import read
from protocol.trees.limits import FORMAT_MAX_OFFERED, TreeLimits
from protocol.values import dataclass

VERSION = 1

_HEADER = struct.Struct("<BH")
_ENTRY = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """How much one SHARE may carry."""

    max_count: int
    max_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if type(self.max_count) is not int or not 0 <= self.max_count <= FORMAT_MAX_OFFERED:
            raise ShareError("SHARE_COUNT", f"max_count is not a whole number from 0 to {FORMAT_MAX_OFFERED}")
        if type(self.max_bytes) is not int or self.max_bytes < _HEADER.size:
            raise ShareError("SHARE_SIZE", f"max_bytes is not a whole number from {_HEADER.size}")


@dataclass(frozen=True, slots=True)
class Share:
    """The estimators of one SHARE, best first; empty when a node has nothing to offer."""

    estimators: tuple[Estimator, ...]

    def __post_init__(self) -> None:
        if type(self.estimators) is not tuple or not all(type(item) is Estimator for item in self.estimators):
            raise ShareError("SHARE_INPUT", "a share is a tuple of estimators")
        if len(self.estimators) > FORMAT_MAX_OFFERED:
            raise ShareError(
                "SHARE_COUNT", f"{len(self.estimators)} estimators are more than {FORMAT_MAX_OFFERED}"
            )
        seen: set[EstimatorId] = set()
        for estimator in self.estimators:
            if estimator.id in seen:
                raise ShareError("SHARE_DUPLICATE", f"{estimator.id} stands twice")
            seen.add(estimator.id)

    @property
    def ids(self) -> tuple[EstimatorId, ...]:
        """The ids, best first: what a slot holds."""
        return tuple(estimator.id for estimator in self.estimators)

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the bytes: the payload digest of a SHARE."""
        return Digest.of(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the one byte string of this share."""
        parts = [_HEADER.pack(VERSION, len(self.estimators))]
        for estimator in self.estimators:
            creator, tree = estimator.id.creator.encode(), estimator.tree.to_bytes()
            parts += (bytes([len(creator)]), creator, _ENTRY.pack(estimator.id.counter, len(tree)), tree)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, raw: bytes, limits: ShareLimits, tree_limits: TreeLimits) -> Self:
        """Accept the bytes of a share within the limits, every tree included, or raise."""
        count = _check_header(raw, limits)
        estimators: list[Estimator] = []
        position = _HEADER.size
        for _ in range(count):
            estimator_id, tree_bytes, position = _read_entry(raw, position)
            estimators.append(Estimator(estimator_id, read(tree_bytes, tree_limits)))
        if position != len(raw):
            raise ShareError("SHARE_LENGTH", f"{len(raw) - position} bytes follow the last estimator")
        return cls(tuple(estimators))


def _check_header(raw: bytes, limits: ShareLimits) -> int:
    if type(raw) is not bytes:
        raise ShareError("SHARE_INPUT", f"a share is read from bytes, not {type(raw).__name__}")
    if len(raw) > limits.max_bytes:
        raise ShareError("SHARE_SIZE", f"{len(raw)} bytes are more than {limits.max_bytes}")
    if len(raw) < _HEADER.size:
        raise ShareError("SHARE_LENGTH", f"{len(raw)} bytes are too few for a share")
    version, count = _HEADER.unpack_from(raw)
    if version != VERSION:
        raise ShareError("SHARE_VERSION", f"first byte {version} is not share format {VERSION}")
    if count > limits.max_count:
        raise ShareError("SHARE_COUNT", f"{count} estimators are more than {limits.max_count}")
    return int(count)


def _read_entry(raw: bytes, position: int) -> tuple[EstimatorId, bytes, int]:
    creator, position = _take(raw, position + 1, _take(raw, position, 1)[0][0])
    numbers, position = _take(raw, position, _ENTRY.size)
    counter, length = _ENTRY.unpack(numbers)
    tree_bytes, position = _take(raw, position, length)
    # Bytes that are not ASCII become characters that no name allows.
    return EstimatorId(creator.decode("latin-1"), counter), tree_bytes, position


def _take(raw: bytes, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if end > len(raw):
        raise ShareError("SHARE_LENGTH", f"the bytes end within an estimator, {end - len(raw)} short")
    return raw[position:end], end
