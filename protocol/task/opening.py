"""What a task is opened with, as every party reads it (docs/formats/task-v1.md).

The executor sends an `Opening` before anything runs: the commitment to code, parameters, inputs and key. The
learner then signs a share (`trees.share`) and a result (`task.result`) for exactly that task.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from protocol import canonical
from protocol.digest import Digest
from protocol.fields import Fields
from protocol.identifiers import check_counter, parse_node, parse_process
from protocol.signing import VerifyKey
from protocol.task.statement import Action, TaskStatement

if TYPE_CHECKING:
    from protocol.ledger.processes import TaskContext

VERSION = 1


@dataclass(frozen=True, order=True, slots=True)
class TaskId:
    """Which task: one node's work in one iteration of a process, counted from 0."""

    process: str
    node: str
    iteration: int

    def __post_init__(self) -> None:
        parse_process(self.process)
        parse_node(self.node)
        check_counter(self.iteration, "iteration")

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the fields that name the task in every record and event about it."""
        return {"process": self.process, "node": self.node, "iteration": self.iteration}

    def __str__(self) -> str:
        return f"{self.process}/{self.node}/{self.iteration}"


@dataclass(frozen=True, slots=True)
class Opening:
    """The commitment of a task: which key, code, parameters, schema, state, data and sandbox it will use."""

    public_key: VerifyKey
    image_id: Digest
    manifest_digest: Digest
    parameter_hash: Digest
    schema_digest: Digest
    state: Digest | None
    """The digest of the state the last task left; None before a node's first task."""
    data: Digest
    """The commitment to the private data."""
    sandbox: Digest
    """The digest of the container's effective configuration."""

    @classmethod
    def for_task(
        cls, context: "TaskContext", key: VerifyKey, *, state: Digest | None, data: Digest, sandbox: Digest
    ) -> Self:
        """Commit to what the process fixes for a task, and to this run's key, state, data and sandbox."""
        return cls(
            public_key=key,
            image_id=context.image.image_id,
            manifest_digest=context.image.manifest_digest,
            parameter_hash=context.parameters_digest,
            schema_digest=context.schema_digest,
            state=state,
            data=data,
            sandbox=sandbox,
        )

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Accept a record with exactly the fields of an opening."""
        fields = Fields(record, "a task's opening", _OPENING)
        fields.version(VERSION)
        return cls(
            VerifyKey.parse(record["public_key"]),
            fields.digest("image_id"),
            fields.digest("manifest_digest"),
            fields.digest("parameter_hash"),
            fields.digest("schema_digest"),
            fields.optional_digest("state"),
            fields.digest("data"),
            fields.digest("sandbox"),
        )

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {
            "version": VERSION,
            "public_key": str(self.public_key),
            "image_id": str(self.image_id),
            "manifest_digest": str(self.manifest_digest),
            "parameter_hash": str(self.parameter_hash),
            "schema_digest": str(self.schema_digest),
            "state": None if self.state is None else str(self.state),
            "data": str(self.data),
            "sandbox": str(self.sandbox),
        }


_OPENING = (
    "version", "public_key", "image_id", "manifest_digest", "parameter_hash", "schema_digest", "state",
    "data", "sandbox",
)  # fmt: skip


def inputs_digest(task: TaskId, opening: Opening) -> Digest:
    """Hash what goes into a task: the state before it and the data; its result names the slots it read."""
    state = None if opening.state is None else str(opening.state)
    return canonical.digest({"version": VERSION, **task.to_dict(), "state": state, "data": str(opening.data)})


def statement(task: TaskId, opening: Opening, action: Action, payload: Digest) -> TaskStatement:
    """Say what a task signs for one of its two results."""
    return TaskStatement(
        task.process,
        task.node,
        task.iteration,
        action,
        opening.image_id,
        opening.parameter_hash,
        inputs_digest(task, opening),
        payload,
    )
