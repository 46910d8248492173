"""What the execution-record chaincode stores and answers about tasks."""

from datetime import datetime
from typing import Annotated, ClassVar

from protocol.agreement.lifecycle import TaskState
from protocol.agreement.parameters import InitialModel
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.common import EnsembleMember, ImageVersion, Provenance, Signed
from protocol.ledger.record import ABSENT, SMALL, LedgerRecord, Raw
from protocol.task.opening import Opening, TaskId
from protocol.task.output import Output
from protocol.task.result import Offer, SlotRead, TaskResult
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Closure(LedgerRecord):
    """How a task ended without a result."""

    code: Annotated[str, "a stable code for the cause"]
    by: Annotated[Provenance, "who closed it"]
    reason: Annotated[str | None, "the cause in words", ABSENT] = None
    evidence: Annotated[Raw | None, "what was expected and what was found", ABSENT] = None


@dataclass(frozen=True, slots=True)
class TaskRecord(LedgerRecord):
    """The evidence of one task: its commitment, its state, and what was signed under its key."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    organisation: Annotated[str, "the MSP id of the node"]
    state: Annotated[TaskState, "where the task stands"]
    attempt: Annotated[int, "1 for the first launch, one more for each later one"]
    after: Annotated[TaskState, "the state this attempt followed; absent for the first"] = TaskState.ABSENT
    image: Annotated[ImageVersion | None, "the image, null for a refusal before opening"] = None
    opening: Annotated[Opening | None, "the commitment (docs/formats/task-v1.md)"] = None
    proof: Annotated[str | None, "the key's signature over the opening, in hex: its holder opened it"] = None
    inputs_digest: Annotated[
        Digest | None, "the digest of state and data that the task's signatures cover"
    ] = None
    opened: Annotated[Provenance | None, "who opened it"] = None
    expires: Annotated[str | None, "until when results are accepted"] = None
    share: Annotated[Signed | None, "the signature of the SHARE"] = None
    result: Annotated[Signed | None, "the signature of the result"] = None
    closed: Annotated[Closure | None, "why it ended without result"] = None

    @property
    def id(self) -> TaskId:
        """Which task."""
        return TaskId(self.process, self.node, self.iteration)

    @property
    def is_under_way(self) -> bool:
        """Whether its key can still sign results."""
        return self.state in (TaskState.OPEN, TaskState.SHARED)

    def is_expired(self, now: datetime) -> bool:
        """Whether the time the process allows a task is over."""
        return self.expires is not None and now > datetime.fromisoformat(self.expires)


@dataclass(frozen=True, slots=True)
class ShareRecord(LedgerRecord):
    """What a node offered in one iteration, and to whom."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = 2 << 20

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node that offers"]
    iteration: Annotated[int, "the iteration"]
    organisation: Annotated[str, "the MSP id of the node"]
    attempt: Annotated[int, "which launch of the task offered them first"]
    estimators: Annotated[tuple[EnsembleMember, ...], "what is offered, best first, with digests"]
    created: Annotated[tuple[EstimatorId, ...], "those of them that this share put on the ledger"]
    recipients: Annotated[tuple[str, ...], "the neighbours in this iteration"]
    signed: Annotated[Signed, "the signature of that launch's key"]

    @property
    def ids(self) -> tuple[EstimatorId, ...]:
        """The estimators offered, best first."""
        return tuple(member.id for member in self.estimators)


@dataclass(frozen=True, slots=True)
class SlotRecord(LedgerRecord):
    """A slot: what one sender offered one recipient last."""

    versioned: ClassVar[bool] = True

    process: Annotated[str, "the process id"]
    recipient: Annotated[str, "whose slot it is"]
    sender: Annotated[str, "who offers"]
    iteration: Annotated[int, "the sender's iteration"]
    share: Annotated[Digest, "digest of the share"]
    ids: Annotated[tuple[EstimatorId, ...], "the estimators offered, best first"]

    @property
    def offer(self) -> Offer:
        """What the slot offers."""
        return Offer(self.sender, self.iteration, self.share, self.ids)


@dataclass(frozen=True, slots=True)
class ResultRecord(LedgerRecord):
    """What a completed task came to."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = 8 << 20

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    organisation: Annotated[str, "the MSP id of the node"]
    attempt: Annotated[int, "which launch completed it"]
    image: Annotated[ImageVersion | None, "the image that ran"]
    share: Annotated[Digest | None, "digest of what it offered, null for a task without neighbours"]
    created: Annotated[tuple[EnsembleMember, ...], "every tree of this FIT, shared or not"]
    slots: Annotated[
        tuple[SlotRead, ...],
        "sender, iteration and share of each slot read, what was taken of it, what refused and why",
    ]
    ensemble: Annotated[tuple[EnsembleMember, ...], "the estimators after CROP, by ascending id"]
    ensemble_digest: Annotated[Digest, "SHA-256 over them"]
    state: Annotated[Digest, "digest of the state the task left; the next task must start from it"]
    metrics: Annotated[Raw, "figures of the task, fractional ones as text"]
    signed: Annotated[Signed, "the task key's signature"]
    output: Annotated[
        Output | None, "what a step that does not learn comes to (docs/formats/output-v1.md)", ABSENT
    ] = None

    def rebuilt(self, first: int) -> TaskResult:
        """Put the result together again as its task signed it, or raise where no task can have.

        `first` is the counter that the node's next estimator had before the task.
        """
        return TaskResult(
            first,
            tuple(member.digest for member in self.created),
            self.slots,
            tuple(member.id for member in self.ensemble),
            self.ensemble_digest,
            self.state,
            dict(self.metrics),
            self.output,
        )


@dataclass(frozen=True, slots=True)
class TaskEvidence(TaskRecord):
    """A task with what it offered and what it came to."""

    offered: Annotated[ShareRecord | None, "what it offered"] = None
    outcome: Annotated[ResultRecord | None, "what it came to"] = None


@dataclass(frozen=True, slots=True)
class Head(LedgerRecord):
    """Where a node stands after its last completed task: what its next task has to continue."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    iteration: Annotated[int, "the node's last completed iteration"]
    next_counter: Annotated[int, "the counter of its next estimator"]
    state: Annotated[Digest, "digest of the state that iteration left"]
    ensemble_digest: Annotated[Digest, "digest of the ensemble it left"]
    data: Annotated[
        Digest | None,
        "the data that its tasks commit to where rows are held out; absent before the first such task",
        ABSENT,
    ] = None


