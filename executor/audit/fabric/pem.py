"""PEM as Go reads it: the first block that is whole, whatever it calls itself.

An identity is named by PEM that its holder wrote. Fabric's peers do not look at the word after BEGIN, nor at
what stands before or behind the block, so a certificate counts for them that other readers refuse.
"""

import base64
import binascii

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"\n-----END ", b"-----"


def first_block(raw: bytes) -> bytes | None:
    """Return the bytes in the first whole block; None without one."""
    place = 0
    while True:
        end = raw.find(_END, place)
        if end < 0:
            return None
        begin = raw.rfind(_BEGIN, place, end)
        after = end + len(_END)
        if begin >= 0 and (begin == place or raw[begin - 1 : begin] == b"\n"):
            found = _block(raw, begin + len(_BEGIN), end, after)
            if found is not None:
                return found
        place = after


def _block(raw: bytes, start: int, end: int, after: int) -> bytes | None:
    """Return what stands between a BEGIN line and an END line; None where they do not fit."""
    line, start = _line(raw, start)
    if not line.endswith(_DASHES):
        return None
    ending, _ = _line(raw, after)
    if ending != line:
        return None
    has_headers = False
    while True:
        header, following = _line(raw, start)
        if b":" not in header:
            break
        has_headers, start = True, following
    if start > end + 1 or (has_headers and start > end):
        return None
    try:
        stripped = raw[start:end].translate(None, b" \t\r\n") if start < end else b""
        return base64.b64decode(stripped, validate=True)
    except (binascii.Error, ValueError):
        return None


def _line(raw: bytes, start: int) -> tuple[bytes, int]:
    """Return a line without what is blank at its end, and where the next one begins."""
    end = raw.find(b"\n", start)
    if end < 0:
        return raw[start:].rstrip(b" \t"), len(raw)
    return raw[start:end].removesuffix(b"\r").rstrip(b" \t"), end + 1
