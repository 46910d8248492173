"""The records of the ledger as a transaction found them, and as it leaves them."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar, cast

from executor.audit.chain import Committed
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.rwset import Write
from executor.audit.fabric.state import Key, State
from protocol import canonical
from protocol.agreement import collections
from protocol.agreement.course import Change
from protocol.agreement.plan import Plan
from protocol.agreement.progress import Progress
from protocol.errors import AttestreeError, RecordError
from protocol.ledger import keys
from protocol.ledger.challenges import AnswerRecord, ChallengeRecord, OpenChallenges, VerdictRecord
from protocol.ledger.changes import (
    AbortVote,
    AbsenceVote,
    AcceptanceRecord,
    AgreementRecord,
    AskCount,
    AskRecord,
    ChangeRecord,
    OwnWord,
)
from protocol.ledger.common import Provenance
from protocol.ledger.estimators import (
    CreationRecord,
    EstimatorRecord,
    OfferRecord,
    TakenRecord,
    TreeRecord,
    TwinRecord,
)
from protocol.ledger.images import ImageNameRecord, ImageRecord, RebuildRecord
from protocol.ledger.models import AccessRecord, MemberRecord, ModelRecord
from protocol.ledger.processes import (
    BriefRecord,
    OpenProcesses,
    ProcessRecord,
    ProgressRecord,
    TaskContext,
)
from protocol.ledger.record import LedgerRecord
from protocol.ledger.requests import AccessRequest, AccessVote, RequestCount
from protocol.ledger.tasks import (
    Head,
    ImageUseRecord,
    InitialRecord,
    InitialTreeRecord,
    RefusalRecord,
    ResultRecord,
    ShareRecord,
    SlotRecord,
    TaskKeyRecord,
    TaskRecord,
)
from protocol.task.opening import TaskId
from protocol.values import dataclass

R = TypeVar("R", bound=LedgerRecord)
W = TypeVar("W", bound=OwnWord)

IMAGE, ORCHESTRATION, EXECUTION, MODEL = "image", "orchestration", "execution-record", "model"

KINDS: dict[str, tuple[str, type[LedgerRecord]]] = {
    "image": (IMAGE, ImageRecord),
    "imagename": (IMAGE, ImageNameRecord),
    "rebuild": (IMAGE, RebuildRecord),
    "process": (ORCHESTRATION, ProcessRecord),
    "brief": (ORCHESTRATION, BriefRecord),
    "openprocesses": (ORCHESTRATION, OpenProcesses),
    "progress": (ORCHESTRATION, ProgressRecord),
    "acceptance": (ORCHESTRATION, AcceptanceRecord),
    "asks": (ORCHESTRATION, AskCount),
    "ask": (ORCHESTRATION, AskRecord),
    "agreement": (ORCHESTRATION, AgreementRecord),
    "change": (ORCHESTRATION, ChangeRecord),
    "absence": (ORCHESTRATION, AbsenceVote),
    "departure": (ORCHESTRATION, AbsenceVote),
    "abort": (ORCHESTRATION, AbortVote),
    "task": (EXECUTION, TaskRecord),
    "estimator": (EXECUTION, EstimatorRecord),
    "sharedtree": (EXECUTION, TreeRecord),
    "slot": (EXECUTION, SlotRecord),
    "share": (EXECUTION, ShareRecord),
    "result": (EXECUTION, ResultRecord),
    "head": (EXECUTION, Head),
    "creation": (EXECUTION, CreationRecord),
    "offer": (EXECUTION, OfferRecord),
    "taken": (EXECUTION, TakenRecord),
    "twin": (EXECUTION, TwinRecord),
    "initial": (EXECUTION, InitialRecord),
    "initialtree": (EXECUTION, InitialTreeRecord),
    "refusal": (EXECUTION, RefusalRecord),
    "imageuse": (EXECUTION, ImageUseRecord),
    "taskkey": (EXECUTION, TaskKeyRecord),
    "challenge": (EXECUTION, ChallengeRecord),
    "answer": (EXECUTION, AnswerRecord),
    "verdict": (EXECUTION, VerdictRecord),
    "openchallenges": (EXECUTION, OpenChallenges),
    "model": (MODEL, ModelRecord),
    "access": (MODEL, AccessRecord),
    "requests": (MODEL, RequestCount),
    "request": (MODEL, AccessRequest),
    "decision": (MODEL, AccessVote),
    "tree": (MODEL, TreeRecord),
    "member": (MODEL, MemberRecord),
}
"""By kind of key, the chaincode that may write it and the record that stands under it."""
NAMESPACES = (IMAGE, ORCHESTRATION, EXECUTION, MODEL)


@dataclass(frozen=True, slots=True)
class Written:
    """A record that a transaction wrote, under the key that says what it is."""

    key: keys.Key
    record: LedgerRecord
    raw_key: str


def parse_record(kind: str, raw: bytes) -> LedgerRecord:
    """Read a stored record of a kind in its one form."""
    made = KINDS[kind][1]
    return made.from_dict(canonical.decode(raw, max_bytes=made.max_bytes))


class View:
    """What a transaction wrote, on the state before its block; other transactions of the block are not seen.

    That is what the chaincode saw: had an earlier one changed what it read, it would not be valid.
    """

    def __init__(self, state: State, committed: Committed, cache: "RecordCache") -> None:
        self.committed = committed
        self.where = str(committed.position)
        """Its place, for findings."""
        self.written: dict[str, LedgerRecord] = {}
        self.removed: list[str] = []
        """The keys that it removed, of kinds that may be."""
        self.contexts: dict[TaskId, TaskContext] = {}
        """What tasks are checked against, as far as it was asked for (context.py)."""
        self._state = state
        self._cache = cache
        self._provenance: Provenance | None = None

    @property
    def creator(self) -> Identity:
        """Who submitted it."""
        return self.committed.transaction.creator

    @property
    def now(self) -> datetime:
        """When, as its client claims."""
        return self.committed.transaction.time or datetime.min.replace(tzinfo=UTC)

    def add(self, key: str, record: LedgerRecord) -> None:
        """Note what the transaction wrote."""
        self.written[key] = record

    def before(self, key: str, kind: type[R]) -> R | None:
        """Return the record that stood under a key before the block."""
        name = key[1 : key.index(keys.SEPARATOR, 1)]
        place = Key(KINDS[name][0], "", key)
        return cast("R | None", self._cache.get(self._state, place, name, kind))

    def find(self, key: str, kind: type[R]) -> R | None:
        """Return the record that the transaction leaves under a key."""
        found = self.written.get(key)
        return found if isinstance(found, kind) else self.before(key, kind)

    def of_kind(self, kind: type[R]) -> Iterator[R]:
        """Iterate over what the transaction wrote of one kind."""
        return (record for record in self.written.values() if isinstance(record, kind))

    def has_mark(self, chaincode: str, organisation: str, key: str, mark: str) -> bool:
        """Whether the transaction wrote this mark for a key into the organisation's own collection."""
        place = Key(chaincode, collections.own(organisation), hashlib.sha256(key.encode()).digest())
        wanted = Write(place, hashlib.sha256(mark.encode()).digest())
        return any(wanted in part.hashed_writes for part in self.committed.transaction.sets)

    def had_word(self, chaincode: str, organisation: str, key: str, kind: type[W]) -> W | None:
        """Return what an organisation had said before the block, if it vouched for it."""
        found = self.before(key, kind)
        if found is not None and self.had_mark(chaincode, organisation, key, found.mark):
            return found
        return None

    def had_mark(self, chaincode: str, organisation: str, key: str, mark: str) -> bool:
        """Whether the organisation's own collection held this mark for a key before the block."""
        return is_vouched(self._state, chaincode, organisation, key, mark)

    def process(self, name: str) -> ProcessRecord:
        """Return the process that a record belongs to, or raise."""
        found = self.find(keys.process(name), ProcessRecord)
        if found is None:
            raise RecordError("RECORD_VALUE", f"process {name} is not on the ledger")
        return found

    def plan(self, name: str) -> Plan:
        """Return what holds in each iteration of a process."""
        return self._cache.plan(self.process(name), self.change)

    def progress(self, record: ProcessRecord) -> tuple[Progress, dict[str, ProgressRecord]]:
        """Return how far each node of a process was before the block, under the plan of a record of it."""
        plan = self._cache.plan(record, self.change)
        found = {
            node: self.before(keys.progress(record.process, node), ProgressRecord) for node in plan.nodes
        }
        records = {node: done for node, done in found.items() if done is not None}
        return Progress(plan, {node: done.iteration for node, done in records.items()}), records

    def change(self, process: str, number: int) -> Change:
        """Return a change of a process that holds, or raise."""
        found = self.find(keys.change(process, number), ChangeRecord)
        if found is None:
            raise RecordError("RECORD_VALUE", f"process {process} has no change {number}")
        return found.change

    @property
    def provenance(self) -> Provenance:
        """Who did it and when, as the certificate and the header of the transaction say."""
        if self._provenance is None:  # no cached property: that takes a lock, for each transaction
            self._provenance = self._read_provenance()
        return self._provenance

    def _read_provenance(self) -> Provenance:
        found = self.committed.transaction
        time = "" if found.time is None else found.time.isoformat(timespec="microseconds")[:26] + "Z"
        return Provenance(
            found.creator.organisation.msp_id,
            found.creator.name[:64],
            found.creator.attributes.get("role", ""),
            found.creator.digest,
            time,
            found.tx_id,
        )


