"""The verdicts on a block's transactions, found anew, and what the block leaves of them.

Flags and commit hashes are written by each peer for itself and signed by nobody. So they prove nothing: they
are computed here from what is signed, and compared.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter

from executor.audit.fabric.block import Block
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.conflicts import find_conflict
from executor.audit.fabric.endorsement import LIFECYCLE, BlockPolicies, Endorsements
from executor.audit.fabric.form import Form, InvalidError, Verdict
from executor.audit.fabric.messages import MalformedError
from executor.audit.fabric.rwset import NamespaceSet
from executor.audit.fabric.state import Key, State, Update, Version
from executor.audit.fabric.transaction import Transaction, tx_id_of

VALIDATION_PARAMETER = "VALIDATION_PARAMETER"
_ID = re.compile("[0-9a-f]{64}").fullmatch
_PLACE = itemgetter(0, 1, 2)


@dataclass(slots=True)
class Judged:
    """A transaction with the verdict found here, and why it is not valid."""

    index: int
    tx_id: str
    verdict: Verdict
    why: str = ""
    others: frozenset[Verdict] = frozenset()
    """What another peer may note with equal right."""
    counts: bool = False
    """Whether the walk goes on as if it were valid."""
    transaction: Transaction | None = field(default=None, repr=False)
    """None where a peer would not have looked further than its form and its creator."""
    kept: bytes = field(init=False, repr=False)
    """What stands for its id."""

    def __post_init__(self) -> None:
        self.kept = kept_id(self.tx_id)


class Validator:
    """A peer's judgement, block after block, on a state of its own."""

    def __init__(self) -> None:
        self.state = State()
        self.endorsements = Endorsements(self.state)
        self.commit_hash = b""
        self._ids: set[bytes] = set()

    @property
    def ids(self) -> frozenset[bytes]:
        """The ids of all transactions so far."""
        return frozenset(self._ids)

    def resume(self, ids: set[bytes], commit_hash: bytes) -> None:
        """Go on where an earlier run stood, on the state that was filled from its file."""
        self._ids, self.commit_hash = ids, commit_hash

    def remember(self, block: Block) -> None:
        """Keep the ids of a block whose transactions are not judged: peers look for them, too."""
        self._ids.update(kept_id(tx_id_of(raw)) for raw in block.data)

    def judge(self, block: Block, configuration: Configuration) -> list[Judged]:
        """Return the verdict on each transaction of a block before anything of it is applied to the state.

        Reads are checked later (`settle`), because they depend on the verdicts before them.
        """
        policies, seen, found = BlockPolicies(), set[str](), list[Judged]()
        for index, (raw, form) in enumerate(zip(block.data, block.forms, strict=True)):
            judged = self._judge(index, raw, form, configuration, policies)
            if judged.verdict is Verdict.VALID:
                if judged.tx_id in seen:
                    judged.verdict, judged.why = Verdict.DUPLICATE_TXID, "its id stands earlier in the block"
                seen.add(judged.tx_id)
            found.append(judged)
        return found

    def settle(self, number: int, found: list[Judged], recorded: bytes) -> dict[Key, Update]:
        """Check reads in their order and return what the block leaves.

        Where a signature or a policy fails, that is reported once; the walk goes on with what was recorded,
        so that one altered byte does not make all that follows look wrong.
        """
        updates: dict[Key, Update] = {}
        for judged in found:
            self._ids.add(judged.kept)
            noted = recorded[judged.index] if judged.index < len(recorded) else None
            if noted in judged.others:
                judged.verdict = Verdict(noted)
            if judged.transaction is None:
                continue
            if judged.verdict is Verdict.VALID:
                judged.verdict = find_conflict(judged.transaction.sets, self.state, updates)
                judged.why = "" if judged.verdict is Verdict.VALID else "what it read had changed"
                judged.counts = judged.verdict is Verdict.VALID
            else:
                judged.counts = noted == Verdict.VALID and judged.verdict is not Verdict.DUPLICATE_TXID
            if judged.counts:
                self._write(judged.transaction.sets, Version(number, judged.index), updates)
        return updates

    def apply(self, number: int, flags: bytes, updates: dict[Key, Update]) -> None:
        """Make the block part of the state, and its commit hash the last one."""
        self.state.apply(updates)
        if any(key.namespace == LIFECYCLE for key in updates):
            self.endorsements.forget()
        if number > 0:
            self.commit_hash = commit_hash(flags, updates, self.commit_hash)

    def _judge(
        self,
        index: int,
        raw: bytes,
        form: Form | InvalidError,
        configuration: Configuration,
        policies: BlockPolicies,
    ) -> Judged:
        try:
            if isinstance(form, InvalidError):
                raise form
            found = Transaction.of(form, configuration)
        except InvalidError as error:
            judged = Judged(index, tx_id_of(raw), error.verdict, str(error), transaction=error.transaction)
            if error.dispatched and judged.kept in self._ids:
                judged.verdict, judged.why = Verdict.DUPLICATE_TXID, "its id stands in an earlier block"
            return judged
        judged = Judged(index, found.tx_id, Verdict.VALID, transaction=found)
        if judged.kept in self._ids:
            judged.verdict, judged.why = Verdict.DUPLICATE_TXID, "its id stands in an earlier block"
            return judged
        try:
            self.endorsements.check(found, configuration, policies)
            found.endorsed_by = self.endorsements.organisations(found, configuration)
        except InvalidError as error:
            judged.verdict, judged.why, judged.others = error.verdict, str(error), error.others
        except MalformedError as error:
            judged.verdict, judged.why = Verdict.INVALID_OTHER_REASON, str(error)
        return judged

    def _write(self, sets: list[NamespaceSet], version: Version, updates: dict[Key, Update]) -> None:
        for part in sets:
            written = dict((*part.writes, *part.hashed_writes))
            if not part.metadata and not part.hashed_metadata:
                for key, value in written.items():
                    kept = None if value is None else self._policy(key, updates)
                    updates[key] = Update(version, value, kept)
                continue
            policies = {
                change.key: (change.entries or {}).get(VALIDATION_PARAMETER)
                for change in (*part.metadata, *part.hashed_metadata)
            }
            for key in {**written, **policies}:
                value = written[key] if key in written else self._value(key, updates)
                if key not in written and value is None:
                    continue
                metadata = policies[key] if key in policies else self._policy(key, updates)
                updates[key] = Update(version, value, None if value is None else metadata)

    def _value(self, key: Key, updates: dict[Key, Update]) -> bytes | None:
        return updates[key].value if key in updates else self.state.value(key)

    def _policy(self, key: Key, updates: dict[Key, Update]) -> bytes | None:
        if key in updates:
            return updates[key].metadata
        entry = self.state.get(key)
        return None if entry is None else entry.metadata


