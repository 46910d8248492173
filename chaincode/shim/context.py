"""What a contract sees of its transaction: the ledger's state, the caller, and other chaincodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from . import calls, keys, wire
from .endorsement import Endorsement
from .errors import MisuseError
from .identity import Creator
from .private import Collection, read_many
from .proposal import Proposal, to_datetime
from .results import KeyValue, Results, key_value
from .transaction import Transaction
from .writes import VALIDATION_PARAMETER, PeerLimits, Writes, send_writes

MAX_PAGE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Modification:
    """One committed change of a key; the value is None when the change was a delete."""

    tx_id: str
    time: datetime
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a range, and the bookmark with which the next part is asked for; empty after the last."""

    items: tuple[KeyValue, ...]
    bookmark: str


class Context:
    """The peer's services for one transaction.

    As everywhere in Fabric, `get` returns the committed value: a transaction never reads its own writes.
    """

    def __init__(
        self, transaction: Transaction, arguments: Sequence[bytes], signed: Any, limits: PeerLimits
    ) -> None:
        self.arguments = tuple(arguments)
        self.event: Any = None
        self._transaction = transaction
        self._signed = signed
        self._limits = limits
        self._writes = Writes()

    @property
    def tx_id(self) -> str:
        """The transaction's id, which the client computed and signed."""
        return self._transaction.tx_id

    @property
    def channel(self) -> str:
        """The channel whose ledger this transaction reads and writes."""
        return self._transaction.channel

    @cached_property
    def _proposal(self) -> Proposal:
        return Proposal.from_signed(self._signed)

    @property
    def creator(self) -> Creator:
        """The identity that signed the proposal, also when another chaincode made this call."""
        return self._proposal.creator

    @property
    def addressed(self) -> str:
        """The chaincode the client addressed: another one than this where that one made the call."""
        return self._proposal.chaincode

    @property
    def transient(self) -> Mapping[str, bytes]:
        """Data the client sent beside the arguments; it does not become part of the transaction."""
        return self._proposal.transient

    @property
    def time(self) -> datetime:
        """The proposal's time in UTC: chosen by the client, equal on every peer."""
        return self._proposal.time

    def get(self, key: str) -> bytes | None:
        """Read a committed value; None when the key does not exist."""
        keys.check_key(key)
        return self._call(wire.Message.GET_STATE, wire.shim.GetState(key=key)) or None

    def get_many(self, wanted: Sequence[str], largest: int) -> list[bytes | None]:
        """Read several committed values in the order asked, in few messages where the peer can.

        `largest` is what a value may have: an answer that is larger than a message would end the stream.
        """
        return read_many(self._transaction, self._limits, wanted, largest)

    def put(self, key: str, value: bytes) -> None:
        """Write a value when the transaction commits."""
        keys.check_key(key)
        if not value:
            raise MisuseError("Fabric cannot store an empty value: it takes one for a delete")
        self._writes.check()
        self._writes.state[key] = bytes(value)

    def delete(self, key: str) -> None:
        """Remove a key when the transaction commits; its history stays."""
        keys.check_key(key)
        self._writes.check()
        self._writes.state[key] = None

    def private(self, collection: str) -> Collection:
        """Open a collection of private data of this chaincode; the channel's definition says who is in it."""
        return Collection(collection, self._transaction, self._limits, self._writes)

    def endorsement(self, key: str) -> Endorsement | None:
        """Read whose endorsement a change of this key needs; None where it is the chaincode's own policy."""
        keys.check_key(key)
        answer = self._call(wire.Message.GET_STATE_METADATA, wire.shim.GetStateMetadata(key=key))
        for entry in wire.parse(wire.shim.StateMetadataResult, answer).entries:
            if entry.metakey == VALIDATION_PARAMETER:
                return Endorsement.from_bytes(entry.value)
        return None

    def set_endorsement(self, key: str, policy: Endorsement) -> None:
        """Ask for these endorsements at every later change of a key that exists or is put here."""
        keys.check_key(key)
        self._writes.check()
        self._writes.policies[key] = policy.to_bytes()

    def range(self, start: str, end: str) -> Results[KeyValue]:
        """Read simple keys from start (inclusive) to end (exclusive); empty strings leave a side open.

        A peer cuts a query's results off at its `totalQueryLimit` (100,000) without a word; use pages beyond.
        """
        return self._range(*keys.simple_range(start, end))

    def range_page(self, start: str, end: str, size: int, bookmark: str = "") -> Page:
        """Read one page of a range of simple keys."""
        return self._page(*keys.simple_range(start, end), size, bookmark)

    def partial(self, kind: str, attributes: Sequence[str]) -> Results[KeyValue]:
        """Read every composite key that begins with these parts."""
        return self._range(*keys.partial_range(kind, tuple(attributes)))

    def partial_page(self, kind: str, attributes: Sequence[str], size: int, bookmark: str = "") -> Page:
        """Read one page of the composite keys that begin with these parts.

        A peer sends a page in one message, however large: `size` is to be such that it fits (`at_most`).
        """
        return self._page(*keys.partial_range(kind, tuple(attributes)), size, bookmark)

    def history(self, key: str) -> Results[Modification]:
        """Read a key's committed changes, newest first."""
        keys.check_key(key)
        answer = self._call(wire.Message.GET_HISTORY_FOR_KEY, wire.shim.GetHistoryForKey(key=key))
        return Results(self._transaction, answer, _modification)

    def invoke(self, chaincode: str, arguments: Sequence[str | bytes], channel: str = "") -> bytes:
        """Call another chaincode within this transaction and return its payload.

        Its writes join this transaction's when it runs on the same channel; on another channel it can only
        read. Its events are dropped by Fabric. An error of its is raised as `CallError`, with its code.
        """
        return calls.invoke(self._transaction, chaincode, arguments, channel)

    def organisations(self, chaincode: str) -> tuple[str, ...]:
        """Return the MSP ids of the channel's organisations, in order; the chaincode is one defined on it."""
        return calls.organisations(self._transaction, chaincode)

    def set_event(self, name: str, payload: bytes = b"") -> None:
        """Announce the transaction under a name once it commits; Fabric carries one event per transaction."""
        if not name:
            raise MisuseError("an event needs a name")
        if self.event is not None:
            raise MisuseError("a transaction carries one event, and this one has it already")
        self._writes.check()
        self.event = wire.event.ChaincodeEvent(event_name=name, payload=payload)

    def forbid_writes(self, reason: str) -> None:
        """Refuse writes and events from here on, saying why."""
        self._writes.forbid(reason)

    def flush(self) -> None:
        """Send the pending writes; called once, after the contract has succeeded."""
        send_writes(self._transaction, self._writes, self._limits)

    def _range(self, start: str, end: str) -> Results[KeyValue]:
        answer = self._call(
            wire.Message.GET_STATE_BY_RANGE, wire.shim.GetStateByRange(startKey=start, endKey=end)
        )
        return Results(self._transaction, answer, key_value)

    def _page(self, start: str, end: str, size: int, bookmark: str) -> Page:
        if not 1 <= size <= MAX_PAGE:
            raise MisuseError(f"a page has 1 to {MAX_PAGE} results")
        keys.check_utf8(bookmark)
        # A bookmark is the key the next page starts at, so one that a client made up could leave the range.
        if bookmark and not start.encode() <= bookmark.encode() < (end or keys.MAX_RUNE).encode():
            raise MisuseError("the bookmark is outside the range")
        if self._writes:
            raise MisuseError("Fabric allows pages only in a transaction that writes nothing")
        self.forbid_writes("Fabric allows no writes in a transaction that has read a page")
        metadata = wire.shim.QueryMetadata(pageSize=size, bookmark=bookmark).SerializeToString()
        request = wire.shim.GetStateByRange(startKey=start, endKey=end, metadata=metadata)
        results = Results(self._transaction, self._call(wire.Message.GET_STATE_BY_RANGE, request), key_value)
        return Page(tuple(results), results.bookmark)

    def _call(self, kind: int, request: Any) -> bytes:
        return self._transaction.call(kind, request.SerializeToString())


def _modification(raw: bytes) -> Modification:
    found = wire.parse(wire.queryresult.KeyModification, raw)
    return Modification(found.tx_id, to_datetime(found.timestamp), None if found.is_delete else found.value)
