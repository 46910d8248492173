"""The state of the channel as the write sets leave it: versions and metadata in memory, values in a file.

Memory grows with the number of keys and not with their values, which wait in a temporary file for the few
that are asked for again.
"""

import tempfile
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

WAITING = 1 << 16
"""How many bytes of values wait until they are written to the file."""


class Version(NamedTuple):
    """The transaction that wrote a key last."""

    block: int
    tx: int


class Key(NamedTuple):
    """A key of a chaincode, or the hash of one in a collection."""

    namespace: str
    collection: str
    name: str | bytes


class Entry(NamedTuple):
    """What stands under a key."""

    version: Version
    place: tuple[int, int]
    """Where its value is in the file: offset and length."""
    metadata: bytes | None


class Update(NamedTuple):
    """What a block leaves under a key; no value for one that was removed."""

    version: Version
    value: bytes | None
    metadata: bytes | None


class State:
    """Every key that stands, by chaincode."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._names: dict[str, list[str]] = {}
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the state
        self._waiting = bytearray()
        """The newest values, which are written to the file some at a time."""
        self._written = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Entry | None:
        """Return what stands under a key."""
        return self._entries.get(key)

    def version(self, key: Key) -> Version | None:
        """Return the transaction that wrote a key last."""
        found = self._entries.get(key)
        return None if found is None else found.version

    def value(self, key: Key) -> bytes | None:
        """Read a value back."""
        found = self._entries.get(key)
        if found is None:
            return None
        offset, length = found.place
        if offset >= self._written:
            start = offset - self._written
            return bytes(self._waiting[start : start + length])
        self._file.seek(offset)
        return self._file.read(length)

    def between(self, namespace: str, start: str, end: str) -> Iterator[str]:
        """Iterate over the public keys of a chaincode from `start` to before `end`, in order."""
        names = self._names.get(namespace, [])
        position = bisect_left(names, start)
        while position < len(names) and (not end or names[position] < end):
            yield names[position]
            position += 1

    def items(self) -> Iterator[tuple[Key, Entry, bytes]]:
        """Iterate over everything that stands, in one order, with its value."""
        for key in sorted(self._entries, key=_order):
            yield key, self._entries[key], self.value(key) or b""

    def apply(self, updates: dict[Key, Update]) -> None:
        """Write what a block leaves."""
        for key, update in updates.items():
            if update.value is None:
                self._remove(key)
                continue
            if key not in self._entries and not key.collection and isinstance(key.name, str):
                insort(self._names.setdefault(key.namespace, []), key.name)
            self._entries[key] = Entry(update.version, self._keep(update.value), update.metadata)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _keep(self, value: bytes) -> tuple[int, int]:
        place = (self._written + len(self._waiting), len(value))
        self._waiting += value
        if len(self._waiting) >= WAITING:
            self._file.seek(self._written)
            self._file.write(self._waiting)
            self._written += len(self._waiting)
            self._waiting.clear()
        return place

    def _remove(self, key: Key) -> None:
        if self._entries.pop(key, None) is not None and not key.collection and isinstance(key.name, str):
            names = self._names[key.namespace]
            del names[bisect_left(names, key.name)]


def _order(key: Key) -> tuple[str, str, bytes]:
    return key.namespace, key.collection, key.name.encode() if isinstance(key.name, str) else key.name
