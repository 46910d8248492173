"""What a task leaves on the ledger beside itself: its image, its share, its result, or why it was refused."""

from collections.abc import Mapping, Sequence

from chaincode.common.own import seal
from chaincode.common.records import encode, provenance, write
from chaincode.common.trees import write_tree
from chaincode.execution_record.store import CheckedResult
from chaincode.shim import Context, Endorsement
from protocol.agreement.parameters import TaskParameters
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.common import EnsembleMember, Signed
from protocol.ledger.estimators import CreationRecord, EstimatorRecord, OfferRecord, TakenRecord, TwinRecord
from protocol.ledger.processes import TaskContext, TaskImage
from protocol.ledger.record import Raw
from protocol.ledger.task_rules import data_after, head_after
from protocol.ledger.tasks import (
    Head,
    ImageUseRecord,
    RefusalRecord,
    ResultRecord,
    ShareRecord,
    SlotRecord,
    TaskRecord,
)
from protocol.task.result import TaskResult
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share


def write_image_use(ctx: Context, task: TaskRecord, image: TaskImage) -> None:
    """Note under the image that a launch of a task committed to it."""
    key = keys.imageuse(image.name, image.version, task.process, task.node, task.iteration, task.attempt)
    used = ImageUseRecord(
        task.process, task.node, task.iteration, task.attempt, task.organisation, image.image_id, ctx.tx_id
    )
    write(ctx, key, used)


def write_share(
    ctx: Context, task: TaskRecord, share: Share, new: Sequence[Estimator], context: TaskContext
) -> None:
    """Write the new estimators, the share, the slots of the recipients and an offer per estimator."""
    process, sender, iteration = task.process, task.node, task.iteration
    recipients, signed = context.neighbours, _signed(task.share)
    for estimator in new:
        write(ctx, keys.estimator(process, estimator.id), _estimator(task, estimator, signed))
        write_tree(ctx, keys.sharedtree(process, estimator.id), estimator, context.collection)
        _write_twin(ctx, task, estimator)
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


def _write_twin(ctx: Context, task: TaskRecord, estimator: Estimator) -> None:
    """Write the tree's digest beside those of others with the very same tree, under a key nobody else writes.

    A single leaf says nothing about where it comes from.
    """
    tree, id_ = estimator.tree, estimator.id
    if tree.n_internal:
        twin = TwinRecord(tree.digest, id_, task.iteration, tree.n_internal, ctx.tx_id)
        write(ctx, keys.twin(task.process, str(tree.digest), id_.creator, id_.counter), twin)


def write_result(
    ctx: Context, task: TaskRecord, result: TaskResult, checked: CheckedResult, parameters: TaskParameters
) -> Head:
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
        output=result.output,
    )
    write(ctx, keys.result(process, iteration, node), record)
    assert task.opening is not None  # noqa: S101
    head = head_after(record, result.first, data_after(checked.head, parameters, task.opening))
    write(ctx, keys.head(process, node), head)
    for estimator_id, digest in checked.created.items():
        write(ctx, keys.creation(process, estimator_id), CreationRecord(digest, iteration))
    # Who takes all that everybody offers writes one and the same record for each of them.
    ranks = {places for _, places in checked.places}
    taken = {places: encode(TakenRecord(node, iteration, places)) for places in ranks}
    for slot, places in checked.places:
        ctx.put(keys.taken(process, slot.sender, slot.iteration, node, iteration), taken[places])
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
