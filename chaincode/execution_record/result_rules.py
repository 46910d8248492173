"""Whether a task's result fits what is on the ledger.

Everything read here is written by the node itself or written once (estimators, shares), so that twenty nodes
can complete in one block.
"""

from collections.abc import Iterable

from chaincode.execution_record.store import (
    CheckedResult,
    Members,
    OfferedShare,
    find_digests,
    find_ensemble,
    find_head,
    find_initial_trees,
    find_shares,
    next_counter,
)
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.ledger.tasks import Head
from protocol.task.opening import TaskId
from protocol.task.result import NO_ENSEMBLE, SlotRead, TaskResult, check_kind, ensemble_digest
from protocol.task.result_rules import check_iteration, check_unread, created_ids, place_of, unread_neighbours


def check_result(ctx: Context, task: TaskId, result: TaskResult, context: TaskContext) -> CheckedResult:
    """Return the result with the ledger's digests, or refuse it.

    A step that does not learn leaves the ensemble as it was and comes to the output of its kind. Of others:

    1. FIT created n_new estimators with the counters that follow, and those already shared are the same.
    2. GET read what the neighbours offered this node, all of it in a synchronous process.
    3. The ensemble comes from the last one, from FIT and from GET, has at most n_max members, and its digest
       is the one the result states.
    """
    head = find_head(ctx, task.process, task.node)
    agreed = context.parameters.agreed
    check_kind(result, context.parameters, task.node)
    if not context.step.kind.learns:
        return _check_unchanged(ctx, task, result, context, head)
    created = _check_created(ctx, task, result, next_counter(ctx, context, head), agreed.n_new)
    taken, places = _check_slots(ctx, task, result, context)
    fetched = {id_: Digest.parse(taken[str(id_)]) for id_ in result.ensemble if str(id_) in taken}
    known = {**fetched, **created}
    if head is None:
        before = find_initial_trees(ctx, context, [id_ for id_ in result.ensemble if id_ not in known])
    else:
        before = find_ensemble(ctx, task, head)
    ensemble = _check_ensemble(result, {**before, **known}, agreed.n_max)
    return CheckedResult(created, ensemble, places, head)


def _check_unchanged(
    ctx: Context, task: TaskId, result: TaskResult, context: TaskContext, head: Head | None
) -> CheckedResult:
    """Return the ensemble that a step which does not learn found and left."""
    _check_created(ctx, task, result, next_counter(ctx, context, head), 0)
    initial = context.parameters.initial_model
    if head is not None:
        before, expected = find_ensemble(ctx, task, head), head.ensemble_digest
    else:
        before = find_initial_trees(ctx, context, result.ensemble)
        expected = NO_ENSEMBLE if initial is None else initial.digest
    ensemble = _check_ensemble(result, before, len(result.ensemble))
    if result.ensemble_digest != expected:
        raise StateError(
            "RESULT_ENSEMBLE", f"step {context.step.name} does not learn, and {task.node} had {expected}"
        )
    return CheckedResult({}, ensemble, (), head)


def _check_created(ctx: Context, task: TaskId, result: TaskResult, following: int, n_new: int) -> Members:
    ids = created_ids(result, task.node, following, n_new)
    created = dict(zip(ids, result.created, strict=True))
    for estimator_id, digest in find_digests(ctx, task.process, ids).items():
        if created[estimator_id] != digest:
            raise StateError(
                "ESTIMATOR_CONFLICT", f"{estimator_id} was shared as {digest}, not {created[estimator_id]}"
            )
    return created


def _check_slots(
    ctx: Context, task: TaskId, result: TaskResult, context: TaskContext
) -> tuple[dict[str, str], tuple[tuple[SlotRead, tuple[int, ...]], ...]]:
    """Return what was taken with the digests of the shares it came from, and its ranks in each of them.

    Ids and digests stay text here: of two thousand estimators that a node is offered it may keep fifty.
    """
    shares = find_shares(ctx, task.process, [(slot.iteration, slot.sender) for slot in result.slots])
    taken: dict[str, str] = {}
    places: list[tuple[SlotRead, tuple[int, ...]]] = []
    for slot in result.slots:
        share = _check_slot(task, slot, shares.get((slot.iteration, slot.sender)), context)
        ids = list(map(str, slot.taken))
        if not share.offers.keys() >= {*ids, *(str(estimator_id) for estimator_id, _ in slot.refused)}:
            raise StateError("RESULT_SLOT", f"{place_of(slot)} did not offer {_list(_foreign(slot, share))}")
        for text in ids:
            taken[text] = share.offers[text]
        if ids:
            ranks = {text: rank for rank, text in enumerate(share.offers)}
            places.append((slot, tuple(ranks[text] for text in ids)))
    if context.synchronous:
        _check_all_read(ctx, task, result, context)
    return taken, tuple(places)


def _check_slot(
    task: TaskId, slot: SlotRead, share: OfferedShare | None, context: TaskContext
) -> OfferedShare:
    place = place_of(slot)
    if share is None or not share.is_for(task.node):
        raise StateError("RESULT_SLOT", f"{place} offered {task.node} nothing")
    if context.synchronous:
        check_iteration(slot, task.iteration)
    if str(slot.share) != share.digest:
        raise StateError("RESULT_SLOT", f"{place} offered {share.digest}, not {slot.share}")
    return share


def _foreign(slot: SlotRead, share: OfferedShare) -> list[EstimatorId]:
    named = (*slot.taken, *(estimator_id for estimator_id, _ in slot.refused))
    return sorted(estimator_id for estimator_id in named if str(estimator_id) not in share.offers)


def _check_all_read(ctx: Context, task: TaskId, result: TaskResult, context: TaskContext) -> None:
    """Refuse a result that left out a neighbour, unless that one shared before it became a neighbour."""
    unread = unread_neighbours(result.slots, context.neighbours)
    shares = find_shares(ctx, task.process, [(task.iteration, sender) for sender in unread])
    check_unread(unread, {sender: share.is_for(task.node) for (_, sender), share in shares.items()})


def _check_ensemble(result: TaskResult, available: Members, n_max: int) -> Members:
    if len(result.ensemble) > n_max:
        raise StateError("RESULT_ENSEMBLE", f"{len(result.ensemble)} estimators are more than {n_max}")
    foreign = [estimator_id for estimator_id in result.ensemble if estimator_id not in available]
    if foreign:
        raise StateError(
            "RESULT_ENSEMBLE", f"{_list(foreign)} came neither from FIT nor from GET nor from before"
        )
    ensemble = {estimator_id: available[estimator_id] for estimator_id in result.ensemble}
    digest = ensemble_digest(list(ensemble.items()))
    if digest != result.ensemble_digest:
        raise StateError("RESULT_ENSEMBLE", f"the ensemble has digest {digest}, not {result.ensemble_digest}")
    return ensemble


def _list(ids: Iterable[EstimatorId]) -> str:
    return ", ".join(str(estimator_id) for estimator_id in list(ids)[:5])
