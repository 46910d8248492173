"""What the orchestration chaincode stores and answers."""

from dataclasses import field
from typing import Annotated, ClassVar, Self

from protocol.agreement.course import Course
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.parameters import InitialModel, TaskParameters
from protocol.agreement.plan import Plan
from protocol.agreement.process import ModelAccess, Specification
from protocol.agreement.step_kind import StepKind
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger import keys
from protocol.ledger.common import Provenance, ReasonedProvenance
from protocol.ledger.record import ABSENT, SMALL, LedgerRecord
from protocol.task.opening import Opening, TaskId
from protocol.task.result import NO_ENSEMBLE
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class ProcessRecord(LedgerRecord):
    """A process, from the proposal to the end."""

    versioned: ClassVar[bool] = True

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where it stands"]
    specification: Annotated[
        Specification, "what was agreed, with every default written out (docs/formats/process-v2.md)"
    ]
    specification_digest: Annotated[Digest, "SHA-256 of the canonical specification"]
    created: Annotated[Provenance, "who proposed it"]
    accepted: Annotated[
        dict[str, Provenance], "who accepted it, by organisation; while it is proposed, in records apart"
    ] = field(default_factory=dict)
    started: Annotated[Provenance | None, "who started it"] = None
    ended: Annotated[ReasonedProvenance | None, "who ended it, and why"] = None
    course: Annotated[Course, "what its changes come to (docs/formats/process-v2.md)"] = field(
        default_factory=Course
    )

    @property
    def plan(self) -> Plan:
        """Who takes part in each iteration; a topology or an image that was changed is read apart."""
        return Plan(self.specification, self.course)

    @property
    def missing(self) -> tuple[str, ...]:
        """The organisations that have yet to accept, ascending."""
        return tuple(name for name in self.specification.organisations if name not in self.accepted)


@dataclass(frozen=True, slots=True)
class ProgressRecord(LedgerRecord):
    """How far a node is in a process."""

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    process: Annotated[str, "the process id"]
    node: Annotated[str, "the node"]
    iteration: Annotated[int, "the last iteration the node completed"]
    updated: Annotated[Provenance, "who completed it"]


@dataclass(frozen=True, slots=True)
class ProcessBrief(LedgerRecord):
    """A process in a list."""

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where it stands"]
    description: Annotated[str, "what it is for, in its proposer's words"]
    organisations: Annotated[tuple[str, ...], "the consortium, those included that joined with a node"]
    created: Annotated[Provenance, "who proposed it"]
    ended: Annotated[ReasonedProvenance | None, "who ended it, and why"]


@dataclass(frozen=True, slots=True)
class BriefRecord(ProcessBrief):
    """A process as lists have it, apart from its specification, which may be large."""

    versioned: ClassVar[bool] = True

    @classmethod
    def of(cls, record: ProcessRecord) -> Self:
        """Make the brief that stands beside a process record."""
        return cls(
            record.process,
            record.status,
            record.specification.description,
            record.plan.consortium,
            record.created,
            record.ended,
        )

    @property
    def key(self) -> str:
        """Where it stands while the process has this status."""
        return keys.brief(self.status.value, self.process)

    @property
    def shown(self) -> ProcessBrief:
        """The process as a list shows it."""
        return ProcessBrief(
            self.process, self.status, self.description, self.organisations, self.created, self.ended
        )


@dataclass(frozen=True, slots=True)
class OpenProcesses(LedgerRecord):
    """What an organisation proposed and found open when it proposed last, on one of its shelves.

    Each process has its shelf by its id, so that two who propose at the same time rarely write one key.
    """

    versioned: ClassVar[bool] = True
    max_bytes: ClassVar[int] = SMALL

    organisation: Annotated[str, "the MSP id of who proposed them"]
    shelf: Annotated[int, "which of its 256 shelves"]
    processes: Annotated[tuple[str, ...], "their ids, 16 at most"]


SHELVES = 256
MAX_ON_SHELF = 16


def shelf_of(process: str) -> int:
    """Return the shelf on which a process counts against its proposer."""
    return Digest.of(process.encode()).raw[0] % SHELVES


def open_places(process: str) -> tuple[str, ...]:
    """Return the keys of which one is there while a process is proposed or runs."""
    return tuple(keys.brief(state.value, process) for state in (ProcessState.PROPOSED, ProcessState.RUNNING))


