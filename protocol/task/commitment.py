"""The commitment to private data: what the ledger holds in its place (docs/formats/commitment-v1.md)."""

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import RecordError

VERSION = 1
SALT_BYTES = 32


def data_commitment(salt: bytes, file: Digest, rows: Digest, schema: Digest) -> Digest:
    """Commit to a file, the rows read from it and their schema.

    The salt is the organisation's secret: without it, nobody can try whether a guess at the data is right.
    """
    if type(salt) is not bytes or len(salt) != SALT_BYTES:
        raise RecordError("RECORD_VALUE", f"the salt of a commitment is {SALT_BYTES} bytes")
    return canonical.digest(
        {"version": VERSION, "salt": salt.hex(), "file": str(file), "rows": str(rows), "schema": str(schema)}
    )
