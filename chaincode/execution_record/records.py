"""What the execution record keeps on the ledger, as values; each is written and read in one place.

The records are this chaincode's own, so reading them checks nothing again.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from chaincode.common.records import VERSION
from protocol.agreement.lifecycle import TASK, TaskState
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.opening import Opening, TaskId

Members = dict[EstimatorId, Digest]
"""Estimators by id, each with the digest of its tree."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A result as the task's key signed it, and the transaction that brought it."""

    payload_digest: str
    signature: str
    by: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """The evidence of one task: its commitment, its state, and what was signed under its key."""

    id: TaskId
    organisation: str
    state: TaskState
    attempt: int
    after: TaskState = TaskState.ABSENT
    """The state that this attempt followed."""
    image: dict[str, Any] | None = None
    opening: Opening | None = None
    inputs_digest: Digest | None = None
    opened: dict[str, Any] | None = None
    expires: str | None = None
    share: Signed | None = None
    result: Signed | None = None
    closed: dict[str, Any] | None = None

    def expired(self, now: datetime) -> bool:
        """Whether the time the process allows a task is over."""
        return self.expires is not None and now > datetime.fromisoformat(self.expires)

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        return {
            "version": VERSION,
            **self.id.to_dict(),
            "organisation": self.organisation,
            "state": self.state.value,
            "attempt": self.attempt,
            "after": self.after.value,
            "image": self.image,
            "opening": self.opening and self.opening.to_dict(),
            "inputs_digest": self.inputs_digest and str(self.inputs_digest),
            "opened": self.opened,
            "expires": self.expires,
            "share": _signed_to_dict(self.share),
            "result": _signed_to_dict(self.result),
            "closed": self.closed,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Read the record back."""
        return cls(
            TaskId(record["process"], record["node"], record["iteration"]),
            record["organisation"],
            TASK.state(record["state"]),
            record["attempt"],
            TASK.state(record["after"]),
            record["image"],
            record["opening"] and Opening.from_dict(record["opening"]),
            record["inputs_digest"] and Digest.parse(record["inputs_digest"]),
            record["opened"],
            record["expires"],
            record["share"] and Signed(**record["share"]),
            record["result"] and Signed(**record["result"]),
            record["closed"],
        )


def _signed_to_dict(signed: Signed | None) -> dict[str, Any] | None:
    if signed is None:
        return None
    return {
        "payload_digest": signed.payload_digest,
        "signature": signed.signature,
        "by": signed.by,
    }


@dataclass(frozen=True, slots=True)
class Head:
    """Where a node stands after its last completed task: what its next task has to continue."""

    iteration: int
    next_counter: int
    state: Digest
    ensemble_digest: Digest

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        return {
            "version": VERSION,
            "iteration": self.iteration,
            "next_counter": self.next_counter,
            "state": str(self.state),
            "ensemble_digest": str(self.ensemble_digest),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Read the record back."""
        return cls(
            record["iteration"],
            record["next_counter"],
            Digest.parse(record["state"]),
            Digest.parse(record["ensemble_digest"]),
        )


@dataclass(frozen=True, slots=True)
class Offered:
    """What a node offered in one iteration: ids best first, and to whom."""

    task: TaskId
    organisation: str
    ids: tuple[EstimatorId, ...]
    created: tuple[EstimatorId, ...]
    """Those of the ids that this SHARE put on the ledger."""
    recipients: tuple[str, ...]
    signed: Signed

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        return {
            "version": VERSION,
            **self.task.to_dict(),
            "organisation": self.organisation,
            "ids": [str(estimator_id) for estimator_id in self.ids],
            "created": [str(estimator_id) for estimator_id in self.created],
            "recipients": list(self.recipients),
            "signed": _signed_to_dict(self.signed),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Read the record back."""
        return cls(
            TaskId(record["process"], record["node"], record["iteration"]),
            record["organisation"],
            tuple(EstimatorId.parse(text) for text in record["ids"]),
            tuple(EstimatorId.parse(text) for text in record["created"]),
            tuple(record["recipients"]),
            Signed(**record["signed"]),
        )
