"""Answers a learner's four verbs: verifies what it signed, relays it, brings back what the ledger has."""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from executor.launch.neighbours import NeighbourWait
from executor.launch.parts import Part, PartTimes
from executor.launch.plan import TaskPlan
from executor.launch.store import NodeStore
from executor.launch.trees import KnownTrees
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.transport import Receipt
from protocol.broker.answers import SlotsAnswer, TaskAnswer
from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.ledger.processes import TaskContext
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.result import Offer, TaskResult, check_kind
from protocol.task.state import StateRecord
from protocol.task.statement import Action, verify_statement
from protocol.trees.limits import FORMAT_MAX_OFFERED
from protocol.trees.share import Share, ShareLimits


@dataclass
class TaskRelay:
    """Stands between the learner of one task and the ledger; what came of it is kept for the summary."""

    plan: TaskPlan
    opening: Opening
    ledger: Ledger
    store: NodeStore
    seconds: float
    tell: Callable[[str], None]
    lent: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered while neighbours are waited for: others may work meanwhile."""
    trees: KnownTrees = field(default_factory=KnownTrees)
    parts: PartTimes = field(default_factory=PartTimes)
    """Where the task's time goes."""
    shared: Receipt | None = field(default=None, init=False)
    completed: Receipt | None = field(default=None, init=False)
    result: TaskResult | None = field(default=None, init=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)

    @property
    def context(self) -> TaskContext:
        """What the process agreed on for the task."""
        return self.plan.context

    @property
    def id(self) -> TaskId:
        """Which task."""
        return self.plan.task.id

    def task(self) -> TaskAnswer:
        """Say which task to run, in the ledger's words."""
        kind = self.context.step.kind
        self.tell("FIT" if kind.learns else kind.value)
        return TaskAnswer(self.id, self.context.neighbours, self.context.parameters.to_dict(), self.opening)

    def share(self, signature: bytes, share: bytes) -> None:
        """SHARE: verify the signature here too, so that a broken learner costs no transaction."""
        self._verify(Action.SHARE, share, signature)
        self.plan.dataset.unchanged()
        self.tell(f"SHARE, {len(share)} bytes")
        with self.parts.timed(Part.COMMITS):
            audience = self.context.audience
            self.shared = self.ledger.execution.share(self.id, share, signature, audience).receipt
        offered = Share.from_bytes(share, ShareLimits(FORMAT_MAX_OFFERED, len(share)), self.context.limits)
        self.trees.add(self.id.process, offered.estimators)

    def slots(self) -> SlotsAnswer:
        """GET: what the neighbours offer; in a synchronous process, once each of them has shared."""
        offers = self._offers_of_all() if self.context.synchronous else self._slots_now()
        ids = sorted({estimator_id for offer in offers for estimator_id in offer.ids})
        self.tell(f"GET, {len(ids)} estimators from {len(offers)} neighbours")
        with self.parts.timed(Part.READING):
            trees = self.trees.offered(self.ledger, self.context, ids)
            return SlotsAnswer(tuple(offers), Share(tuple(trees)).to_bytes())

    def complete(self, signature: bytes, result: bytes, state: bytes) -> None:
        """Keep the state, then complete: the ledger must never name a state that is lost."""
        self._verify(Action.COMPLETE, result, signature)
        read = TaskResult.from_bytes(result)
        check_kind(read, self.context.parameters, self.id.node)
        record = StateRecord.from_bytes(state, self.context.limits)
        self._check_state(record, Digest.of(state), read)
        self.plan.dataset.unchanged()
        self.store.keep_state(state)
        came_to = f"an ensemble of {len(read.ensemble)}" if read.output is None else f"{read.output.type}"
        self.tell(f"completing with {came_to}")
        with self.parts.timed(Part.COMMITS):
            self.completed = self.ledger.execution.complete(self.id, result, signature).receipt
        self.result = read

    def _check_state(self, record: StateRecord, digest: Digest, result: TaskResult) -> None:
        """Refuse a state that the node's next task cannot start from: the ledger would name it for good."""
        if digest != result.state or record.ensemble_digest != result.ensemble_digest:
            raise RecordError("RECORD_VALUE", "the state is not the one that the result names")
        place = TaskId(self.id.process, self.id.node, self.id.iteration + 1)
        if TaskId(record.process, record.node, record.iteration) != place:
            raise RecordError("RECORD_VALUE", f"the state is not for task {place}, which comes next")
        if record.next_counter != result.first + len(result.created):
            raise RecordError("RECORD_VALUE", "the state counts other estimators than the result created")

    def stop(self) -> None:
        """Wait for nobody any more: the learner is gone."""
        self._stopped.set()

    def _verify(self, action: Action, payload: bytes, signature: bytes) -> None:
        said = statement(self.id, self.opening, action, Digest.of(payload))
        verify_statement(self.opening.public_key, said, signature)

    def _offers_of_all(self) -> list[Offer]:
        wait = NeighbourWait(self.ledger, self.id, self.tell, self.lent)
        with self.parts.timed(Part.WAITING):
            return _by_sender(wait.offers(self.seconds, self._stopped))

    def _slots_now(self) -> list[Offer]:
        found = self.ledger.execution.slots(self.id.process, self.id.node)
        return _by_sender(slot.offer for slot in found if slot.sender in self.context.neighbours)


def _by_sender(offers: Iterable[Offer]) -> list[Offer]:
    return sorted(offers, key=lambda offer: offer.sender)
