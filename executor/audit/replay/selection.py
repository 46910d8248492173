"""Which trees may stand where: of others only what a node held, and of each organisation within its quota.

The quota is the part of the defence that anybody recomputes from the ledger (protocol/defence.py); how a node
ranks trees on its private rows is not.
"""

from collections.abc import Sequence

from executor.audit.findings import Findings
from executor.audit.replay.shares import initial_members
from executor.audit.replay.view import View, Written
from protocol.defence import Membership, Quota
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.tasks import Head, ResultRecord, ShareRecord

SENTENCES = {
    "relays": "each tree of another node that was offered stood in the sender's own ensemble before",
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


RULES = {"share": (check_relays, check_share_quota), "result": (check_result_quota,)}


def last_ensemble(view: View, process: str, node: str) -> dict[EstimatorId, Digest]:
    """Return the ensemble that a node had: that of its last result, or the model the process began with."""
    head = view.before(keys.head(process, node), Head)
    if head is None:
        return initial_members(view, view.plan(process).specification.initial_model)
    last = view.before(keys.result(process, head.iteration, node), ResultRecord)
    return {} if last is None else {member.id: member.digest for member in last.ensemble}


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
