"""Broker protocol v1: how one message crosses the learner's socket (docs/formats/broker-v1.md).

    u8 version, u32 length of the header (little-endian)
    header: a canonical record with the field `blobs`, a list of lengths
    the blobs, one after the other

Sizes are checked before what they announce is read. Who reads brings a function that returns exactly so many
bytes, so this module knows no socket.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from protocol import canonical
from protocol.errors import EncodingError, FrameError

VERSION = 1
MAX_HEADER = 1 << 20
MAX_BLOBS = 4
MAX_BLOB = 16 << 20

Header: TypeAlias = dict[str, canonical.Record]
Read: TypeAlias = Callable[[int], bytes]
"""Returns exactly as many bytes as it is asked for, or raises."""
Check: TypeAlias = Callable[[Header, list[int]], None]
"""Looks at a header, without `blobs`, and at the lengths of the blobs before any blob is read."""

_PREFIX = struct.Struct("<BI")
_BLOCK = 1 << 16


def encode(header: Mapping[str, canonical.Record], blobs: Sequence[bytes] = ()) -> bytes:
    """Write one message."""
    lengths = [len(blob) for blob in blobs]
    _check_lengths(lengths)
    try:
        raw = canonical.encode({**header, "blobs": [*lengths]}, max_bytes=MAX_HEADER)
    except EncodingError as error:
        raise _refused(error) from error
    return b"".join((_PREFIX.pack(VERSION, len(raw)), raw, *blobs))


def read(source: Read, check: Check) -> tuple[Header, tuple[bytes, ...]]:
    """Read one message: prefix, header, and the blobs only if the check lets them pass."""
    version, length = _PREFIX.unpack(_exactly(source, _PREFIX.size))
    if version != VERSION:
        raise FrameError("FRAME_VERSION", f"first byte {version} is not broker protocol {VERSION}")
    if length > MAX_HEADER:
        raise FrameError("FRAME_SIZE", f"a header of {length} bytes is more than {MAX_HEADER}")
    header, lengths = _parse(_exactly(source, length))
    check(header, lengths)
    return header, tuple(_exactly(source, size) for size in lengths)


def reader(receive: Read, hung_up: Exception) -> Read:
    """Read exactly so many bytes with a function that may return fewer, and none at the end."""

    def exactly(size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            block = receive(min(size - len(received), _BLOCK))
            if not block:
                raise hung_up
            received += block
        return bytes(received)

    return exactly


def decode(raw: bytes, check: Check) -> tuple[Header, tuple[bytes, ...]]:
    """Read one message from the bytes of exactly one."""
    position = 0

    def source(size: int) -> bytes:
        nonlocal position
        position += size
        return raw[position - size : position]

    message = read(source, check)
    if position != len(raw):
        raise FrameError("FRAME_LENGTH", f"{len(raw) - position} bytes follow the message")
    return message


def _parse(raw: bytes) -> tuple[Header, list[int]]:
    try:
        header: Any = canonical.decode(raw, max_bytes=MAX_HEADER)
    except EncodingError as error:
        raise _refused(error) from error
    if not isinstance(header, dict) or type(header.get("blobs")) is not list:
        raise FrameError("FRAME_HEADER", "the header is not an object with a list of blobs")
    lengths = header.pop("blobs")
    if not all(type(length) is int and length >= 0 for length in lengths):
        raise FrameError("FRAME_HEADER", "a length of a blob is not a whole number from 0 on")
    _check_lengths(lengths)
    return header, lengths


def _check_lengths(lengths: Sequence[int]) -> None:
    if len(lengths) > MAX_BLOBS:
        raise FrameError("FRAME_BLOBS", f"{len(lengths)} blobs are more than {MAX_BLOBS}")
    for length in lengths:
        if length > MAX_BLOB:
            raise FrameError("FRAME_SIZE", f"a blob of {length} bytes is more than {MAX_BLOB}")


def _exactly(source: Read, size: int) -> bytes:
    found = source(size)
    if len(found) != size:
        raise FrameError("FRAME_LENGTH", f"the message ended after {len(found)} of {size} bytes")
    return found


def _refused(error: EncodingError) -> FrameError:
    code = "FRAME_SIZE" if error.code == "RECORD_SIZE" else "FRAME_HEADER"
    return FrameError(code, f"the header is refused: {error.cause}")
