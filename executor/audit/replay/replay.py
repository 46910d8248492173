"""The walk over the project's records: each is read in its one form and judged by the rules of its kind."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from itertools import repeat
from types import NoneType
from typing import Any, get_type_hints

from executor.audit.chain import Committed
from executor.audit.fabric.rwset import NamespaceSet
from executor.audit.fabric.state import State
from executor.audit.findings import Findings
from executor.audit.replay import (
    agreements,
    callers,
    challenges,
    initial,
    listings,
    models,
    openings,
    rebuilds,
    requests,
    results,
    selection,
    shares,
    tasks,
    votes,
    words,
)
from executor.audit.replay.view import (
    KINDS,
    NAMESPACES,
    ORCHESTRATION,
    RecordCache,
    View,
    Written,
    parse_record,
)
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.ledger import keys
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.record import LedgerRecord

SENTENCES = {
    "records": "each record has a known form, under the key that names what it is about",
    "provenance": "each record says truly who wrote it, in which transaction, with which certificate",
    **callers.SENTENCES,
    **agreements.SENTENCES,
    **words.SENTENCES,
    **listings.SENTENCES,
    **votes.SENTENCES,
    **tasks.SENTENCES,
    **openings.SENTENCES,
    **shares.SENTENCES,
    **selection.SENTENCES,
    **results.SENTENCES,
    **models.SENTENCES,
    **requests.SENTENCES,
    **challenges.SENTENCES,
    **rebuilds.SENTENCES,
}

NOT_REPLAYED = (
    "That a change of a running process fitted it: that a topology names its nodes, that there was a place"
    " for a new one, that a new coordinator takes part. Who agreed is counted again, and that nothing was"
    " altered that had begun; the rest is the endorsing majority's word.",
    "That the trees of a confidential process are trees within its limits, and none of them a copy: blocks"
    " hold their digests alone. The organisations that hold the trees can look.",
    "That bounds were kept which make no claim true or false: lengths of texts, requests that nobody needed,"
    " times to come, auditors that are on the channel.",
)
"""The rules of the chaincodes that are not asked again (docs/audit.md has all of them)."""

Rule = Callable[[Findings, View, Written], None]
_ROOMS: tuple[Mapping[str, tuple[Rule, ...]], ...] = (
    agreements.RULES,
    words.RULES,
    listings.RULES,
    votes.RULES,
    tasks.RULES,
    openings.RULES,
    shares.RULES,
    initial.RULES,
    selection.RULES,
    results.RULES,
    models.RULES,
    requests.RULES,
    challenges.RULES,
    rebuilds.RULES,
)
RULES = {kind: tuple(rule for room in _ROOMS for rule in room.get(kind, ())) for kind in KINDS}
"""By kind of key, what is asked of its records."""
REMOVABLE = {("brief", ORCHESTRATION)}
"""Kinds of keys that chaincode removes, each with its chaincode; all else stays for good."""


@dataclass
class Replay:
    """The project's records, as far as the blocks were read."""

    findings: Findings
    state: State
    observers: tuple[Callable[[View, Written], None], ...] = ()
    """Told of every record that was read, in the order of the blocks."""
    authors: dict[str, bytes] = field(default_factory=dict)
    """By transaction, the digest of its true provenance."""
    _cache: RecordCache = field(default_factory=RecordCache)
    _foreseen: dict[tuple[str, bytes], LedgerRecord] = field(default_factory=dict)
    """By kind and bytes, records of blocks to come."""

    def foresee(self, sets: list[NamespaceSet]) -> None:
        """Read the records now that a transaction to come wrote; what cannot be read is found then."""
        for part in sets:
            for write in part.writes if part.name in NAMESPACES else ():
                kind = str(write.key.name)[1:].partition(keys.SEPARATOR)[0]
                if kind in KINDS and write.value is not None:
                    try:
                        self._foreseen[kind, write.value] = parse_record(kind, write.value)
                    except (AttestreeError, KeyError, TypeError, ValueError, AttributeError):
                        continue

    def forget(self) -> None:
        """Forget what was foreseen."""
        self._foreseen.clear()

    def take(self, committed: Committed) -> None:
        """Judge what a valid transaction wrote into the project's chaincodes."""
        view = View(self.state, committed, self._cache)
        written = self._read(view)
        if view.removed:
            listings.check_removals(self.findings, view)
        if not written:
            return
        self.authors[view.provenance.tx] = _author(view.provenance)
        for item in written:
            self.findings.enter(item.key)
            self._check_authors(view, item)
            callers.check_caller(self.findings, view, item)
            for rule in RULES.get(item.key.kind, ()):
                self._judge(rule, view, item)
            for observe in self.observers:
                observe(view, item)
        self.findings.enter(None)

    def _judge(self, rule: Rule, view: View, item: Written) -> None:
        try:
            rule(self.findings, view, item)
        except AttestreeError as error:
            self.findings.fail("records", f"{item.key}: {error.code}: {error.cause}", view.where)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Parts of a record that are free in form may hold anything that enough endorsers let pass.
            what = f"{item.key} has a part of another form: {type(error).__name__}"
            self.findings.fail("records", what, view.where)

    def _read(self, view: View) -> list[Written]:
        """Read every write into the project's chaincodes, before any of them is judged."""
        found = []
        for part in view.committed.transaction.sets:
            if part.name not in NAMESPACES:
                continue
            for write in part.writes:
                item = self._read_one(view, part.name, str(write.key.name), write.value)
                if item is not None:
                    view.add(item.raw_key, item.record)
                    found.append(item)
        return found

    def _read_one(self, view: View, namespace: str, name: str, value: bytes | None) -> Written | None:
        self.findings.count("records")
        try:
            key = keys.parse(name)
            if value is None:
                if (key.kind, namespace) in REMOVABLE:
                    view.removed.append(name)
                else:
                    self.findings.fail("records", f"{key} was removed", view.where)
                return None
            if KINDS.get(key.kind, ("", None))[0] != namespace:
                self.findings.fail("records", f"{key} stands in {namespace}", view.where)
                return None
            record = self._foreseen.get((key.kind, value)) or parse_record(key.kind, value)
        except AttestreeError as error:
            shown = name.replace("\0", "~").strip("~")[:80]
            self.findings.fail("records", f"{shown}: {error.code}: {error.cause}", view.where)
            return None
        for part, named in zip(keys.KINDS[key.kind], key.parts, strict=True):
            said = getattr(record, part, named)
            if (str(said) if isinstance(said, Digest) else said) != named:
                self.findings.fail("records", f"{key} says that its {part} is {str(said)[:64]}", view.where)
        return Written(key, record, name)

    def _check_authors(self, view: View, item: Written) -> None:
        """Compare every mention of somebody with what is known of the transaction it names."""
        own = view.provenance
        for said in _mentions(item.record):
            true = said == own or self.authors.get(said.tx) == _author(said)
            what = (
                ""
                if true
                else f"{item.key} names {said.identity[:64]} of {said.organisation[:64]} for {said.tx[:16]}"
            )
            self.findings.check("provenance", true, what, view.where)


def _author(said: Provenance) -> bytes:
    plain = (said.organisation, said.identity, said.role, str(said.certificate), said.time, said.tx)
    return hashlib.sha256("\0".join(plain).encode()).digest()


def _mentions(value: Any) -> list[Provenance]:
    """Return every provenance within a record."""
    kind: type = type(value)
    if kind is Provenance or kind is ReasonedProvenance:
        return [value]
    if kind is dict:
        parts = value.values()
    elif kind is tuple:
        parts = (item for item in value if is_dataclass(item))
    else:
        parts = map(getattr, repeat(value), _names(kind))
    return [found for part in parts if type(part) not in _PLAIN for found in _mentions(part)]


_PLAIN = frozenset((str, int, bool, NoneType, Digest))
"""Most of a record, which mentions nobody."""


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The parts of a class that may mention somebody: of records alone, and not of plain values."""
    if kind in _PLAIN or not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind)
    return tuple(part.name for part in fields(kind) if not _is_plain(hints[part.name]))


def _is_plain(hint: Any) -> bool:
    return hint in _PLAIN or (isinstance(hint, type) and issubclass(hint, StrEnum))
