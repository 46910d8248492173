"""Records under keys: canonical bytes in, values out, and where each change comes from."""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from chaincode.common.caller import caller_of
from chaincode.shim import Context
from protocol import canonical
from protocol.digest import Digest
from protocol.ledger.common import Provenance
from protocol.ledger.record import LedgerRecord

R = TypeVar("R", bound=LedgerRecord)


def read(ctx: Context, key: str, kind: type[R]) -> R | None:
    """Read a record that this chaincode wrote; None when there is none."""
    raw = ctx.get(key)
    return None if raw is None else parse(raw, kind)


def read_many(ctx: Context, keys: Sequence[str], kind: type[R]) -> list[R | None]:
    """Read several records at once, None for each that is not there."""
    return [None if raw is None else parse(raw, kind) for raw in ctx.get_many(keys, kind.max_bytes)]


def parse(raw: bytes, kind: type[R]) -> R:
    """Read a record that `write` wrote: its bytes have the one form, which is not checked again."""
    return kind.from_dict(json.loads(raw))


def write(ctx: Context, key: str, record: LedgerRecord) -> None:
    """Store a record in its one form."""
    ctx.put(key, encode(record))


def encode(record: LedgerRecord) -> bytes:
    """Write a record in its one form, or refuse one that is larger than those who read many rely on."""
    return canonical.encode(record.to_dict(), max_bytes=record.max_bytes)


def fields_of(record: LedgerRecord) -> dict[str, Any]:
    """Return the fields of a record by name, for an answer that has more."""
    return {field.name: getattr(record, field.name) for field in fields(record)}  # type: ignore[arg-type]


def time_text(time: datetime) -> str:
    """Write a time of the ledger: UTC, to the microsecond, always of one length."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def provenance(ctx: Context) -> Provenance:
    """Say who did it, when (by the client's clock; the order is the blocks') and in which transaction."""
    caller = caller_of(ctx)
    return Provenance(
        organisation=caller.organisation,
        identity=caller.identity,
        role=caller.role.value,
        certificate=Digest.parse(f"sha256:{ctx.creator.fingerprint}"),
        time=time_text(ctx.time),
        tx=ctx.tx_id,
    )
