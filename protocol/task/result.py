"""What a task comes to, as the learner signs it and every party reads it (docs/formats/task-v1.md)."""

from collections.abc import Sequence
from typing import Any, Self

from protocol import canonical
from protocol.agreement.parameters import TaskParameters
from protocol.digest import Digest
from protocol.errors import RecordError, StateError
from protocol.fields import Fields
from protocol.identifiers import MAX_COUNTER, EstimatorId
from protocol.task.output import Output, check_output
from protocol.trees.limits import FORMAT_MAX_OFFERED
from protocol.values import dataclass

VERSION = 1
OUTPUT_VERSION = 2
"""The version of a result with an output, which a step that does not learn has."""
MAX_METRICS = 64
MAX_ESTIMATORS = 10_000
MAX_SLOTS = 1_000
MAX_RESULT_BYTES = 1 << 20
MAX_ENSEMBLE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Offer:
    """What one sender's slot holds: the share it was filled by, and the ids, best first."""

    sender: str
    iteration: int
    share: Digest
    ids: tuple[EstimatorId, ...]

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        ids: list[canonical.Record] = [str(estimator_id) for estimator_id in self.ids]
        return {"sender": self.sender, "iteration": self.iteration, "share": str(self.share), "ids": ids}

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Accept a record with exactly the fields of an offer, as the ledger's Offers and Slots list them."""
        fields = Fields(record, "an offer", ("sender", "iteration", "share", "ids"))
        share, ids = fields.digest("share"), fields.ids("ids", FORMAT_MAX_OFFERED)
        return cls(fields.node("sender"), fields.count("iteration"), share, ids)


@dataclass(frozen=True, slots=True)
class SlotRead:
    """What GET found in the slot of one sender: which share, what of it was taken, what refused and why."""

    sender: str
    iteration: int
    share: Digest
    taken: tuple[EstimatorId, ...]
    refused: tuple[tuple[EstimatorId, str], ...] = ()

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Accept a record with exactly the fields of a slot that was read."""
        fields = Fields(record, "a slot", _SLOT)
        taken = fields.ids("taken", MAX_ESTIMATORS)
        refused = tuple(_refused(item) for item in fields.items("refused", MAX_ESTIMATORS))
        if refused:
            named = {*taken, *(estimator_id for estimator_id, _ in refused)}
            if len(named) != len(taken) + len(refused):
                raise RecordError("RECORD_VALUE", "a slot names one estimator twice among taken and refused")
        return cls(fields.node("sender"), fields.count("iteration"), fields.digest("share"), taken, refused)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {
            "sender": self.sender,
            "iteration": self.iteration,
            "share": str(self.share),
            "taken": [str(estimator_id) for estimator_id in self.taken],
            "refused": [{"id": str(estimator_id), "reason": reason} for estimator_id, reason in self.refused],
        }


_SLOT = frozenset({"sender", "iteration", "share", "taken", "refused"})


def _refused(record: Any) -> tuple[EstimatorId, str]:
    fields = Fields(record, "a refused estimator", ("id", "reason"))
    return EstimatorId.parse(record["id"]), fields.text("reason", 64)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The outcome of one task: what FIT created, what GET took, and the ensemble after CROP.

    `created` holds the digests of the trees of this FIT in the order of their counters, of which the first
    is `first`: a tree that is offered iterations later is recognised by them. `slots` is sorted by sender,
    `ensemble` by id, so that a result has one form. A step that does not learn has an `output` instead.
    """

    first: int
    created: tuple[Digest, ...]
    slots: tuple[SlotRead, ...]
    ensemble: tuple[EstimatorId, ...]
    ensemble_digest: Digest
    state: Digest
    metrics: dict[str, canonical.Record]
    output: Output | None = None

    def __post_init__(self) -> None:
        if self.first + len(self.created) > MAX_COUNTER:
            raise RecordError("RECORD_VALUE", "the counters of the created estimators leave their range")
        senders = [slot.sender for slot in self.slots]
        if senders != sorted(set(senders)):
            raise RecordError("RECORD_VALUE", "slots are not sorted by sender, each once")
        if list(self.ensemble) != sorted(set(self.ensemble)):
            raise RecordError("RECORD_VALUE", "the ensemble is not sorted by id, each once")

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the canonical bytes of a result; their SHA-256 is the payload digest that is signed."""
        record = canonical.decode(raw, max_bytes=MAX_RESULT_BYTES)
        fields = Fields(record, "a task's result", _RESULT, ("output",))
        with_output = "output" in fields
        fields.version(OUTPUT_VERSION if with_output else VERSION)
        return cls(
            fields.count("first"),
            fields.digests("created", MAX_ESTIMATORS),
            tuple(SlotRead.from_dict(item) for item in fields.items("slots", MAX_SLOTS)),
            fields.ids("ensemble", MAX_ESTIMATORS),
            fields.digest("ensemble_digest"),
            fields.digest("state"),
            fields.metrics("metrics", MAX_METRICS),
            Output.from_dict(fields["output"]) if with_output else None,
        )

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        record: dict[str, canonical.Record] = {
            "version": VERSION if self.output is None else OUTPUT_VERSION,
            "first": self.first,
            "created": [str(digest) for digest in self.created],
            "slots": [slot.to_dict() for slot in self.slots],
            "ensemble": [str(estimator_id) for estimator_id in self.ensemble],
            "ensemble_digest": str(self.ensemble_digest),
            "state": str(self.state),
            "metrics": self.metrics,
        }
        return record if self.output is None else {**record, "output": self.output.to_dict()}

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return canonical.encode(self.to_dict(), max_bytes=MAX_RESULT_BYTES)

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the canonical bytes: the payload digest of COMPLETE."""
        return Digest.of(self.to_bytes())


_RESULT = ("version", "first", "created", "slots", "ensemble", "ensemble_digest", "state", "metrics")


def check_kind(result: TaskResult, parameters: TaskParameters, node: str) -> None:
    """Refuse a result of another kind than its step: trees where none are learned, or another output."""
    if not parameters.kind.learns and (result.created or result.slots):
        raise StateError(
            "RESULT_KIND", f"a step of kind {parameters.kind} neither creates estimators nor takes any"
        )
    check_output(result.output, parameters, node, result.ensemble)


def ensemble_digest(members: Sequence[tuple[EstimatorId, Digest]]) -> Digest:
    """Hash an ensemble: the ids in ascending order, each with the digest of its tree."""
    pairs: list[canonical.Record] = [
        [str(estimator_id), str(digest)] for estimator_id, digest in sorted(members)
    ]
    return Digest.of(
        canonical.encode({"version": VERSION, "estimators": pairs}, max_bytes=MAX_ENSEMBLE_BYTES)
    )


NO_ENSEMBLE = ensemble_digest(())
"""The digest of an ensemble without members."""