def is_vouched(state: State, chaincode: str, organisation: str, key: str, mark: str) -> bool:
    """Whether an organisation's own collection holds this mark for a key."""
    place = Key(chaincode, collections.own(organisation), hashlib.sha256(key.encode()).digest())
    return state.value(place) == hashlib.sha256(mark.encode()).digest()


class RecordCache:
    """Records read last, by the version that they stand in; bounded."""

    SIZE = 2048

    def __init__(self) -> None:
        self._records: dict[tuple[Key, object], LedgerRecord] = {}
        self._plans: dict[int, tuple[ProcessRecord, Plan]] = {}

    def get(self, state: State, key: Key, name: str, kind: type[LedgerRecord]) -> LedgerRecord | None:
        """Return the record under a key; None without one, or if it is not of its kind."""
        version = state.version(key)
        if version is None:
            return None
        place = (key, version)
        found = self._records.get(place)
        if found is None:
            try:
                found = parse_record(name, state.value(key) or b"")
            except AttestreeError:
                return None
            if len(self._records) >= self.SIZE:
                del self._records[next(iter(self._records))]
            self._records[place] = found
        return found if isinstance(found, kind) else None

    def plan(self, process: ProcessRecord, change_of: Callable[[str, int], Change]) -> Plan:
        """Return the plan of a process record, computed once for each."""
        known = self._plans.get(id(process))
        if known is None or known[0] is not process:
            if len(self._plans) >= self.SIZE:
                self._plans.clear()
            read = partial(change_of, process.process)
            known = (process, Plan(process.specification, process.course, read))
            self._plans[id(process)] = known
        return known[1]