def kept_id(tx_id: str) -> bytes:
    """Return the bytes that stand for an id: what is no hash never has as many as one."""
    if _ID(tx_id):
        return bytes.fromhex(tx_id)
    return bytes(33) + hashlib.sha256(tx_id.encode()).digest()


def commit_hash(flags: bytes, updates: dict[Key, Update], before: bytes) -> bytes:
    """Return a peer's hash over the verdicts, all that changed, and its hash of the block before."""
    return hashlib.sha256(b"".join((_varint(len(flags)), flags, *_written(updates), before))).digest()


def _written(updates: dict[Key, Update]) -> Iterator[bytes]:
    """Write changes as Fabric does: by chaincode, public ones first, names only where they change."""
    found = [
        (namespace, collection, name.encode() if isinstance(name, str) else name, update)
        for (namespace, collection, name), update in updates.items()
        if namespace
    ]
    found.sort(key=_PLACE)
    last: tuple[str, str] = ("", "")
    for namespace, collection, raw, (version, value, _) in found:
        names = b"" if namespace == last[0] else _field(1, namespace.encode())
        if collection and (namespace, collection) != last:
            names += _field(2, collection.encode())
        last = (namespace, collection)
        written = b"\x20\x01" if value is None else _field(5, value)
        yield _field(1, names + _field(3, raw) + written + _version(version))


@lru_cache(maxsize=64)
def _version(version: Version) -> bytes:
    return _field(6, _height(version.block) + _height(version.tx))


def _field(number: int, content: bytes) -> bytes:
    size = len(content)
    return bytes((number << 3 | 2, size) if size < 0x80 else (number << 3 | 2, *_varint(size))) + content


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return out + bytes((value,))


def _height(value: int) -> bytes:
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((len(raw),)) + raw
