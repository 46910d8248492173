"""Whether what a transaction read was still so when its block came: versions, ranges and their hashes."""

import hashlib
from collections.abc import Iterator

from executor.audit.fabric.form import Verdict
from executor.audit.fabric.messages import kvrwset
from executor.audit.fabric.rwset import NamespaceSet, Range
from executor.audit.fabric.state import Key, State, Update, Version

Found = Iterator[tuple[str, Version]]
MIN_DEGREE = 2


def find_conflict(sets: list[NamespaceSet], state: State, updates: dict[Key, Update]) -> Verdict:
    """Return the verdict of a peer on a transaction's reads, after those before it in the block."""
    for part in sets:
        if not _all_as_read(part.reads, state, updates):
            return Verdict.MVCC_READ_CONFLICT
        if part.ranges and not all(_is_same_range(part.name, asked, state, updates) for asked in part.ranges):
            return Verdict.PHANTOM_READ_CONFLICT
        if not _all_as_read(part.hashed_reads, state, updates):
            return Verdict.MVCC_READ_CONFLICT
    return Verdict.VALID


def _all_as_read(reads: list[tuple[Key, Version | None]], state: State, updates: dict[Key, Update]) -> bool:
    for key, version in reads:  # noqa: SIM110 - without a generator for each part of each transaction
        if key in updates or state.version(key) != version:
            return False
    return True


def _is_same_range(namespace: str, asked: Range, state: State, updates: dict[Key, Update]) -> bool:
    found = _in_range(namespace, asked, state, updates)
    if asked.found.WhichOneof("reads_info") == "reads_merkle_hashes":
        return _is_same_summary(asked.found.reads_merkle_hashes, found)
    reads = [
        (read.key, Version(read.version.block_num, read.version.tx_num))
        for read in asked.found.raw_reads.kv_reads
    ]
    return list(found) == reads


def _in_range(namespace: str, asked: Range, state: State, updates: dict[Key, Update]) -> Found:
    """Iterate over what the query would find now; one that was left early includes its last key."""
    changed = [
        key.name
        for key in updates
        if key.namespace == namespace and not key.collection and isinstance(key.name, str)
    ]
    names = {
        *state.between(namespace, asked.start, asked.end),
        *(name for name in changed if asked.start <= name and (not asked.end or name < asked.end)),
    }
    ordered = sorted(names) + ([] if asked.exhausted else [asked.end])
    for name in ordered:
        key = Key(namespace, "", name)
        version = state.version(key)
        if key in updates:
            version = None if updates[key].value is None else updates[key].version
        if version is not None:
            yield name, version


def _is_same_summary(wanted: object, found: Found) -> bool:
    """Whether the hashes that stand for many reads are those of what is found now."""
    degree = wanted.max_degree  # type: ignore[attr-defined]
    if degree < MIN_DEGREE:
        return False
    summary = Summary(degree)
    for name, version in found:
        summary.add(name, version)
    return summary.close() == (
        wanted.max_level,  # type: ignore[attr-defined]
        list(wanted.max_level_hashes),  # type: ignore[attr-defined]
    )


class Summary:
    """Fabric's tree of hashes over the results of a range query, built as they come."""

    def __init__(self, degree: int) -> None:
        self._degree = degree
        self._pending: list[tuple[str, Version]] = []
        self._levels: dict[int, list[bytes]] = {}
        self._top = 1

    def add(self, name: str, version: Version) -> None:
        """Take one more result."""
        self._pending.append((name, version))
        if len(self._pending) > self._degree:
            self._hash_pending()

    def close(self) -> tuple[int, list[bytes]] | None:
        """Return level and hashes; None where there are too few results for hashes."""
        if self._top == 1 and not self._levels.get(1):
            return None
        if self._pending:
            self._hash_pending()
        for level in range(1, self._top):
            hashes = self._levels.pop(level, [])
            if hashes:
                one = hashes[0] if len(hashes) == 1 else _combined(hashes)
                self._levels.setdefault(level + 1, []).append(one)
        final = self._levels.get(self._top, [])
        if len(final) > self._degree:
            self._top, final = self._top + 1, [_combined(final)]
        return self._top, final

    def _hash_pending(self) -> None:
        reads = kvrwset.QueryReads()
        for name, version in self._pending:
            read = reads.kv_reads.add(key=name)
            read.version.block_num, read.version.tx_num = version
        self._pending = []
        self._levels.setdefault(1, []).append(hashlib.sha256(reads.SerializeToString()).digest())
        level = 1
        while len(self._levels[level]) > self._degree:
            self._levels.setdefault(level + 1, []).append(_combined(self._levels.pop(level)))
            level += 1
            self._top = max(self._top, level)


def _combined(hashes: list[bytes]) -> bytes:
    return hashlib.sha256(b"".join(hashes)).digest()
