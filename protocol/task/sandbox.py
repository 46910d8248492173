"""The profile of a task's container, which its opening commits to by a digest: the preimage, checked.

What a profile says is the executor's matter (docs/sandbox.md); here it is one record in its one form, whose
digest is the one on the ledger, so that an auditor can read what the digest stands for.
"""

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import EncodingError, RecordError
from protocol.task.opening import Opening

MAX_PROFILE = 1 << 16


def check_profile(opening: Opening, raw: bytes) -> None:
    """Return if these bytes are the sandbox profile that an opening commits to; raise otherwise."""
    if len(raw) > MAX_PROFILE:
        raise RecordError(
            "PAYLOAD_SIZE", f"the sandbox profile has {len(raw)} bytes, more than {MAX_PROFILE}"
        )
    found = Digest.of(raw)
    if found != opening.sandbox:
        raise RecordError("PAYLOAD_DIGEST", f"the sandbox profile is {found}, not {opening.sandbox}")
    try:
        record = canonical.decode(raw, max_bytes=MAX_PROFILE)
    except EncodingError as error:
        raise RecordError("RECORD_VALUE", f"the sandbox profile is no record: {error.cause}") from error
    if not isinstance(record, dict):
        raise RecordError("RECORD_VALUE", "the sandbox profile is no object")
