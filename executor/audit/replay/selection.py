"""Which trees may stand where: of others only what a node held, and of each organisation within its quota.

The quota is the part of the defence that anybody recomputes from the ledger (protocol/defence.py); how a node
ranks trees on its private rows is not.
"""

from collections.abc import Sequence
from functools import partial

from executor.audit.findings import Findings
from executor.audit.replay.context import context_of, following_counter
from executor.audit.replay.initial import initial_members
from executor.audit.replay.view import View, Written
from protocol.defence import Membership, Quota
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.estimators import CreationRecord, EstimatorRecord, TwinRecord
from protocol.ledger.tasks import Head, ResultRecord, ShareRecord
from protocol.task.opening import TaskId
from protocol.task.share_rules import check_counters, check_not_copied

SENTENCES = {
    "relays": "each tree of another node that was offered stood in the sender's own ensemble before, and each"
    " new one is of its own FIT",
    "quota": "each share and each ensemble keeps the quota by organisation that its process states",
}


def check_relays(findings: Findings, view: View, item: Written) -> None:
    """Of others, a node offers only what its last ensemble held, or the model that the process began with."""
    record = item.record
    assert isinstance(record, ShareRecord)  # noqa: S101
    others = [member for member in record.estimators if member.id.creator != record.node]
    held = last_ensemble(view, record.process, record.node) if others else {}
    foreign = [member.id for member in others if held.get(member.id) != member.digest]
    what = f"{item.key} offers {foreign[0] if foreign else ''}, which {record.node} did not hold"
    findings.check("relays", not foreign, what, view.where)


def check_new(findings: Findings, view: View, item: Written) -> None:
    """What a share puts on the ledger is the node's own: of this FIT, or as an earlier one announced it."""
    record, process = item.record, str(item.key.parts[0])
    assert isinstance(record, ShareRecord)  # noqa: S101
    own = {member.id: member.digest for member in record.estimators if member.id.creator == record.node}
    known = {id_: digest for id_ in own if (digest := _known(view, process, id_)) is not None}
    new = {id_: digest for id_, digest in own.items() if id_ not in known}
    right = set(record.created) == set(new) and all(own[id_] == digest for id_, digest in known.items())
    findings.check("relays", right, f"{item.key} puts other trees on the ledger than are new", view.where)
    task = TaskId(process, record.node, record.iteration)
    found = {id_: view.before(keys.creation(process, id_), CreationRecord) for id_ in new}
    announced = {id_: creation.digest for id_, creation in found.items() if creation is not None}
    n_new = context_of(view, task).parameters.agreed.n_new
    rule = partial(check_counters, new, announced, following_counter(view, task), n_new)
    findings.allows("relays", rule, str(item.key), view.where)
    held = last_ensemble(view, process, record.node)
    if view.before(keys.head(process, record.node), Head) is None:
        # The chaincode knows of an initial model what is offered again, and no more.
        held = {id_: digest for id_, digest in held.items() if id_ in record.ids}
    twins = {twin.id: twin.n_internal for twin in view.of_kind(TwinRecord)}
    splits = {id_: twins.get(id_, 0) for id_ in new}
    rule = partial(check_not_copied, record.node, new, splits, held)
    findings.allows("relays", rule, str(item.key), view.where)


def check_share_quota(findings: Findings, view: View, item: Written) -> None:
    """A share keeps the quota, where the process states one."""
    record = item.record
    assert isinstance(record, ShareRecord)  # noqa: S101
    agreed = view.plan(record.process).parameters(record.node, record.iteration).agreed
    _check(findings, view, item, record, record.ids, agreed.n_share)


def check_result_quota(findings: Findings, view: View, item: Written) -> None:
    """An ensemble keeps the quota, where the process states one."""
    record = item.record
    assert isinstance(record, ResultRecord)  # noqa: S101
    agreed = view.plan(record.process).parameters(record.node, record.iteration).agreed
    _check(findings, view, item, record, [member.id for member in record.ensemble], agreed.n_max)


RULES = {"share": (check_relays, check_new, check_share_quota), "result": (check_result_quota,)}


def last_ensemble(view: View, process: str, node: str) -> dict[EstimatorId, Digest]:
    """Return the ensemble that a node had: that of its last result, or the model the process began with."""
    head = view.before(keys.head(process, node), Head)
    if head is None:
        return initial_members(view, view.plan(process).specification.initial_model)
    last = view.before(keys.result(process, head.iteration, node), ResultRecord)
    return {} if last is None else {member.id: member.digest for member in last.ensemble}


def _known(view: View, process: str, estimator_id: EstimatorId) -> Digest | None:
    """Return the digest under which the ledger had an estimator: shared before, or in the initial model."""
    shared = view.before(keys.estimator(process, estimator_id), EstimatorRecord)
    if shared is not None:
        return shared.digest
    return initial_members(view, view.plan(process).specification.initial_model).get(estimator_id)


def _check(  # noqa: PLR0917
    findings: Findings,
    view: View,
    item: Written,
    record: ShareRecord | ResultRecord,
    ids: Sequence[EstimatorId],
    places: int,
) -> None:
    plan = view.plan(record.process)
    stated = plan.parameters(record.node, record.iteration).agreed.options.get("quota")
    try:
        c = float(stated) if isinstance(stated, str) else None
    except ValueError:
        c = None
    if c is None:
        return
    try:
        Quota(record.node, Membership.of(plan.members(record.iteration)), c).check(list(ids), places)
        findings.count("quota")
    except AttestreeError as error:
        findings.check("quota", False, f"{item.key}: {error.cause}", view.where)
