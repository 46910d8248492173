"""Answers a learner's four verbs: verifies what it signed, relays it, brings back what the ledger has."""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field

from executor.launch.plan import TaskPlan
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import wait_until
from executor.ledger.transport import Receipt
from protocol.broker.answers import SlotsAnswer, TaskAnswer
from protocol.digest import Digest
from protocol.errors import RecordError, StateError
from protocol.identifiers import EstimatorId
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.processes import TaskContext
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.result import Offer, TaskResult, check_kind
from protocol.task.state import StateRecord
from protocol.task.statement import Action, verify_statement
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share


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
        self.shared = self.ledger.execution.share(self.id, share, signature, self.context.audience).receipt

    def slots(self) -> SlotsAnswer:
        """GET: what the neighbours offer; in a synchronous process, once each of them has shared."""
        offers = self._wait_for_offers() if self.context.synchronous else self._slots_now()
        ids = sorted({estimator_id for offer in offers for estimator_id in offer.ids})
        self.tell(f"GET, {len(ids)} estimators from {len(offers)} neighbours")
        return SlotsAnswer(
            tuple(offers), Share(tuple(offered_estimators(self.ledger, self.context, ids))).to_bytes()
        )

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

    def _wait_for_offers(self) -> list[Offer]:
        waiting: tuple[str, ...] = ()

        def check() -> list[Offer] | None:
            nonlocal waiting
            found = self.ledger.execution.offers(self.id)
            if not found.missing:
                return _by_sender(found.slots)
            if not waiting:
                away.enter_context(self.lent())
            if found.missing != waiting:
                self.tell(f"waiting for {', '.join(found.missing)}")
                waiting = found.missing
            self.ledger.orchestration.task_context(self.id).check_running()
            return None

        with ExitStack() as away:
            return wait_until(
                self.ledger, self.id.process, check, self.seconds, "the neighbours", stop=self._stopped
            )

    def _slots_now(self) -> list[Offer]:
        found = self.ledger.execution.slots(self.id.process, self.id.node)
        return _by_sender(slot.offer for slot in found if slot.sender in self.context.neighbours)


def offered_estimators(ledger: Ledger, context: TaskContext, ids: list[EstimatorId]) -> list[Estimator]:
    """Fetch estimators by id; those of an initial model are with the model."""
    found = _decoded(context, ledger.execution.estimators(context.process, ids).estimators)
    initial = context.parameters.initial_model
    if len(found) < len(ids) and initial is not None:
        trees = ledger.models.trees(initial.process, initial.node, used_by=context.process)
        found = _decoded(context, trees) | found
    lost = [estimator_id for estimator_id in ids if estimator_id not in found]
    if lost:
        raise _lost(ledger, context, lost)
    return [found[estimator_id] for estimator_id in ids]


def _lost(ledger: Ledger, context: TaskContext, ids: list[EstimatorId]) -> StateError:
    """Say what became of trees that are offered and cannot be read: their digests outlive them."""
    names = ", ".join(map(str, ids[:5]))
    if ledger.execution.digests(context.process, ids).estimators:
        return StateError("TREES_GONE", f"{names} is offered and no longer kept by the peers")
    return StateError("ESTIMATOR_UNKNOWN", f"{names} is offered and not on the ledger")


def _decoded(context: TaskContext, estimators: Iterable[SharedEstimator]) -> dict[EstimatorId, Estimator]:
    return {shared.id: shared.decode(context.limits) for shared in estimators}


def _by_sender(offers: Iterable[Offer]) -> list[Offer]:
    return sorted(offers, key=lambda offer: offer.sender)
