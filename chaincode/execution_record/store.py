"""The execution record's part of the ledger: what is read, and what a share or a result leaves there."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from chaincode.common.calls import EXECUTION_RECORD, model_members
from chaincode.common.own import check_vouched, endorsement_by, seal, vouch
from chaincode.common.records import provenance, read, read_many, write
from chaincode.common.trees import write_tree
from chaincode.shim import Context, Endorsement
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.common import EnsembleMember, Signed
from protocol.ledger.estimators import (
    CreationRecord,
    EstimatorRecord,
    OfferRecord,
    TakenRecord,
)
from protocol.ledger.processes import TaskContext
from protocol.ledger.record import Raw
from protocol.ledger.tasks import (
    Head,
    RefusalRecord,
    ResultRecord,
    ShareRecord,
    SlotRecord,
    TaskRecord,
)
from protocol.task.opening import TaskId
from protocol.task.result import SlotRead, TaskResult
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share

Members: TypeAlias = dict[EstimatorId, Digest]
"""Estimators by id, each with the digest of its tree."""


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """A result that fits: its created estimators and its ensemble with digests, and what it took."""

    created: Members
    ensemble: Members
    places: tuple[tuple[SlotRead, tuple[int, ...]], ...]
    """The slots it took something from, with the ranks of that in the share."""


def find_task(ctx: Context, task: TaskId) -> TaskRecord | None:
    """Read a task; None when nobody opened or refused it. One that others wrote is refused."""
    key = keys.task(task.process, task.node, task.iteration)
    found = read(ctx, key, TaskRecord)
    if found is not None:
        check_vouched(ctx, found.organisation, key, _mark(found))
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
    vouch(ctx, task.organisation, key, _mark(task))
    if before is None:
        known = ctx.endorsement(keys.head(task.process, task.node))
        seal(ctx, known or endorsement_by(ctx, EXECUTION_RECORD, task.organisation), [key])


def _mark(task: TaskRecord) -> str:
    """What an organisation vouches for: which attempt this is, and with which key."""
    key = "" if task.opening is None else task.opening.public_key.raw.hex()
    return f"{task.attempt} {key}"


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
) -> dict[tuple[int, str], ShareRecord]:
    """Read the shares of these iterations and senders that exist."""
    found = read_many(ctx, [keys.share(process, *place) for place in wanted], ShareRecord)
    return {place: record for place, record in zip(wanted, found, strict=True) if record is not None}


def find_digests(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> Members:
    """Return the digests of those estimators that are on the ledger."""
    return _digests(ids, ctx.get_many([keys.estimator(process, estimator_id) for estimator_id in ids]))


def find_creations(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> Members:
    """Return the digests under which completed tasks announced their estimators."""
    return _digests(ids, ctx.get_many([keys.creation(process, estimator_id) for estimator_id in ids]))


def initial_members(ctx: Context, context: TaskContext) -> Members:
    """Return the estimators of the initial model with their digests; none where there is no such model."""
    wanted = context.parameters.initial_model
    if wanted is None:
        return {}
    found = model_members(ctx, wanted.process, wanted.node)
    if found.digest != wanted.digest:
        raise StateError("MODEL_DIGEST", f"the initial model has digest {found.digest}, not {wanted.digest}")
    return {member.id: member.digest for member in found.estimators}


def next_counter(node: str, head: Head | None, initial: Members) -> int:
    """Return the counter of the node's next estimator."""
    if head is not None:
        return head.next_counter
    return max((member.counter + 1 for member in initial if member.creator == node), default=0)


