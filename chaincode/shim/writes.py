"""A transaction's writes, kept until its contract has succeeded, then sent in as few messages as possible.

Reads of a Fabric transaction never see its own writes, so sending them late changes nothing a contract can
observe, and a contract that fails sends none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import wire
from .errors import MisuseError
from .transaction import Transaction

# Far below the message limit, and large enough that the number of messages no longer matters.
BATCH_BYTES = 16 * 1024 * 1024
# What a peer takes that announces batches without their size.
DEFAULT_KEYS = 100

PUT, DELETE = wire.shim.WriteRecord.PUT_STATE, wire.shim.WriteRecord.DEL_STATE
POLICY, PURGE = wire.shim.WriteRecord.PUT_STATE_METADATA, wire.shim.WriteRecord.PURGE_PRIVATE_DATA
# The one entry of a key's metadata that Fabric reads.
VALIDATION_PARAMETER = "VALIDATION_PARAMETER"

Write = tuple[int, str, str, bytes]
"""Kind, collection (empty for the public state), key, and the value or the policy."""


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


@dataclass
class Writes:
    """The last write of each key, and the last policy; None is a delete."""

    state: dict[str, bytes | None] = field(default_factory=dict)
    private: dict[tuple[str, str], bytes | None] = field(default_factory=dict)
    purged: dict[tuple[str, str], None] = field(default_factory=dict)
    policies: dict[str, bytes] = field(default_factory=dict)
    forbidden: str = ""

    def forbid(self, reason: str) -> None:
        """Refuse writes from here on, saying why."""
        self.forbidden = reason

    def check(self) -> None:
        """Refuse a write where writes are forbidden."""
        if self.forbidden:
            raise MisuseError(self.forbidden)

    def __bool__(self) -> bool:
        return bool(self.state or self.private or self.purged or self.policies)

    def __iter__(self) -> Iterator[Write]:
        """Give each write in the order in which it was first made, public values before all others."""
        for key, value in self.state.items():
            yield (DELETE, "", key, b"") if value is None else (PUT, "", key, value)
        for (collection, key), value in self.private.items():
            yield (DELETE, collection, key, b"") if value is None else (PUT, collection, key, value)
        for collection, key in self.purged:
            yield PURGE, collection, key, b""
        for key, policy in self.policies.items():
            yield POLICY, "", key, policy


def send_writes(transaction: Transaction, writes: Writes, limits: PeerLimits) -> None:
    """Send all writes, in batches where the peer announced them, else key by key."""
    if limits.write_keys:
        _send_batches(transaction, writes, limits.write_keys)
    else:
        for write in writes:
            _write_one(transaction, *write)


def _send_batches(transaction: Transaction, writes: Writes, max_keys: int) -> None:
    batch, count, size = wire.shim.WriteBatchState(), 0, 0
    add = batch.rec.add
    for kind, collection, key, value in writes:
        weight = len(key) * 4 + len(value)
        if count == max_keys or (count and size + weight > BATCH_BYTES):
            _write_batch(transaction, batch)
            batch, count, size = wire.shim.WriteBatchState(), 0, 0
            add = batch.rec.add
        # Records made in place; making them first and passing them in copies each one.
        record = add()
        record.key = key
        record.type = kind
        if collection:
            record.collection = collection
        if kind == PUT:
            record.value = value
        elif kind == POLICY:
            record.metadata.metakey = VALIDATION_PARAMETER
            record.metadata.value = value
        count += 1
        size += weight
    if count:
        _write_batch(transaction, batch)


def _write_batch(transaction: Transaction, batch: Any) -> None:
    transaction.call(wire.Message.WRITE_BATCH_STATE, batch.SerializeToString())


def _write_one(transaction: Transaction, kind: int, collection: str, key: str, value: bytes) -> None:
    place = {"key": key, "collection": collection}
    request: Any
    if kind == PUT:
        message, request = wire.Message.PUT_STATE, wire.shim.PutState(**place, value=value)
    elif kind == DELETE:
        message, request = wire.Message.DEL_STATE, wire.shim.DelState(**place)
    elif kind == PURGE:
        message, request = wire.Message.PURGE_PRIVATE_DATA, wire.shim.PurgePrivateState(**place)
    else:
        metadata = wire.shim.StateMetadata(metakey=VALIDATION_PARAMETER, value=value)
        message = wire.Message.PUT_STATE_METADATA
        request = wire.shim.PutStateMetadata(**place, metadata=metadata)
    transaction.call(message, request.SerializeToString())
