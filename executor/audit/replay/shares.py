"""SHARE: trees under their creators' names, unchanged, offered to neighbours and to nobody else."""

from executor.audit.findings import Findings
from executor.audit.replay.view import View, Written
from protocol.agreement.process import InitialModel
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.estimators import CreationRecord, EstimatorRecord, OfferRecord, SharedEstimator
from protocol.ledger.models import ModelRecord, TreeRecord
from protocol.ledger.tasks import ShareRecord, SlotRecord, TaskRecord
from protocol.trees.share import Share

SENTENCES = {
    "estimators": "each tree is stored once, under its creator, as bytes that have the digest on record",
    "shares": "each share is, byte for byte, what the task's key signed",
    "neighbours": "each share was offered to the node's neighbours of that iteration, and to nobody else",
    "slots": "each slot holds what its sender signed last",
}


def check_estimator(findings: Findings, view: View, item: Written) -> None:
    """A tree is put on the ledger once, by its creator, well formed and with its own digest."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, EstimatorRecord)  # noqa: S101
    fresh = view.before(item.raw_key, EstimatorRecord) is None
    findings.check("estimators", fresh, f"{key} was overwritten", where)
    own = view.creator.attributes.get("node") == record.id.creator
    owner = view.plan(record.process).nodes.get(record.id.creator)
    mine = own and owner == record.organisation == view.creator.organisation.msp_id
    findings.check("estimators", mine, f"{key} was written by {view.creator.name[:64]}", where)
    parameters = view.plan(record.process).specification.parameters(record.id.creator, record.iteration)
    try:
        record.shared.decode(parameters.agreed.limits)
        findings.count("estimators")
    except AttestreeError as error:
        findings.check("estimators", False, f"{key}: {error.code}: {error.cause}", where)
    announced = view.before(keys.creation(record.process, record.id), CreationRecord)
    same = announced is None or announced.digest == record.digest
    findings.check("estimators", same, f"{key} is not the tree that its FIT announced", where)


def check_share(findings: Findings, view: View, item: Written) -> None:
    """A share is what the task signed, tree by tree, and goes to the neighbours of its iteration."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ShareRecord)  # noqa: S101
    plan = view.plan(record.process)
    neighbours = plan.neighbours(record.node, record.iteration)
    findings.check("neighbours", record.recipients == neighbours, f"{key} went to others", where)
    agreed = plan.specification.parameters(record.node, record.iteration).agreed
    findings.check("shares", len(record.ids) <= agreed.n_share, f"{key} offers too many", where)
    task = view.find(keys.task(record.process, record.node, record.iteration), TaskRecord)
    signed = task is not None and task.share == record.signed
    findings.check("shares", signed, f"{key} is not the one its task signed", where)
    found = _trees(view, record, plan.specification.initial_model)
    if isinstance(found, EstimatorId):
        findings.check("shares", False, f"{key} offers {found}, which nobody put on the ledger", where)
        return
    try:
        digest = Share(tuple(tree.decode(agreed.limits) for tree in found)).digest
    except AttestreeError as error:
        findings.check("shares", False, f"{key}: {error.code}: {error.cause}", where)
        return
    findings.check("shares", digest == record.signed.payload_digest, f"{key} holds other trees", where)


def check_slot(findings: Findings, view: View, item: Written) -> None:
    """A slot repeats the share that its sender signed, for a recipient of it."""
    record, key = item.record, item.key
    assert isinstance(record, SlotRecord)  # noqa: S101
    share = view.written.get(keys.share(record.process, record.iteration, record.sender))
    same = (
        isinstance(share, ShareRecord)
        and share.ids == record.ids
        and share.signed.payload_digest == record.share
        and record.recipient in share.recipients
    )
    findings.check("slots", same, f"{key} holds something else than its sender's share", view.where)


def check_offer(findings: Findings, view: View, item: Written) -> None:
    """That an estimator was offered is true of the share that this transaction brought."""
    record, (process, creator, counter, sender, iteration) = item.record, item.key.parts
    assert isinstance(record, OfferRecord)  # noqa: S101
    share = view.written.get(keys.share(str(process), int(iteration), str(sender)))
    wanted = EstimatorId(str(creator), int(counter))
    true = (
        isinstance(share, ShareRecord) and record.place < len(share.ids) and share.ids[record.place] == wanted
    )
    findings.check("slots", true, f"{item.key} was not offered", view.where)


RULES = {
    "estimator": (check_estimator,),
    "share": (check_share,),
    "slot": (check_slot,),
    "offer": (check_offer,),
}


def _trees(
    view: View, record: ShareRecord, initial: InitialModel | None
) -> list[SharedEstimator] | EstimatorId:
    """Return the trees of a share as the ledger holds them, or the first that it does not."""
    found = []
    for estimator_id in record.ids:
        tree = find_tree(view, record.process, estimator_id, initial)
        if tree is None:
            return estimator_id
        found.append(tree)
    return found


def find_tree(
    view: View, process: str, estimator_id: EstimatorId, initial: InitialModel | None
) -> SharedEstimator | None:
    """Return a tree that was shared in a process, or comes from the model that the process began with."""
    record = view.find(keys.estimator(process, estimator_id), EstimatorRecord)
    if record is not None:
        return record.shared
    if initial is None or not is_member(view, initial, estimator_id):
        return None
    shared = view.before(keys.estimator(initial.process, estimator_id), EstimatorRecord)
    kept = view.before(keys.tree(initial.process, estimator_id, initial.node), TreeRecord)
    if shared is not None:
        return shared.shared
    return None if kept is None else SharedEstimator(kept.id, kept.digest, kept.tree)


def is_member(view: View, initial: InitialModel, estimator_id: EstimatorId) -> bool:
    """Whether an estimator belongs to the model that a process began with."""
    return estimator_id in initial_members(view, initial)


def initial_members(view: View, initial: InitialModel | None) -> dict[EstimatorId, Digest]:
    """Return the estimators of the model that a process began with, with their digests."""
    if initial is None:
        return {}
    model = view.before(keys.model(initial.process, initial.node), ModelRecord)
    if model is None or model.digest != initial.digest:
        return {}
    return {member.id: member.digest for member in model.estimators}
