"""Which estimators a node may offer.

Only FIT creates, and only under the node's own name: a node's new estimators carry the counters that follow
those on record. An estimator of an earlier FIT that is offered for the first time must be the one that its
task announced. Of others, a node offers only what its last ensemble holds, byte for byte: it can neither
forge a creator, nor pass on what it was never offered, nor put its own name to a tree that it took.
"""

from collections.abc import Sequence

from chaincode.execution_record.store import (
    Members,
    find_creations,
    find_digests,
    find_ensemble,
    find_head,
    find_initial_trees,
    next_counter,
)
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.task.opening import TaskId
from protocol.trees.estimator import Estimator
from protocol.trees.kinds import check_format
from protocol.trees.share import Share

MAX_CHANCE = 16
"""Trees of at most so many splits may be equal by chance (docs/adr/0405): they are marked, never refused."""


def check_share(ctx: Context, task: TaskId, share: Share, context: TaskContext) -> tuple[Estimator, ...]:
    """Return the estimators that this share puts on the ledger, or refuse the share as a whole."""
    own = [estimator for estimator in share.estimators if estimator.id.creator == task.node]
    others = [estimator for estimator in share.estimators if estimator.id.creator != task.node]
    head = find_head(ctx, task.process, task.node)
    held = find_initial_trees(ctx, context, _ids(others)) if head is None else find_ensemble(ctx, task, head)
    _check_held(task.node, others, held)
    known = find_digests(ctx, task.process, _ids(own))
    known |= find_initial_trees(ctx, context, [id_ for id_ in _ids(own) if id_ not in known])
    for estimator in own:
        if estimator.id in known:
            _check_same(estimator, known[estimator.id])
    new = tuple(estimator for estimator in own if estimator.id not in known)
    _check_counters(ctx, task, new, next_counter(ctx, context, head), context.parameters.agreed.n_new)
    _check_not_copied(task.node, new, held)
    for estimator in new:
        check_format(estimator.tree, context.limits)
    return new


def _check_held(node: str, others: Sequence[Estimator], held: Members) -> None:
    """Refuse estimators of others that the node does not have, or has with other bytes."""
    for estimator in others:
        digest = held.get(estimator.id)
        if digest is None:
            raise StateError(
                "ESTIMATOR_NOT_HELD", f"{node} offers {estimator.id}, which its last ensemble does not hold"
            )
        _check_same(estimator, digest)


def _check_not_copied(node: str, new: Sequence[Estimator], held: Members) -> None:
    """Refuse as an own creation what the node took from another; small trees may be equal by chance.

    Compared with what the node itself holds, and nothing else: nobody can have an honest node refused by
    bringing its tree to the ledger before it.
    """
    taken = {digest: id_ for id_, digest in held.items() if id_.creator != node}
    for estimator in new:
        origin = taken.get(estimator.tree.digest)
        if origin is not None and estimator.tree.n_internal > MAX_CHANCE:
            raise StateError("ESTIMATOR_COPIED", f"{estimator.id} is {origin}, which {node} took")


def _check_counters(
    ctx: Context, task: TaskId, new: tuple[Estimator, ...], following: int, n_new: int
) -> None:
    """Refuse counters beyond this FIT, and below it any tree that its own task did not announce."""
    for estimator in new:
        if estimator.id.counter >= following + n_new:
            raise StateError(
                "ESTIMATOR_COUNTER",
                f"{estimator.id}: this FIT creates counters {following} to {following + n_new - 1}",
            )
    earlier = [estimator for estimator in new if estimator.id.counter < following]
    announced = find_creations(ctx, task.process, _ids(earlier)) if earlier else {}
    for estimator in earlier:
        digest = announced.get(estimator.id)
        if digest is None:
            raise StateError("ESTIMATOR_COUNTER", f"{estimator.id} goes back to a counter no task announced")
        _check_same(estimator, digest)


def _ids(estimators: Sequence[Estimator]) -> list[EstimatorId]:
    return [estimator.id for estimator in estimators]


def _check_same(estimator: Estimator, digest: Digest) -> None:
    if estimator.tree.digest != digest:
        raise StateError(
            "ESTIMATOR_CONFLICT", f"{estimator.id} is {digest} on the ledger, not {estimator.tree.digest}"
        )
