"""The execution record's part of the ledger as its rules read it, and tasks as they are written."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from chaincode.common.calls import EXECUTION_RECORD
from chaincode.common.own import check_vouched, endorsement_by, seal, vouch
from chaincode.common.records import read, write
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys, task_rules
from protocol.ledger.common import EnsembleMember
from protocol.ledger.estimators import CreationRecord, EstimatorRecord
from protocol.ledger.processes import TaskContext
from protocol.ledger.task_rules import mark_of
from protocol.ledger.tasks import (
    Head,
    InitialRecord,
    InitialTreeRecord,
    ResultRecord,
    ShareRecord,
    TaskRecord,
)
from protocol.task.opening import TaskId
from protocol.task.result import SlotRead

Members: TypeAlias = dict[EstimatorId, Digest]
"""Estimators by id, each with the digest of its tree."""


_RECIPIENTS = b',"recipients":['


@dataclass(frozen=True, slots=True)
class OfferedShare:
    """What a share offers and to whom, as text: a task may read hundreds of shares, and all of them twice."""

    digest: str
    offers: dict[str, str]
    """The digest of each estimator's tree by its id, best first."""
    listed: bytes
    """The names of the recipients as they are stored; to read each would be most of what a share costs."""

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Read of a stored `ShareRecord` what its recipients need.

        Its bytes have one form, in which a name cannot hold a quote: recipients begin and end at one place.
        """
        before, _, rest = raw.partition(_RECIPIENTS)
        listed, _, after = rest.partition(b"]")
        record = json.loads((before + after).decode())
        offers = {member["id"]: member["digest"] for member in record["estimators"]}
        return cls(record["signed"]["payload_digest"], offers, listed)

    @property
    def recipients(self) -> tuple[str, ...]:
        """Whom the share was offered to."""
        return tuple(json.loads(b"[%b]" % self.listed))

    def is_for(self, node: str) -> bool:
        """Whether a node is among the recipients."""
        return b'"%b"' % node.encode() in self.listed


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """A result that fits: its created estimators and its ensemble with digests, and what it took."""

    created: Members
    ensemble: Members
    places: tuple[tuple[SlotRead, tuple[int, ...]], ...]
    """The slots it took something from, with the ranks of that in the share."""
    head: Head | None
    """Where the node stood before it."""


def find_task(ctx: Context, task: TaskId) -> TaskRecord | None:
    """Read a task; None when nobody opened or refused it. One that others wrote is refused."""
    key = keys.task(task.process, task.node, task.iteration)
    found = read(ctx, key, TaskRecord)
    if found is not None:
        check_vouched(ctx, found.organisation, key, mark_of(found))
    return found


def get_task(ctx: Context, task: TaskId) -> TaskRecord:
    """Read a task that must be there."""
    found = find_task(ctx, task)
    if found is None:
        raise StateError("TASK_UNKNOWN", f"task {task} was never opened")
    return found


def put_task(ctx: Context, task: TaskRecord) -> None:
    """Write a task that was begun."""
    write(ctx, keys.task(task.process, task.node, task.iteration), task)


def begin_task(ctx: Context, task: TaskRecord, before: TaskRecord | None) -> None:
    """Write one more attempt at a task, which needs its organisation's endorsement now and ever after.

    What the attempt signs is worth what its public key is worth: no others can put one in the node's name.
    """
    key = keys.task(task.process, task.node, task.iteration)
    write(ctx, key, task)
    vouch(ctx, task.organisation, key, mark_of(task))
    if before is None:
        known = ctx.endorsement(keys.head(task.process, task.node))
        seal(ctx, known or endorsement_by(ctx, EXECUTION_RECORD, task.organisation), [key])


def find_head(ctx: Context, process: str, node: str) -> Head | None:
    """Read where a node stands; None before its first completed task."""
    return read(ctx, keys.head(process, node), Head)


def find_result(ctx: Context, task: TaskId) -> ResultRecord | None:
    """Read what a task came to; None before it completed."""
    return read(ctx, keys.result(task.process, task.iteration, task.node), ResultRecord)


def find_share(ctx: Context, task: TaskId) -> ShareRecord | None:
    """Read what a task offered; None before it shared."""
    return read(ctx, keys.share(task.process, task.iteration, task.node), ShareRecord)


def find_shares(
    ctx: Context, process: str, wanted: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], OfferedShare]:
    """Read the shares of these iterations and senders that exist."""
    found = ctx.get_many([keys.share(process, *place) for place in wanted], ShareRecord.max_bytes)
    return {
        place: OfferedShare.read(raw) for place, raw in zip(wanted, found, strict=True) if raw is not None
    }


def find_digests(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> Members:
    """Return the digests of those estimators that are on the ledger."""
    wanted = [keys.estimator(process, estimator_id) for estimator_id in ids]
    return _digests(ids, ctx.get_many(wanted, EstimatorRecord.max_bytes))


def find_creations(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> Members:
    """Return the digests under which completed tasks announced their estimators."""
    wanted = [keys.creation(process, estimator_id) for estimator_id in ids]
    return _digests(ids, ctx.get_many(wanted, CreationRecord.max_bytes))


def find_initial(ctx: Context, process: str) -> InitialRecord | None:
    """Read which model a process started from; None where it started from none."""
    return read(ctx, keys.initial(process), InitialRecord)


def find_initial_trees(ctx: Context, context: TaskContext, ids: Sequence[EstimatorId]) -> Members:
    """Return the digests of those estimators that are in the model the process started from."""
    if context.parameters.initial_model is None or not ids:
        return {}
    wanted = [keys.initialtree(context.process, id_) for id_ in ids]
    return _digests(ids, ctx.get_many(wanted, InitialTreeRecord.max_bytes))


def find_ensemble(ctx: Context, task: TaskId, head: Head) -> Members:
    """Return the ensemble that a node's last task left, without reading all else of its result."""
    raw = ctx.get(keys.result(task.process, head.iteration, task.node))
    if raw is None:
        return {}
    members = map(EnsembleMember.from_dict, json.loads(raw)["ensemble"])
    return {member.id: member.digest for member in members}


def next_counter(ctx: Context, context: TaskContext, head: Head | None) -> int:
    """Return the counter of the node's next estimator."""
    wanted = head is None and context.parameters.initial_model is not None
    initial = find_initial(ctx, context.process) if wanted else None
    return task_rules.next_counter(head, initial, context.node)


def _digests(ids: Sequence[EstimatorId], values: Sequence[bytes | None]) -> Members:
    """Read of each record its digest alone: a result may name thousands of estimators."""
    found = {}
    for estimator_id, raw in zip(ids, values, strict=True):
        if raw is not None:
            found[estimator_id] = Digest.parse(json.loads(raw)["digest"])
    return found