def write_share(
    ctx: Context, task: TaskRecord, share: Share, new: Sequence[Estimator], context: TaskContext
) -> None:
    """Write the new estimators, the share, the slots of the recipients and an offer per estimator."""
    process, sender, iteration = task.process, task.node, task.iteration
    recipients, signed = context.neighbours, _signed(task.share)
    for estimator in new:
        write(ctx, keys.estimator(process, estimator.id), _estimator(task, estimator, signed))
        write_tree(ctx, keys.sharedtree(process, estimator.id), estimator, context.collection)
    offered = ShareRecord(
        process=process,
        node=sender,
        iteration=iteration,
        organisation=task.organisation,
        attempt=task.attempt,
        estimators=tuple(EnsembleMember(item.id, item.tree.digest) for item in share.estimators),
        created=tuple(estimator.id for estimator in new),
        recipients=recipients,
        signed=signed,
    )
    write(ctx, keys.share(process, iteration, sender), offered)
    for recipient in recipients:
        slot = SlotRecord(process, recipient, sender, iteration, signed.payload_digest, share.ids)
        write(ctx, keys.slot(process, recipient, sender), slot)
    for place, estimator_id in enumerate(share.ids):
        offer = OfferRecord(sender, iteration, place)
        write(ctx, keys.offer(process, estimator_id, sender, iteration), offer)
    sealed = [keys.estimator(process, estimator.id) for estimator in new]
    seal(ctx, _policy(ctx, task), [keys.share(process, iteration, sender), *sealed])


def write_result(ctx: Context, task: TaskRecord, result: TaskResult, checked: CheckedResult) -> Head:
    """Write the result, what FIT created and GET took, and return where the node stands now."""
    process, node, iteration = task.process, task.node, task.iteration
    record = ResultRecord(
        process=process,
        node=node,
        iteration=iteration,
        organisation=task.organisation,
        attempt=task.attempt,
        image=task.image,
        share=None if task.share is None else task.share.payload_digest,
        created=_members(checked.created),
        slots=result.slots,
        ensemble=_members(checked.ensemble),
        ensemble_digest=result.ensemble_digest,
        state=result.state,
        metrics=result.metrics,
        signed=_signed(task.result),
    )
    write(ctx, keys.result(process, iteration, node), record)
    head = Head(iteration, result.first + len(checked.created), result.state, result.ensemble_digest)
    write(ctx, keys.head(process, node), head)
    for estimator_id, digest in checked.created.items():
        write(ctx, keys.creation(process, estimator_id), CreationRecord(digest, iteration))
    for slot, places in checked.places:
        key = keys.taken(process, slot.sender, slot.iteration, node, iteration)
        write(ctx, key, TakenRecord(node, iteration, places))
    seal(ctx, _policy(ctx, task), [keys.result(process, iteration, node), keys.head(process, node)])
    return head


def write_refusal(ctx: Context, task: TaskRecord, code: str, reason: str, evidence: Raw) -> None:
    """Write the evidence of a refused start under a key of its own, which nothing overwrites."""
    record = RefusalRecord(
        process=task.process,
        node=task.node,
        iteration=task.iteration,
        organisation=task.organisation,
        attempt=task.attempt,
        code=code,
        reason=reason,
        evidence=evidence,
        by=provenance(ctx),
    )
    write(ctx, keys.refusal(task.process, task.node, task.iteration, task.attempt), record)


def _policy(ctx: Context, task: TaskRecord) -> Endorsement | None:
    """Return whose endorsement a task needs; what it leaves behind needs the same."""
    return ctx.endorsement(keys.task(task.process, task.node, task.iteration))


def _estimator(task: TaskRecord, estimator: Estimator, signed: Signed) -> EstimatorRecord:
    tree = estimator.tree
    return EstimatorRecord(
        process=task.process,
        id=estimator.id,
        digest=tree.digest,
        iteration=task.iteration,
        attempt=task.attempt,
        organisation=task.organisation,
        image=task.image,
        n_nodes=tree.n_nodes,
        depth=tree.depth,
        bytes=len(tree.to_bytes()),
        by=signed.by,
    )


def _members(members: Mapping[EstimatorId, Digest]) -> tuple[EnsembleMember, ...]:
    return tuple(EnsembleMember(estimator_id, digest) for estimator_id, digest in members.items())


def _signed(signed: Signed | None) -> Signed:
    assert signed is not None  # noqa: S101
    return signed


def _digests(ids: Sequence[EstimatorId], values: Sequence[bytes | None]) -> Members:
    """Read of each record its digest alone: a result may name thousands of estimators."""
    found = {}
    for estimator_id, raw in zip(ids, values, strict=True):
        if raw is not None:
            found[estimator_id] = Digest.parse(json.loads(raw)["digest"])
    return found
