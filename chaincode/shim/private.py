"""Private data: values for the peers of a collection's organisations, and hashes for all peers."""

import re
from collections.abc import Sequence
from typing import Any

from . import keys, wire
from .errors import MisuseError
from .results import KeyValue, Results, key_value
from .transaction import Transaction, at_most
from .writes import PeerLimits, Writes

COLLECTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


class Collection:
    """One collection of the chaincode, as one transaction sees it.

    A peer outside the collection answers a read with an error (`PeerError`) and knows the hashes alone. What
    is written must come to the chaincode in the transient map: arguments become part of the block.
    """

    def __init__(self, name: str, transaction: Transaction, limits: PeerLimits, writes: Writes) -> None:
        if not COLLECTION.fullmatch(name):
            raise MisuseError("a collection's name has letters, digits, dashes and underscores")
        self.name = name
        self._transaction = transaction
        self._limits = limits
        self._writes = writes

    def get(self, key: str) -> bytes | None:
        """Read a committed value; None when the key does not exist, or its life in the collection is over."""
        keys.check_key(key)
        request = wire.shim.GetState(key=key, collection=self.name)
        return self._call(wire.Message.GET_STATE, request) or None

    def get_many(self, wanted: Sequence[str], largest: int) -> list[bytes | None]:
        """Read several committed values in the order asked, in few messages where the peer can.

        `largest` is what a value may have: an answer that is larger than a message would end the stream.
        A v3.1 peer that does not have a value leaves it out of such an answer without a word, as if there
        were none; asked for the key alone, it says so. So each that is missing is asked for again.
        """
        found = read_many(self._transaction, self._limits, wanted, largest, self.name)
        return [self.get(key) if value is None else value for key, value in zip(wanted, found, strict=True)]

    def hash(self, key: str) -> bytes | None:
        """Read the SHA-256 of a committed value, which peers outside the collection hold, too."""
        keys.check_key(key)
        request = wire.shim.GetState(key=key, collection=self.name)
        return self._call(wire.Message.GET_PRIVATE_DATA_HASH, request) or None

    def put(self, key: str, value: bytes) -> None:
        """Write a value when the transaction commits; its hash becomes public."""
        self._check(key)
        if not value:
            raise MisuseError("Fabric cannot store an empty value: it takes one for a delete")
        self._writes.private[self.name, key] = bytes(value)

    def delete(self, key: str) -> None:
        """Remove a key from the present state; peers keep the value of its past."""
        self._check(key)
        self._writes.private[self.name, key] = None

    def purge(self, key: str) -> None:
        """Remove a key and its past from every peer; the hashes in the blocks stay."""
        self._check(key)
        self._writes.purged[self.name, key] = None

    def range(self, start: str, end: str) -> Results[KeyValue]:
        """Read simple keys from start to end; Fabric allows it only where nothing is written."""
        return self._range(*keys.simple_range(start, end))

    def partial(self, kind: str, attributes: Sequence[str]) -> Results[KeyValue]:
        """Read every composite key that begins with these parts; only where nothing is written."""
        return self._range(*keys.partial_range(kind, tuple(attributes)))

    def _range(self, start: str, end: str) -> Results[KeyValue]:
        if self._writes:
            raise MisuseError(
                "Fabric allows ranges of private data only in a transaction that writes nothing"
            )
        self._writes.forbid("Fabric allows no writes in a transaction that has read a range of private data")
        request = wire.shim.GetStateByRange(startKey=start, endKey=end, collection=self.name)
        answer = self._call(wire.Message.GET_STATE_BY_RANGE, request)
        return Results(self._transaction, answer, key_value)

    def _check(self, key: str) -> None:
        keys.check_key(key)
        self._writes.check()

    def _call(self, kind: int, request: Any) -> bytes:
        return self._transaction.call(kind, request.SerializeToString())


def read_many(
    transaction: Transaction, limits: PeerLimits, wanted: Sequence[str], largest: int, collection: str = ""
) -> list[bytes | None]:
    """Read several committed values, of a collection or of the public state."""
    at_once = min(limits.read_keys, at_most(largest))
    for key in wanted:
        keys.check_key(key)
    values: list[bytes | None] = []
    if not limits.read_keys:
        for key in wanted:
            request = wire.shim.GetState(key=key, collection=collection)
            values.append(transaction.call(wire.Message.GET_STATE, request.SerializeToString()) or None)
        return values
    for first in range(0, len(wanted), at_once):
        asked = wanted[first : first + at_once]
        request = wire.shim.GetStateMultiple(keys=asked, collection=collection)
        answer = transaction.call(wire.Message.GET_STATE_MULTIPLE, request.SerializeToString())
        found = wire.parse(wire.shim.GetStateMultipleResult, answer).values
        if len(found) != len(asked):
            raise wire.FormatError(f"the peer answered {len(asked)} keys with {len(found)} values")
        values.extend(value or None for value in found)
    return values
