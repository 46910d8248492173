"""What a transaction read and wrote, as its endorsers signed it."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from executor.audit.fabric.messages import kvrwset, parse, rwset
from executor.audit.fabric.state import Key, Version

_HASH_OF_NOTHING = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


class Write(NamedTuple):
    """A value, or None where the key was removed."""

    key: Key
    value: bytes | None


class MetadataWrite(NamedTuple):
    """The metadata of a key by name, or None where it was removed."""

    key: Key
    entries: dict[str, bytes] | None


class Range(NamedTuple):
    """A range query and what it found."""

    start: str
    end: str
    exhausted: bool
    found: Any
    """Fabric's RangeQueryInfo, which holds the reads or their hashes."""


class NamespaceSet(NamedTuple):
    """The part of one chaincode."""

    name: str
    reads: list[tuple[Key, Version | None]]
    ranges: list[Range]
    hashed_reads: list[tuple[Key, Version | None]]
    writes: list[Write]
    metadata: list[MetadataWrite]
    hashed_writes: list[Write]
    hashed_metadata: list[MetadataWrite]

    @property
    def has_changes(self) -> bool:
        """Whether it changes any key."""
        return bool(self.writes or self.metadata or self.hashed_writes or self.hashed_metadata)

    @property
    def changes(self) -> Iterator[Key]:
        """Every key that it changes, in the order in which a peer looks for policies."""
        for write in self.writes:
            yield write.key
        for change in self.metadata:
            yield change.key
        for write in self.hashed_writes:
            yield write.key
        for change in self.hashed_metadata:
            yield change.key

    @classmethod
    def read(cls, found: Any) -> Self:
        """Decode the part of one chaincode."""
        name = found.namespace
        public = parse(kvrwset.KVRWSet, found.rwset)
        reads = [(Key(name, "", read.key), _version(read)) for read in public.reads]
        ranges = [_range(item) for item in public.range_queries_info]
        writes = [_write(name, write) for write in public.writes]
        metadata = [_metadata(Key(name, "", change.key), change) for change in public.metadata_writes]
        hashed = [
            (part.collection_name, parse(kvrwset.HashedRWSet, part.hashed_rwset))
            for part in found.collection_hashed_rwset
        ]
        if not hashed:
            return cls(name, reads, ranges, [], writes, metadata, [], [])
        return cls(
            name,
            reads,
            ranges,
            [
                (Key(name, part, read.key_hash), _version(read))
                for part, inner in hashed
                for read in inner.hashed_reads
            ],
            writes,
            metadata,
            [_hashed_write(name, part, write) for part, inner in hashed for write in inner.hashed_writes],
            [
                _metadata(Key(name, part, change.key_hash), change)
                for part, inner in hashed
                for change in inner.metadata_writes
            ],
        )


def read_sets(raw: bytes) -> list[NamespaceSet]:
    """Decode the results of a simulation."""
    return [NamespaceSet.read(found) for found in parse(rwset.TxReadWriteSet, raw).ns_rwset]


def _version(read: Any) -> Version | None:
    if not read.HasField("version"):
        return None
    found = read.version
    return Version(found.block_num, found.tx_num)


def _range(item: Any) -> Range:
    return Range(item.start_key, item.end_key, item.itr_exhausted, item)


def _write(namespace: str, write: Any) -> Write:
    value = write.value
    return Write(Key(namespace, "", write.key), None if write.is_delete or not value else value)


def _hashed_write(namespace: str, collection: str, write: Any) -> Write:
    value = write.value_hash
    removed = write.is_delete or value in (b"", _HASH_OF_NOTHING)
    return Write(Key(namespace, collection, write.key_hash), None if removed else value)


def _metadata(key: Key, change: Any) -> MetadataWrite:
    # An empty list of entries and none at all are the same bytes: both remove the metadata.
    entries = {entry.name: entry.value for entry in change.entries}
    return MetadataWrite(key, entries or None)
