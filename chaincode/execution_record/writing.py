"""What an accepted share and an accepted result leave on the ledger, lineage included."""

from typing import Any

from chaincode.common.records import VERSION, provenance, write
from chaincode.execution_record.completing import Checked
from chaincode.execution_record.records import Head, Members, Offered, Signed, Task
from chaincode.execution_record.store import put_estimator
from chaincode.shim import Context
from protocol.ledger import keys
from protocol.task.result import RoundResult
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share


def write_share(
    ctx: Context, task: Task, share: Share, new: tuple[Estimator, ...], recipients: tuple[str, ...]
) -> None:
    """Write the new estimators, the share, the slots of the recipients and an offer per estimator."""
    process, sender, iteration = task.id.process, task.id.node, task.id.iteration
    signed = _of(task.share)
    for estimator in new:
        put_estimator(ctx, task, estimator, signed.by)
    created = tuple(estimator.id for estimator in new)
    offered = Offered(task.id, task.organisation, share.ids, created, recipients, signed)
    write(ctx, keys.share(process, iteration, sender), offered.to_dict())
    slot = {
        "version": VERSION,
        "process": process,
        "sender": sender,
        "iteration": iteration,
        "share": signed.payload_digest,
        "ids": [str(estimator_id) for estimator_id in share.ids],
    }
    for recipient in recipients:
        write(ctx, keys.slot(process, recipient, sender), {**slot, "recipient": recipient})
    for place, estimator_id in enumerate(share.ids):
        offer = {"version": VERSION, "sender": sender, "iteration": iteration, "place": place}
        write(ctx, keys.offer(process, estimator_id, sender, iteration), offer)


def write_result(ctx: Context, task: Task, result: RoundResult, checked: Checked) -> None:
    """Write the result, where the node stands now, what it created and what it took."""
    process, node, iteration = task.id.process, task.id.node, task.id.iteration
    write(ctx, keys.result(process, iteration, node), _result(task, result, checked))
    head = Head(iteration, checked.next_counter, result.state, result.ensemble_digest)
    write(ctx, keys.head(process, node), head.to_dict())
    for estimator_id, digest in checked.created.items():
        creation = {"version": VERSION, "digest": str(digest), "iteration": iteration}
        write(ctx, keys.creation(process, estimator_id), creation)
    for estimator_id in checked.taken:
        taken = {"version": VERSION, "node": node, "iteration": iteration}
        write(ctx, keys.taken(process, estimator_id, node), taken)


def write_refusal(ctx: Context, task: Task, cause: dict[str, Any]) -> None:
    """Write the evidence of a refused start under a key of its own, which nothing overwrites."""
    record = {
        "version": VERSION,
        **task.id.to_dict(),
        "organisation": task.organisation,
        "attempt": task.attempt,
        **cause,
        "by": provenance(ctx),
    }
    write(ctx, keys.refusal(task.id.process, task.id.node, task.id.iteration, task.attempt), record)


def _result(task: Task, result: RoundResult, checked: Checked) -> dict[str, Any]:
    signed = _of(task.result)
    return {
        "version": VERSION,
        **task.id.to_dict(),
        "organisation": task.organisation,
        "attempt": task.attempt,
        "image": task.image,
        "share": task.share and task.share.payload_digest,
        "created": _entries(checked.created),
        "slots": [slot.to_dict() for slot in result.slots],
        "ensemble": _entries(checked.ensemble),
        "ensemble_digest": str(result.ensemble_digest),
        "state": str(result.state),
        "metrics": result.metrics,
        "signed": {
            "payload_digest": signed.payload_digest,
            "signature": signed.signature,
            "by": signed.by,
        },
    }


def _entries(members: Members) -> list[dict[str, str]]:
    return [{"id": str(estimator_id), "digest": str(digest)} for estimator_id, digest in members.items()]


def _of(signed: Signed | None) -> Signed:
    assert signed is not None  # noqa: S101
    return signed
