"""Records under keys: canonical bytes in, parsed out, and where each change comes from."""

from datetime import datetime
from typing import Any

from chaincode.common.caller import caller_of
from chaincode.shim import Context
from protocol import canonical

VERSION = 1
"""The version every stored record carries."""
MAX_RECORD_BYTES = 8 << 20
"""What a record may have: an ensemble of ten thousand estimators takes more than a message does."""


def read(ctx: Context, key: str) -> dict[str, Any] | None:
    """Read a record that this chaincode wrote; None when there is none."""
    raw = ctx.get(key)
    return None if raw is None else parse(raw)


def parse(raw: bytes) -> dict[str, Any]:
    """Read a stored record."""
    record = canonical.decode(raw, max_bytes=MAX_RECORD_BYTES)
    assert isinstance(record, dict)  # noqa: S101
    return record


def write(ctx: Context, key: str, record: dict[str, Any]) -> None:
    """Store a record in its one form."""
    ctx.put(key, canonical.encode(record, max_bytes=MAX_RECORD_BYTES))


def time_text(time: datetime) -> str:
    """Write a time of the ledger: UTC, to the microsecond, always of one length."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def provenance(ctx: Context) -> dict[str, Any]:
    """Say who did it, when (by the client's clock; the order is the blocks') and in which transaction."""
    caller = caller_of(ctx)
    return {
        "organisation": caller.organisation,
        "identity": caller.identity,
        "role": caller.role.value,
        "certificate": f"sha256:{ctx.creator.fingerprint}",
        "time": time_text(ctx.time),
        "tx": ctx.tx_id,
    }
