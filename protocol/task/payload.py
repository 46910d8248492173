"""Bytes that come with a call: apart from its arguments, or in base64 as one of them.

Fabric's transient map keeps them out of the transaction, which would otherwise hold them twice; their digest
is among the signed arguments. A client without transient data may send base64.
"""

import base64
import binascii

from protocol.digest import Digest
from protocol.errors import RecordError

MAX_PAYLOAD = 1 << 20


def read_payload(
    transient: bytes | None, argument: str, digest: Digest, max_bytes: int = MAX_PAYLOAD
) -> bytes:
    """Return the payload, which must be there once, within the limit and of this digest."""
    if (transient is None) == (argument == ""):
        raise RecordError(
            "PAYLOAD_MISSING", "the payload is neither in the transient map nor an argument, or both"
        )
    raw = transient if transient is not None else _from_base64(argument, max_bytes)
    if len(raw) > max_bytes:
        raise RecordError("PAYLOAD_SIZE", f"{len(raw)} bytes are more than {max_bytes}")
    found = Digest.of(raw)
    if found != digest:
        raise RecordError("PAYLOAD_DIGEST", f"the payload has digest {found}, not {digest}")
    return raw


def _from_base64(text: str, max_bytes: int) -> bytes:
    # Four characters hold three bytes; what is longer is refused before it is decoded.
    if len(text) > max_bytes * 4 // 3 + 4:
        raise RecordError("PAYLOAD_SIZE", f"{len(text)} characters of base64 are more than {max_bytes} bytes")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordError("PAYLOAD_MISSING", "the payload is not base64") from error
