"""A transaction's writes, kept until its contract has succeeded, then sent in as few messages as possible.

Reads of a Fabric transaction never see its own writes, so sending them late changes nothing a contract can
observe, and a contract that fails sends none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import wire
from .transaction import Transaction

# Far below the message limit, and large enough that the number of messages no longer matters.
BATCH_BYTES = 16 * 1024 * 1024
# What a peer takes that announces batches without their size.
DEFAULT_KEYS = 100

PUT, DELETE = wire.shim.WriteRecord.PUT_STATE, wire.shim.WriteRecord.DEL_STATE


@dataclass(frozen=True)
class PeerLimits:
    """How many keys one message may write or read; 0 where the peer takes single keys only."""

    write_keys: int = 0
    read_keys: int = 0

    @classmethod
    def from_ready(cls, payload: bytes) -> "PeerLimits":
        """Read what READY announces; an empty payload comes from a peer older than batches."""
        announced = wire.parse(wire.chaincode.ChaincodeAdditionalParams, payload)
        return cls(
            (announced.max_size_write_batch or DEFAULT_KEYS) if announced.use_write_batch else 0,
            (announced.max_size_get_multiple_keys or DEFAULT_KEYS) if announced.use_get_multiple_keys else 0,
        )


def send_writes(transaction: Transaction, writes: Mapping[str, bytes | None], limits: PeerLimits) -> None:
    """Send values and deletes (None), in batches where the peer announced them, else key by key."""
    if limits.write_keys:
        _send_batches(transaction, writes, limits.write_keys)
    else:
        for key, value in writes.items():
            _write_one(transaction, key, value)


def _send_batches(transaction: Transaction, writes: Mapping[str, bytes | None], max_keys: int) -> None:
    batch, count, size = wire.shim.WriteBatchState(), 0, 0
    add = batch.rec.add
    for key, value in writes.items():
        weight = len(key) * 4 + len(value or b"")
        if count == max_keys or (count and size + weight > BATCH_BYTES):
            _write_batch(transaction, batch)
            batch, count, size = wire.shim.WriteBatchState(), 0, 0
            add = batch.rec.add
        # Records made in place; making them first and passing them in copies each one.
        record = add()
        record.key = key
        if value is None:
            record.type = DELETE
        else:
            record.type = PUT
            record.value = value
        count += 1
        size += weight
    if count:
        _write_batch(transaction, batch)


def _write_batch(transaction: Transaction, batch: Any) -> None:
    transaction.call(wire.Message.WRITE_BATCH_STATE, batch.SerializeToString())


def _write_one(transaction: Transaction, key: str, value: bytes | None) -> None:
    if value is None:
        transaction.call(wire.Message.DEL_STATE, wire.shim.DelState(key=key).SerializeToString())
    else:
        transaction.call(wire.Message.PUT_STATE, wire.shim.PutState(key=key, value=value).SerializeToString())
