"""Answers a learner's four verbs: verifies what it signed, relays it, brings back what the ledger has."""

import base64
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from executor.launch.plan import Plan
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import wait_until
from executor.ledger.transport import Receipt
from protocol.broker.answers import Offer, SlotsAnswer, TaskAnswer
from protocol.digest import Digest
from protocol.errors import RecordError, StateError
from protocol.identifiers import EstimatorId
from protocol.signing import VerifyKey
from protocol.task.opening import Opening, statement
from protocol.task.result import RoundResult
from protocol.task.state import StateRecord
from protocol.task.statement import Action, verify_statement
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import Tree

CHUNK = 1000
"""How many estimators the ledger returns at once."""


@dataclass
class TaskDesk:
    """The desk of one task; what came of it is kept for the summary."""

    plan: Plan
    opening: Opening
    ledger: Ledger
    store: NodeStore
    seconds: float
    tell: Callable[[str], None]
    shared: Receipt | None = field(default=None, init=False)
    completed: Receipt | None = field(default=None, init=False)
    result: RoundResult | None = field(default=None, init=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)

    @property
    def key(self) -> VerifyKey:
        """The public half of the task's key."""
        return self.opening.public_key

    def task(self) -> TaskAnswer:
        """Say which round to run, in the ledger's words."""
        self.tell("FIT")
        context = self.plan.terms.context
        return TaskAnswer(
            self.plan.terms.task, tuple(context["neighbours"]), context["parameters"], self.opening
        )

    def share(self, signature: bytes, share: bytes) -> None:
        """SHARE: verify the signature here too, so that a broken learner costs no transaction."""
        self._verify(Action.SHARE, share, signature)
        self.plan.dataset.unchanged()
        self.tell(f"SHARE, {len(share)} bytes")
        self.shared = self.ledger.execution.share(self.plan.terms.task, share, signature).receipt

    def slots(self) -> SlotsAnswer:
        """GET: what the neighbours offer; in a synchronous process, once each of them has shared."""
        offers = self._wait_for_offers() if self.plan.terms.context["synchronous"] else self._slots_now()
        ids = sorted({estimator_id for offer in offers for estimator_id in offer.ids})
        self.tell(f"GET, {len(ids)} estimators from {len(offers)} neighbours")
        return SlotsAnswer(tuple(offers), Share(tuple(self._estimators(ids))).to_bytes())

    def complete(self, signature: bytes, result: bytes, state: bytes) -> None:
        """Keep the state, then complete: the ledger must never name a state that is lost."""
        self._verify(Action.COMPLETE, result, signature)
        read = RoundResult.from_bytes(result)
        record = StateRecord.from_bytes(state, self.plan.terms.limits)
        if Digest.of(state) != read.state or record.ensemble_digest != read.ensemble_digest:
            raise RecordError("RECORD_VALUE", "the state is not the one that the result names")
        self.plan.dataset.unchanged()
        self.store.keep_state(state)
        self.tell(f"completing with an ensemble of {len(read.ensemble)}")
        self.completed = self.ledger.execution.complete(self.plan.terms.task, result, signature).receipt
        self.result = read

    def stop(self) -> None:
        """Wait for nobody any more: the learner is gone."""
        self._stopped.set()

    def _verify(self, action: Action, payload: bytes, signature: bytes) -> None:
        said = statement(self.plan.terms.task, self.opening, action, Digest.of(payload))
        verify_statement(self.key, said, signature)

    def _wait_for_offers(self) -> list[Offer]:
        task = self.plan.terms.task
        waiting: list[str] = []

        def check() -> list[Offer] | None:
            found = self.ledger.execution.offers(task)
            if found["missing"]:
                if found["missing"] != waiting:
                    self.tell(f"waiting for {', '.join(found['missing'])}")
                    waiting[:] = found["missing"]
                self._check_running()
                return None
            return _offers(found["slots"])

        return wait_until(
            self.ledger, task.process, check, self.seconds, "the neighbours", stop=self._stopped
        )

    def _slots_now(self) -> list[Offer]:
        neighbours = self.plan.terms.context["neighbours"]
        task = self.plan.terms.task
        found = self.ledger.execution.slots(task.process, task.node)
        return _offers(slot for slot in found if slot["sender"] in neighbours)

    def _check_running(self) -> None:
        task = self.plan.terms.task
        status = self.ledger.orchestration.task_context(task)["status"]
        if status != "running":
            raise StateError("PROCESS_NOT_RUNNING", f"process {task.process} is {status}")

    def _estimators(self, ids: list[EstimatorId]) -> list[Estimator]:
        """Fetch estimators by id; those of an initial model are with the model."""
        found: dict[EstimatorId, Estimator] = {}
        for first in range(0, len(ids), CHUNK):
            answer = self.ledger.execution.estimators(
                self.plan.terms.task.process, ids[first : first + CHUNK]
            )
            found |= self._parsed(answer["estimators"])
        initial = self.plan.terms.context["parameters"]["initial_model"]
        if len(found) < len(ids) and initial is not None:
            found = self._parsed(self.ledger.models.trees(initial["process"], initial["node"])) | found
        lost = [str(estimator_id) for estimator_id in ids if estimator_id not in found]
        if lost:
            raise StateError("ESTIMATOR_UNKNOWN", f"{', '.join(lost[:5])} is offered and not on the ledger")
        return [found[estimator_id] for estimator_id in ids]

    def _parsed(self, entries: Iterable[dict[str, Any]]) -> dict[EstimatorId, Estimator]:
        limits, found = self.plan.terms.limits, {}
        for entry in entries:
            tree = Tree.from_bytes(base64.b64decode(entry["tree"], validate=True), limits)
            estimator_id = EstimatorId.parse(entry["id"])
            if str(tree.digest) != entry["digest"]:
                raise RecordError("PAYLOAD_DIGEST", f"{estimator_id} is {tree.digest}, not {entry['digest']}")
            found[estimator_id] = Estimator(estimator_id, tree)
        return found


def _offers(slots: Iterable[dict[str, Any]]) -> list[Offer]:
    offers = [
        Offer.from_dict({name: slot[name] for name in ("sender", "iteration", "share", "ids")})
        for slot in slots
    ]
    return sorted(offers, key=lambda offer: offer.sender)