@dataclass(frozen=True, slots=True)
class NodeProgress(LedgerRecord):
    """Where one node of a process stands."""

    node: Annotated[str, "the node"]
    organisation: Annotated[str, "its organisation"]
    completed: Annotated[int | None, "its last completed iteration"]
    next: Annotated[int | None, "the iteration it has to do next; null when it has done all of its own"]
    left: Annotated[int | None, "the iteration from which it is gone"]
    updated: Annotated[str | None, "when it completed its last iteration"]


@dataclass(frozen=True, slots=True)
class StepPlace(LedgerRecord):
    """The step that an iteration belongs to."""

    name: Annotated[str, "the step's name"]
    kind: Annotated[StepKind, "what its tasks do, and what they come to"]
    first: Annotated[int, "its first iteration"]
    iterations: Annotated[int, "how many it has"]
    opened: Annotated[bool, "whether its tasks may be opened; a coordinator, if there is one, sees to it"]


@dataclass(frozen=True, slots=True)
class ProcessStatus(LedgerRecord):
    """Where a process and each of its nodes stand."""

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where it stands"]
    consortium: Annotated[tuple[str, ...], "the organisations, those included that joined with a node"]
    present: Annotated[tuple[str, ...], "those of them that have a say: neither left nor left out"]
    accepted: Annotated[tuple[str, ...], "the organisations that have accepted it"]
    missing: Annotated[tuple[str, ...], "those that have yet to"]
    iteration: Annotated[int | None, "the earliest that some node has to do; null when all are done"]
    iterations: Annotated[int, "how many iterations there are"]
    nodes: Annotated[tuple[NodeProgress, ...], "each node, by name"]
    steps: Annotated[tuple[StepPlace, ...], "its steps, in their order"] = ()
    coordinator: Annotated[str | None, "the organisation that opens steps; null where nobody has to"] = None

    def next_of(self, node: str) -> int | None:
        """Return the iteration a node has to do next, None when nothing is left or the node is unknown."""
        return next((entry.next for entry in self.nodes if entry.node == node), None)

    def names(self, node: str) -> bool:
        """Whether the process has this node."""
        return any(entry.node == node for entry in self.nodes)


@dataclass(frozen=True, slots=True)
class TaskImage(LedgerRecord):
    """The image that runs in an iteration, as the process pinned it."""

    name: Annotated[str, "the image's name"]
    version: Annotated[str, "its version"]
    image_id: Annotated[Digest, "what an engine runs"]
    manifest_digest: Annotated[Digest, "what a registry serves"]
    agreed: Annotated[bool, "whether the node's organisation has agreed to it"]


