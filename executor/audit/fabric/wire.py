"""Protobuf on the wire, read as Go reads it.

Two decoders agree on what they write themselves. A member may write otherwise: numbers longer than they need
be or too large, fields that nobody knows, groups nested deep. What one decoder takes and another refuses
would be judged otherwise here than by the peers, so bytes in another form than the usual one are read by the
rules of the peers' decoder, and handed on in the usual form.
"""

from typing import Any

MAX_NUMBER, MAX_IN_GROUP = (1 << 29) - 1, (1 << 31) - 1
MAX_GROUPS = 10_000
VARINT, FIXED64, BYTES, START, END, FIXED32 = range(6)
_SIZES = {FIXED64: 8, FIXED32: 4}


class WireError(Exception):
    """Bytes that Go's decoder refuses."""


def usual_form(descriptor: Any, raw: bytes) -> bytes:
    """Return a message in the usual form, without fields that nobody knows; raise if it is none."""
    known, out, place = descriptor.fields_by_number, bytearray(), 0
    while place < len(raw):
        number, kind, place = _tag(raw, place, MAX_NUMBER)
        start = place
        if kind == VARINT:
            value, place = varint(raw, place)
            content = written(value)
        else:
            place = _skipped(raw, place, number, kind)
            content = raw[start:place]
        field = known.get(number)
        if field is None or kind in (START, END):
            continue
        if kind == BYTES:
            size, inner = varint(raw, start)
            content = raw[inner : inner + size]
            if field.message_type is not None:
                content = usual_form(field.message_type, content)
            content = written(len(content)) + content
        out += written(number << 3 | kind) + content
    return bytes(out)


def varint(raw: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, and the place behind it."""
    value = shift = 0
    while place < len(raw):
        byte = raw[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if value >> 64:
            break
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            break
    raise WireError


def written(value: int) -> bytes:
    """Return a number in its shortest form."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(raw: bytes, place: int, most: int) -> tuple[int, int, int]:
    tag, place = varint(raw, place)
    number, kind = tag >> 3, tag & 7
    if not 1 <= number <= most or kind > FIXED32:
        raise WireError
    return number, kind, place


def _skipped(raw: bytes, place: int, number: int, kind: int) -> int:
    """Return the place behind a field's content."""
    groups: list[int] = []
    while True:
        if kind == START:
            groups.append(number)
            if len(groups) > MAX_GROUPS:
                raise WireError
        elif kind == END:
            if not groups or groups.pop() != number:
                raise WireError
        elif kind == VARINT:
            _, place = varint(raw, place)
        else:
            size, place = varint(raw, place) if kind == BYTES else (_SIZES[kind], place)
            place += size
            if place > len(raw):
                raise WireError
        if not groups:
            return place
        number, kind, place = _tag(raw, place, MAX_IN_GROUP)
