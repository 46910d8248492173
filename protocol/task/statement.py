"""What a task signs: who did what, with which code, parameters and inputs, and what came out."""

from dataclasses import fields
from enum import StrEnum
from typing import Self

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.identifiers import check_counter, parse_node, parse_process
from protocol.signing import SigningKey, VerifyKey, sign, verify
from protocol.values import dataclass

TASK_DOMAIN = "attestree/task"


class Action(StrEnum):
    """The two results a task signs."""

    SHARE = "SHARE"
    """The estimators offered to the neighbours."""
    COMPLETE = "COMPLETE"
    """The task's result: ids taken, ensemble digest, metrics."""


@dataclass(frozen=True, slots=True)
class TaskStatement:
    """The content of a task's signature; every field is in it so that no result fits another task."""

    process: str
    node: str
    iteration: int
    action: Action
    image_id: Digest
    parameter_hash: Digest
    inputs_digest: Digest
    payload_digest: Digest

    def __post_init__(self) -> None:
        parse_process(self.process)
        parse_node(self.node)
        check_counter(self.iteration, "iteration")
        if type(self.action) is not Action:
            raise RecordError("RECORD_VALUE", f"action {str(self.action)[:40]!r} is not SHARE or COMPLETE")
        for name in _DIGESTS:
            if type(getattr(self, name)) is not Digest:
                raise RecordError("RECORD_VALUE", f"{name} is not a digest")

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record that is encoded and signed."""
        return {
            "process": self.process,
            "node": self.node,
            "iteration": self.iteration,
            "action": self.action.value,
            **{name: str(getattr(self, name)) for name in _DIGESTS},
        }

    @classmethod
    def from_dict(cls, record: canonical.Record) -> Self:
        """Accept a record with exactly the fields of a statement."""
        if not isinstance(record, dict) or record.keys() != _FIELDS:
            raise RecordError(
                "RECORD_FIELDS", f"a task statement has the fields {', '.join(sorted(_FIELDS))}"
            )
        values: dict[str, object] = dict(record)
        for name in _DIGESTS:
            values[name] = Digest.parse(record[name])  # type: ignore[arg-type]
        try:
            values["action"] = Action(values["action"])  # type: ignore[arg-type]
        except ValueError as error:
            raise RecordError("RECORD_VALUE", f"action {str(record['action'])[:40]!r} is unknown") from error
        return cls(**values)  # type: ignore[arg-type]

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return canonical.encode(self.to_dict())

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the canonical bytes of a statement."""
        return cls.from_dict(canonical.decode(raw))

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the canonical bytes: what is signed."""
        return Digest.of(self.to_bytes())


_FIELDS = {field.name for field in fields(TaskStatement)}
_DIGESTS = ("image_id", "parameter_hash", "inputs_digest", "payload_digest")


def sign_statement(key: SigningKey, statement: TaskStatement) -> bytes:
    """Sign what a task did."""
    return sign(key, TASK_DOMAIN, statement.digest)


def verify_statement(key: VerifyKey, statement: TaskStatement, signature: bytes) -> None:
    """Return if the task's key signed exactly this statement."""
    verify(key, TASK_DOMAIN, statement.digest, signature)
