"""The execution record's part of the ledger, read and written as values."""

import base64
from collections.abc import Sequence
from typing import Any

from chaincode.common.records import VERSION, parse, read, write
from chaincode.execution_record.records import Head, Offered, Task
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.task.opening import TaskId
from protocol.trees.estimator import Estimator


def find_task(ctx: Context, task: TaskId) -> Task | None:
    """Read a task; None when nobody opened or refused it."""
    record = read(ctx, keys.task(task.process, task.node, task.iteration))
    return None if record is None else Task.from_dict(record)


def get_task(ctx: Context, task: TaskId) -> Task:
    """Read a task that must be there."""
    found = find_task(ctx, task)
    if found is None:
        raise StateError("TASK_UNKNOWN", f"task {task} was never opened")
    return found


def put_task(ctx: Context, task: Task) -> None:
    """Write a task."""
    write(ctx, keys.task(task.id.process, task.id.node, task.id.iteration), task.to_dict())


def find_head(ctx: Context, process: str, node: str) -> Head | None:
    """Read where a node stands; None before its first completed task."""
    record = read(ctx, keys.head(process, node))
    return None if record is None else Head.from_dict(record)


def find_shares(
    ctx: Context, process: str, wanted: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], Offered]:
    """Read the shares of these iterations and senders that exist."""
    values = ctx.get_many([keys.share(process, iteration, sender) for iteration, sender in wanted])
    return {
        place: Offered.from_dict(parse(value))
        for place, value in zip(wanted, values, strict=True)
        if value is not None
    }


def find_digests(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> dict[EstimatorId, Digest]:
    """Return the digests of those estimators that are on the ledger."""
    return _digests(ids, ctx.get_many([keys.estimator(process, estimator_id) for estimator_id in ids]))


def find_creations(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> dict[EstimatorId, Digest]:
    """Return the digests under which completed tasks announced their estimators."""
    return _digests(ids, ctx.get_many([keys.creation(process, estimator_id) for estimator_id in ids]))


def put_estimator(ctx: Context, task: Task, estimator: Estimator, by: dict[str, Any]) -> None:
    """Write an estimator, once, with where it comes from."""
    tree = estimator.tree
    record = {
        "version": VERSION,
        "process": task.id.process,
        "id": str(estimator.id),
        "digest": str(tree.digest),
        "iteration": task.id.iteration,
        "attempt": task.attempt,
        "organisation": task.organisation,
        "image": task.image,
        "n_nodes": tree.n_nodes,
        "depth": tree.depth,
        "bytes": len(tree.to_bytes()),
        "tree": base64.b64encode(tree.to_bytes()).decode(),
        "by": by,
    }
    write(ctx, keys.estimator(task.id.process, estimator.id), record)


def _digests(ids: Sequence[EstimatorId], values: Sequence[bytes | None]) -> dict[EstimatorId, Digest]:
    return {
        estimator_id: Digest.parse(parse(value)["digest"])
        for estimator_id, value in zip(ids, values, strict=True)
        if value is not None
    }
