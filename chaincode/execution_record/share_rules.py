"""Which estimators a node may offer: the rules of `protocol/task/share_rules.py` on what is on the ledger."""

from collections.abc import Sequence

from chaincode.execution_record.store import (
    find_creations,
    find_digests,
    find_ensemble,
    find_head,
    find_initial_trees,
    next_counter,
)
from chaincode.shim import Context
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.task.opening import TaskId
from protocol.task.share_rules import Members, check_counters, check_held, check_not_copied, check_same
from protocol.trees.estimator import Estimator
from protocol.trees.kinds import check_format
from protocol.trees.share import Share


def check_share(ctx: Context, task: TaskId, share: Share, context: TaskContext) -> tuple[Estimator, ...]:
    """Return the estimators that this share puts on the ledger, or refuse the share as a whole."""
    own = [estimator for estimator in share.estimators if estimator.id.creator == task.node]
    others = [estimator for estimator in share.estimators if estimator.id.creator != task.node]
    head = find_head(ctx, task.process, task.node)
    held = find_initial_trees(ctx, context, _ids(others)) if head is None else find_ensemble(ctx, task, head)
    check_held(task.node, _digests(others), held)
    known = find_digests(ctx, task.process, _ids(own))
    known |= find_initial_trees(ctx, context, [id_ for id_ in _ids(own) if id_ not in known])
    for estimator in own:
        if estimator.id in known:
            check_same(estimator.id, estimator.tree.digest, known[estimator.id])
    new = tuple(estimator for estimator in own if estimator.id not in known)
    following, made = next_counter(ctx, context, head), _digests(new)
    earlier = [id_ for id_ in made if id_.counter < following]
    announced = find_creations(ctx, task.process, earlier) if earlier else {}
    check_counters(made, announced, following, context.parameters.agreed.n_new)
    splits = {estimator.id: estimator.tree.n_internal for estimator in new}
    check_not_copied(task.node, made, splits, held)
    for estimator in new:
        check_format(estimator.tree, context.limits)
    return new


def _ids(estimators: Sequence[Estimator]) -> list[EstimatorId]:
    return [estimator.id for estimator in estimators]


def _digests(estimators: Sequence[Estimator]) -> Members:
    return {estimator.id: estimator.tree.digest for estimator in estimators}