@dataclass(frozen=True, slots=True)
class TaskContext(LedgerRecord):
    """All that a task of a node in an iteration is checked against: what the process agreed on for it."""

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where the process stands"]
    node: Annotated[str, "the node"]
    organisation: Annotated[str, "its organisation"]
    iteration: Annotated[int, "the iteration"]
    iterations: Annotated[int, "how many iterations the process has"]
    next: Annotated[int | None, "the iteration the node has to do next; null when it has done all of its own"]
    step: Annotated[StepPlace, "the step that the iteration belongs to"]
    synchronous: Annotated[bool, "whether GET waits until every neighbour has shared"]
    active: Annotated[bool, "whether the node takes part in the iteration"]
    neighbours: Annotated[tuple[str, ...], "the node's active neighbours, ascending"]
    image: Annotated[TaskImage, "the image that runs"]
    parameters: Annotated[TaskParameters, "what the task depends on besides image and data"]
    parameters_digest: Annotated[Digest, "SHA-256 of the canonical parameters: the parameter hash"]
    limits: Annotated[TreeLimits, "what trees the process allows"]
    schema_digest: Annotated[Digest, "SHA-256 of the feature schema"]
    task_seconds: Annotated[int, "how long a task may take"]
    consortium: Annotated[tuple[str, ...], "the organisations of the process"]
    collection: Annotated[str | None, "the collection that holds the trees; null where all peers hold them"]

    @property
    def task(self) -> TaskId:
        """Which task."""
        return TaskId(self.process, self.node, self.iteration)

    @property
    def audience(self) -> tuple[str, ...] | None:
        """The organisations whose peers may see the trees; None where all may."""
        return None if self.collection is None else self.consortium

    @property
    def is_last(self) -> bool:
        """Whether the node's model is made by this task."""
        return self.iteration + 1 == self.iterations

    @property
    def is_running(self) -> bool:
        """Whether the process runs and the node takes part in this iteration."""
        return self.status is ProcessState.RUNNING and self.active

    def check_running(self) -> None:
        """Return if the process runs and the node takes part in this iteration."""
        if self.status is not ProcessState.RUNNING:
            raise StateError("PROCESS_NOT_RUNNING", f"process {self.process} is {self.status}")
        if not self.active:
            raise StateError("NODE_INACTIVE", f"{self.node} takes no part in iteration {self.iteration}")

    def check_next(self) -> None:
        """Return if the iteration is the one the node has to do next."""
        if self.iteration != self.next:
            following = "nothing" if self.next is None else f"iteration {self.next}"
            raise StateError(
                "ITERATION_ORDER",
                f"{self.node} does {following} of {self.iterations} next, not {self.iteration}",
            )
        self.check_opened()

    def check_opened(self) -> None:
        """Return if the step is open: where a coordinator opens steps, it has opened this one."""
        if not self.step.opened:
            raise StateError("STEP_UNOPENED", f"step {self.step.name} of {self.process} is not open yet")

    def check_opening(self, opening: Opening) -> None:
        """Return if the task commits to the code, the parameters and the features the process fixes."""
        image = self.image
        if not image.agreed:
            raise StateError(
                "IMAGE_CONSENT", f"{self.organisation} has not agreed to {image.name} {image.version}"
            )
        for what, expected, found, code in (
            ("image id", image.image_id, opening.image_id, "IMAGE_MISMATCH"),
            ("manifest digest", image.manifest_digest, opening.manifest_digest, "IMAGE_MISMATCH"),
            ("parameter hash", self.parameters_digest, opening.parameter_hash, "PARAMETERS_MISMATCH"),
            ("schema digest", self.schema_digest, opening.schema_digest, "SCHEMA_MISMATCH"),
        ):
            if found != expected:
                raise StateError(code, f"{what} is {expected} on the ledger, not {found}")

    def check_estimators(self, ensemble: Digest | None) -> None:
        """Return if the node has the estimators that the task needs, by the digest of its last ensemble."""
        initial = self.parameters.initial_model
        held = (NO_ENSEMBLE if initial is None else initial.digest) if ensemble is None else ensemble
        if self.parameters.needs_estimators and held == NO_ENSEMBLE:
            raise StateError(
                "ENSEMBLE_EMPTY", f"{self.node} has no estimators, and step {self.step.name} makes none"
            )


@dataclass(frozen=True, slots=True)
class ModelContext(LedgerRecord):
    """Who takes part in a process and whether it has ended: what a publication is checked against."""

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where it stands"]
    consortium: Annotated[tuple[str, ...], "the organisations of the process"]
    nodes: Annotated[dict[str, str], "the organisation of each node"]
    iterations: Annotated[int, "how many iterations there are"]
    collection: Annotated[str | None, "the collection that holds the trees; null where all peers hold them"]
    description: Annotated[str, "what the process is for, in its proposer's words"]
    access: Annotated[ModelAccess, "who decides on access to a model once the process is completed"]
    licence: Annotated[Digest | None, "SHA-256 of the licence text that whoever asks for a model accepts"]
    ends_with: Annotated[StepKind | None, "the kind of its last step; absent if it learns", ABSENT] = None
    initial: Annotated[InitialModel | None, "the model that it starts from; absent if none", ABSENT] = None


@dataclass(frozen=True, slots=True)
class AccessTerms(LedgerRecord):
    """What a request to read a model is checked against, and who has a say in it."""

    process: Annotated[str, "the process id"]
    status: Annotated[ProcessState, "where it stands"]
    access: Annotated[ModelAccess, "who decides on access to a model once the process is completed"]
    licence: Annotated[Digest | None, "SHA-256 of the licence text that whoever asks for a model accepts"]
    quota: Annotated[int, "how often each organisation may ask"]
    entitled: Annotated[
        tuple[str, ...], "the organisations that decide: those that have a say, or did the last iteration"
    ]
