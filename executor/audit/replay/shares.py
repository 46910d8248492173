"""SHARE: trees under their creators' names, unchanged, offered to neighbours and to nobody else."""

from executor.audit.findings import Findings
from executor.audit.replay.initial import is_member
from executor.audit.replay.view import View, Written
from protocol.agreement.parameters import InitialModel
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.estimators import (
    EstimatorRecord,
    OfferRecord,
    SharedEstimator,
    TreeRecord,
    TwinRecord,
)
from protocol.ledger.tasks import ShareRecord, SlotRecord, TaskRecord
from protocol.trees.kinds import check_format
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
    stored = view.written.get(keys.sharedtree(record.process, record.id))
    same = isinstance(stored, TreeRecord) and stored.digest == record.digest
    elsewhere = view.plan(record.process).specification.confidential and stored is None
    findings.check("estimators", same or elsewhere, f"{key} came without its tree", where)
    share = view.written.get(keys.share(record.process, record.iteration, record.id.creator))
    offered = isinstance(share, ShareRecord) and record.id in share.created
    findings.check("estimators", offered, f"{key} came without the share that offers it", where)
    task = view.written.get(keys.task(record.process, record.id.creator, record.iteration))
    said = isinstance(task, TaskRecord) and (task.attempt, task.image) == (record.attempt, record.image)
    true = said and record.by == view.provenance
    findings.check("estimators", true, f"{key} says of its task what the task does not", where)


def check_tree(findings: Findings, view: View, item: Written) -> None:
    """The bytes of a tree have the digest on record, are a tree within the limits, and came with it."""
    record, (process, creator, _) = item.record, item.key.parts
    assert isinstance(record, TreeRecord)  # noqa: S101
    about = view.written.get(keys.estimator(str(process), record.id))
    known = isinstance(about, EstimatorRecord) and about.id == record.id and record.id.creator == creator
    findings.check("estimators", known, f"{item.key} came without its record", view.where)
    iteration = about.iteration if isinstance(about, EstimatorRecord) else 0
    agreed = view.plan(str(process)).parameters(str(creator), iteration).agreed
    try:
        tree = record.decode(agreed.limits).tree
        check_format(tree, agreed.limits)
        findings.count("estimators")
    except AttestreeError as error:
        findings.check("estimators", False, f"{item.key}: {error.code}: {error.cause}", view.where)
        return
    figures = (tree.n_nodes, tree.depth, len(tree.to_bytes()))
    same = isinstance(about, EstimatorRecord) and figures == (about.n_nodes, about.depth, about.bytes)
    findings.check("estimators", same, f"{item.key} has another size than its record says", view.where)
    splits, tx = tree.n_internal, view.provenance.tx
    twin = TwinRecord(record.digest, record.id, iteration, splits, tx) if splits else None
    place = keys.twin(str(process), str(record.digest), record.id.creator, record.id.counter)
    listed = view.written.get(place) == twin
    findings.check("estimators", listed, f"{item.key} is not listed beside its equals", view.where)


def check_share(findings: Findings, view: View, item: Written) -> None:
    """A share is what the task signed, tree by tree, and goes to the neighbours of its iteration."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ShareRecord)  # noqa: S101
    fresh = view.before(item.raw_key, ShareRecord) is None
    findings.check("shares", fresh, f"{key} was overwritten", where)
    plan = view.plan(record.process)
    neighbours = plan.neighbours(record.node, record.iteration)
    findings.check("neighbours", record.recipients == neighbours, f"{key} went to others", where)
    agreed = plan.parameters(record.node, record.iteration).agreed
    findings.check("shares", len(record.ids) <= agreed.n_share, f"{key} offers too many", where)
    task = view.written.get(keys.task(record.process, record.node, record.iteration))
    signed = isinstance(task, TaskRecord) and task.share == record.signed
    findings.check("shares", signed, f"{key} is not the one its task signed", where)
    if isinstance(task, TaskRecord):
        true = (task.attempt, task.organisation) == (record.attempt, record.organisation)
        findings.check("shares", true, f"{key} says of its task what the task does not", where)
    _check_traces(findings, view, item, record)
    if plan.specification.confidential:
        _check_digests(findings, view, item)
        return
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
    said = [member.digest for member in record.estimators]
    findings.check("shares", said == [tree.digest for tree in found], f"{key} names other digests", where)


def _check_traces(findings: Findings, view: View, item: Written, record: ShareRecord) -> None:
    """Every recipient's slot is filled, and every estimator noted as offered."""
    process, node, iteration = record.process, record.node, record.iteration
    slots = all(keys.slot(process, recipient, node) in view.written for recipient in record.recipients)
    findings.check("slots", slots, f"{item.key} did not reach all of its recipients", view.where)
    offers = all(keys.offer(process, id_, node, iteration) in view.written for id_ in record.ids)
    findings.check("slots", offers, f"{item.key} offers trees that are not noted as offered", view.where)


def _check_digests(findings: Findings, view: View, item: Written) -> None:
    """The trees of a confidential process are not in the blocks; their digests have to be those on record."""
    record = item.record
    assert isinstance(record, ShareRecord)  # noqa: S101
    for member in record.estimators:
        known = view.find(keys.estimator(record.process, member.id), EstimatorRecord)
        same = known is None or known.digest == member.digest
        findings.check("shares", same, f"{item.key} names another digest of {member.id}", view.where)


def check_twin(findings: Findings, view: View, item: Written) -> None:
    """A tree is listed beside its equals when it is put on the ledger, under its own digest."""
    record, process = item.record, str(item.key.parts[0])
    assert isinstance(record, TwinRecord)  # noqa: S101
    about = view.written.get(keys.estimator(process, record.id))
    true = isinstance(about, EstimatorRecord) and about.digest == record.digest
    findings.check("estimators", true, f"{item.key} is about another tree", view.where)


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
    "sharedtree": (check_tree,),
    "share": (check_share,),
    "slot": (check_slot,),
    "offer": (check_offer,),
    "twin": (check_twin,),
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
    record = view.find(keys.sharedtree(process, estimator_id), TreeRecord)
    if record is not None:
        return record.shared
    if initial is None or not is_member(view, initial, estimator_id):
        return None
    shared = view.before(keys.sharedtree(initial.process, estimator_id), TreeRecord)
    kept = shared or view.before(keys.tree(initial.process, estimator_id, initial.node), TreeRecord)
    return None if kept is None else kept.shared