HISTORIES: dict[str, type[LedgerRecord]] = {
    "task": TaskRecord,
    "slot": SlotRecord,
    "share": ShareRecord,
    "result": ResultRecord,
    "head": Head,
}
"""The kinds of keys whose history the execution record shows, each with its record."""


@dataclass(frozen=True, slots=True)
class Standing(LedgerRecord):
    """Where a node stands; null throughout before its first completed task."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int | None, "its last completed iteration"] = None
    next_counter: Annotated[int | None, "the counter of its next estimator"] = None
    state: Annotated[Digest | None, "digest of the state that iteration left"] = None
    ensemble_digest: Annotated[Digest | None, "digest of the ensemble it left"] = None
    version: Annotated[int | None, "1, once there is a completed task", ABSENT] = None


@dataclass(frozen=True, slots=True)
class Offers(LedgerRecord):
    """What the neighbours offered a node in exactly one iteration, and who has not shared yet."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the recipient"]
    iteration: Annotated[int, "the iteration"]
    slots: Annotated[tuple[Offer, ...], "what each neighbour offers: sender, iteration, share and ids"]
    missing: Annotated[tuple[str, ...], "the neighbours that have not shared yet"]


@dataclass(frozen=True, slots=True)
class FirstShare(LedgerRecord):
    """Who first shared in a task, and when; null before."""

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    by: Annotated[Provenance | None, "the transaction of the first launch that shared"] = None


@dataclass(frozen=True, slots=True)
class RefusalRecord(LedgerRecord):
    """The evidence of a start that a node refused."""

    versioned: ClassVar[bool] = True

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    organisation: Annotated[str, "the MSP id of the node"]
    attempt: Annotated[int, "which launch was refused"]
    code: Annotated[str, "a stable code for the cause"]
    reason: Annotated[str, "the cause in words"]
    evidence: Annotated[Raw, "what was expected and what was found"]
    by: Annotated[Provenance, "who refused"]


@dataclass(frozen=True, slots=True)
class TaskKeyRecord(LedgerRecord):
    """The one task that has a public key."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    attempt: Annotated[int, "which launch"]


@dataclass(frozen=True, slots=True)
class InitialRecord(LedgerRecord):
    """The published model that a process started from, as it was and to whom it was open at the start."""

    versioned: ClassVar[bool] = True

    process: Annotated[str, "the process id"]
    model: Annotated[InitialModel, "process, node and digest of the model"]
    organisations: Annotated[tuple[str, ...], "the consortium at the start: who may read it while it runs"]
    next_counters: Annotated[dict[str, int], "by creator, the counter that follows those of the model"]
    by: Annotated[Provenance, "who started the process"]


@dataclass(frozen=True, slots=True)
class InitialTreeRecord(LedgerRecord):
    """That an estimator is in the model that a process started from."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    digest: Annotated[Digest, "SHA-256 of the tree's bytes"]


@dataclass(frozen=True, slots=True)
class ImageUseRecord(LedgerRecord):
    """That a launch of a task committed to an image version."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    attempt: Annotated[int, "which launch of the task"]
    organisation: Annotated[str, "the MSP id of the node"]
    image_id: Annotated[Digest, "what it committed to run"]
    tx: Annotated[str, "the transaction that opened the task"]


@dataclass(frozen=True, slots=True)
class ShareReceipt(LedgerRecord):
    """What a SHARE did; one that was there already changes nothing and says only that."""

    replayed: Annotated[bool, "whether this very share was on the ledger already"]
    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node that offers"]
    iteration: Annotated[int, "the iteration"]
    share: Annotated[Digest, "digest of the share"]
    created: Annotated[tuple[EstimatorId, ...] | None, "the estimators it put on the ledger", ABSENT] = None
    recipients: Annotated[tuple[str, ...] | None, "the neighbours it offers them to", ABSENT] = None


@dataclass(frozen=True, slots=True)
class CompletionReceipt(LedgerRecord):
    """What a completion did; one that was there already changes nothing and says only that."""

    replayed: Annotated[bool, "whether this very result was on the ledger already"]
    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the iteration"]
    result: Annotated[Digest, "digest of the result"]
    ensemble_digest: Annotated[Digest | None, "digest of the ensemble after CROP", ABSENT] = None
    next_counter: Annotated[int | None, "the counter of the node's next estimator", ABSENT] = None
