"""Which estimators a node may offer.

Only FIT creates, and only under the node's own name: a node's new estimators carry the counters that follow
those on record. An estimator of an earlier FIT that is offered for the first time must be the one that its
task announced, and everybody else's must be on the ledger already, byte for byte.
"""

from chaincode.execution_record.store import (
    find_creations,
    find_digests,
    find_head,
    initial_members,
    next_counter,
)
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.task.opening import TaskId
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share


def check_share(ctx: Context, task: TaskId, share: Share, context: TaskContext) -> tuple[Estimator, ...]:
    """Return the estimators that this share puts on the ledger, or refuse the share as a whole."""
    initial = initial_members(ctx, context)
    following = next_counter(task.node, find_head(ctx, task.process, task.node), initial)
    known = {**initial, **find_digests(ctx, task.process, share.ids)}
    for estimator in share.estimators:
        digest = known.get(estimator.id)
        if digest is not None:
            _check_same(estimator, digest)
        elif estimator.id.creator != task.node:
            raise StateError(
                "ESTIMATOR_UNKNOWN", f"{task.node} offers {estimator.id}, which its creator never shared"
            )
    new = tuple(estimator for estimator in share.estimators if estimator.id not in known)
    _check_counters(ctx, task, new, following, context.parameters.agreed.n_new)
    return new


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


def _ids(estimators: list[Estimator]) -> list[EstimatorId]:
    return [estimator.id for estimator in estimators]


def _check_same(estimator: Estimator, digest: Digest) -> None:
    if estimator.tree.digest != digest:
        raise StateError(
            "ESTIMATOR_CONFLICT", f"{estimator.id} is {digest} on the ledger, not {estimator.tree.digest}"
        )
