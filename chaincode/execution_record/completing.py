"""Whether a round's result fits what is on the ledger.

Everything read here is written by the node itself or written once (estimators, shares), so that twenty nodes
can complete in one block.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chaincode.common.records import read
from chaincode.execution_record.initial import initial_members, next_counter
from chaincode.execution_record.records import Head, Members, Offered
from chaincode.execution_record.store import find_digests, find_head, find_shares
from chaincode.execution_record.terms import Terms
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.task.opening import TaskId
from protocol.task.result import RoundResult, SlotRead, ensemble_digest


@dataclass(frozen=True, slots=True)
class Checked:
    """A result that fits: its created estimators, what it took, and its ensemble, with digests."""

    created: Members
    next_counter: int
    taken: Members
    ensemble: Members


def check_result(ctx: Context, task: TaskId, result: RoundResult, terms: Terms) -> Checked:
    """Return the result with the ledger's digests, or refuse it.

    1. FIT created n_new estimators with the counters that follow, and those already shared are the same.
    2. GET read what the neighbours offered this node, all of it in a synchronous process.
    3. The ensemble comes from the last one, from FIT and from GET, has at most n_max members, and its digest
       is the one the result states.
    """
    head = find_head(ctx, task.process, task.node)
    initial = initial_members(ctx, terms)
    following = next_counter(task.node, head, initial)
    before = initial if head is None else _ensemble_after(ctx, task, head)
    created = _check_created(ctx, task, result, following, terms.n_new)
    taken = _check_slots(ctx, task, result, terms, initial)
    ensemble = _check_ensemble(result, {**before, **taken, **created}, terms.n_max)
    return Checked(created, following + terms.n_new, taken, ensemble)


def _check_created(ctx: Context, task: TaskId, result: RoundResult, following: int, n_new: int) -> Members:
    if result.first != following or len(result.created) != n_new:
        raise StateError(
            "RESULT_CREATED",
            f"the result creates {len(result.created)} estimators from {result.first},"
            f" and this FIT creates {n_new} from {following}",
        )
    ids = [EstimatorId(task.node, following + number) for number in range(n_new)]
    created = dict(zip(ids, result.created, strict=True))
    for estimator_id, digest in find_digests(ctx, task.process, ids).items():
        if created[estimator_id] != digest:
            raise StateError(
                "ESTIMATOR_CONFLICT", f"{estimator_id} was shared as {digest}, not {created[estimator_id]}"
            )
    return created


def _check_slots(ctx: Context, task: TaskId, result: RoundResult, terms: Terms, initial: Members) -> Members:
    shares = find_shares(ctx, task.process, [(slot.iteration, slot.sender) for slot in result.slots])
    for slot in result.slots:
        _check_slot(task, slot, shares.get((slot.iteration, slot.sender)), terms)
    if terms.synchronous:
        _check_all_read(ctx, task, result, terms)
    taken = sorted({estimator_id for slot in result.slots for estimator_id in slot.taken})
    known = {**initial, **find_digests(ctx, task.process, taken)}
    return {estimator_id: known[estimator_id] for estimator_id in taken}


def _check_slot(task: TaskId, slot: SlotRead, share: Offered | None, terms: Terms) -> None:
    place = f"{slot.sender} in iteration {slot.iteration}"
    if share is None or task.node not in share.recipients:
        raise StateError("RESULT_SLOT", f"{place} offered {task.node} nothing")
    if terms.synchronous and slot.iteration != task.iteration:
        raise StateError("RESULT_SLOT", f"the slot of {place} was read in iteration {task.iteration}")
    if str(slot.share) != share.signed.payload_digest:
        raise StateError("RESULT_SLOT", f"{place} offered {share.signed.payload_digest}, not {slot.share}")
    named = (*slot.taken, *(estimator_id for estimator_id, _ in slot.refused))
    foreign = sorted(set(named) - set(share.ids))
    if foreign:
        raise StateError("RESULT_SLOT", f"{place} did not offer {_list(foreign)}")


def _check_all_read(ctx: Context, task: TaskId, result: RoundResult, terms: Terms) -> None:
    """Refuse a result that left out a neighbour, unless that one shared before it became a neighbour."""
    read_from = {slot.sender for slot in result.slots}
    unread = [sender for sender in terms.neighbours if sender not in read_from]
    shares = find_shares(ctx, task.process, [(task.iteration, sender) for sender in unread])
    for sender in unread:
        share = shares.get((task.iteration, sender))
        if share is None or task.node in share.recipients:
            raise StateError("RESULT_SLOT", f"the slot of {sender} was not read")


def _ensemble_after(ctx: Context, task: TaskId, head: Head) -> Members:
    record = read(ctx, keys.result(task.process, head.iteration, task.node))
    entries = [] if record is None else record["ensemble"]
    return {EstimatorId.parse(entry["id"]): Digest.parse(entry["digest"]) for entry in entries}


def _check_ensemble(result: RoundResult, available: Members, n_max: int) -> Members:
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
