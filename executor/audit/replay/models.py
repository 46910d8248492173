"""Models: the last ensemble that a task signed, published once, open to those whom its owner allows."""

from executor.audit.findings import Findings
from executor.audit.replay.view import View, Written
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import ModelAccess
from protocol.canonical import parse_float
from protocol.defence import Membership, greatest_share
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.ledger import keys
from protocol.ledger.common import EnsembleMember
from protocol.ledger.estimators import EstimatorRecord, TreeRecord
from protocol.ledger.models import AccessRecord, MemberRecord, ModelRecord
from protocol.ledger.processes import ProcessRecord
from protocol.ledger.requests import AccessRequest
from protocol.ledger.tasks import Head, ResultRecord
from protocol.task.result import ensemble_digest

ROUNDING = 1e-9
SENTENCES = {
    "models": "each model is the last ensemble that its node's task signed, tree by tree; no process"
    " completed without the models of its nodes",
    "vote cap": "in the vote of each model no other organisation weighs more than its process lets it",
    "access": "each change of who may read a model was made by its owner, or decided as its process says",
}


def check_model(findings: Findings, view: View, item: Written) -> None:
    """A model is published once by its node, before that by a member, and is the node's last ensemble."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ModelRecord)  # noqa: S101
    before = view.before(item.raw_key, ModelRecord)
    first = before is None or (before.missing is not None and record.missing is None)
    findings.check("models", first, f"{key} was overwritten", where)
    allowed = _may_publish(view, record)
    findings.check("models", allowed, f"{key} was published by {view.creator.name[:64]}", where)
    head = view.before(keys.head(record.process, record.node), Head)
    last = None
    if head is not None:
        last = view.before(keys.result(record.process, head.iteration, record.node), ResultRecord)
    same = (
        last is not None
        and last.ensemble == record.estimators
        and last.ensemble_digest == record.digest
        and last.signed.payload_digest == record.result
    )
    same = last is not None and same and (last.iteration, last.image) == (record.iteration, record.image)
    findings.check("models", same, f"{key} is not the last ensemble of its node", where)
    status = view.process(record.process).status
    running = status is ProcessState.RUNNING and record.iteration + 1 == view.plan(record.process).iterations
    done = running or status is ProcessState.COMPLETED
    findings.check("models", done, f"{key} was published before its node had done its part", where)
    if before is None:
        wanted = [keys.member(record.process, member.id, record.node) for member in record.estimators]
        wanted.append(keys.access(record.process, record.node))
        noted = all(place in view.written for place in wanted)
        findings.check("models", noted, f"{key} came without its readers, or the list of its trees", where)
    if record.missing is not None:
        _check_for_another(findings, view, item, record, last)
    members = [(member.id, member.digest) for member in record.estimators]
    right = ensemble_digest(members) == record.digest
    findings.check("models", right, f"{key} names another digest than its trees have", where)
    _check_vote(findings, view, item, record)
    private = record.stored if view.plan(record.process).specification.confidential else ()
    elsewhere = {*private, *(record.missing or ())}
    for member in record.estimators:
        if member.id in elsewhere:
            continue
        there = _digest(view, record, member) == member.digest
        findings.check("models", there, f"{key} holds {member.id}, whose tree is not on the ledger", where)


def _may_publish(view: View, record: ModelRecord) -> bool:
    """Whether the creator may: the node itself, or for it any organisation of the consortium."""
    plan, caller = view.plan(record.process), view.creator
    if record.owner != plan.nodes.get(record.node):
        return False
    if record.missing is not None:
        return caller.organisation.msp_id in plan.consortium
    own = caller.attributes.get("node") == record.node
    return own and caller.organisation.msp_id == record.owner


def _check_for_another(
    findings: Findings, view: View, item: Written, record: ModelRecord, last: ResultRecord | None
) -> None:
    """What is published for a node says nothing but what the ledger had: figures too, and what is missing."""
    key, where = item.key, view.where
    ended = record.iteration + 1 == view.plan(record.process).iterations
    findings.check("models", ended, f"{key} is of a node that did not do the last iteration", where)
    figures = last is not None and record.metrics == last.metrics and not record.stored
    findings.check("models", figures, f"{key} says of its node what the node did not", where)
    unseen = tuple(member.id for member in record.estimators if _digest(view, record, member) is None)
    findings.check("models", record.missing == unseen, f"{key} misses other trees than it says", where)


def check_completion(findings: Findings, view: View, item: Written) -> None:
    """A process completes with the model of each node that did the last iteration."""
    record = item.record
    assert isinstance(record, ProcessRecord)  # noqa: S101
    before = view.before(item.raw_key, ProcessRecord)
    if before is None or record.status is not ProcessState.COMPLETED or before.status is record.status:
        return
    progress, _ = view.progress(before)
    left = ", ".join(progress.unfinished())
    findings.check("models", not left, f"{item.key} was completed, and {left} had work left", view.where)
    for node in progress.finished():
        there = view.before(keys.model(record.process, node), ModelRecord) is not None
        findings.check("models", there, f"{item.key} was completed without the model of {node}", view.where)


def greatest_vote(view: View, record: ModelRecord) -> tuple[str, float]:
    """Return which other organisation weighs most in a model's vote, and its share."""
    plan = view.plan(record.process)
    members = Membership.of(plan.members(record.iteration))
    ids = [member.id for member in record.estimators]
    return greatest_share(record.node, members, ids, _cap(view, record))


def _check_vote(findings: Findings, view: View, item: Written, record: ModelRecord) -> None:
    """Compare the greatest vote with the cap, where there is one and the owner has trees of its own."""
    cap, nodes = _cap(view, record), view.plan(record.process).nodes
    own = any(nodes.get(member.id.creator) == record.owner for member in record.estimators)
    if cap is None or not own:
        return
    name, share = greatest_vote(view, record)
    what = f"{name} weighs {share:.3f} in the vote of {item.key}, and at most {cap} is agreed"
    findings.check("vote cap", share <= cap + ROUNDING, what, view.where)


def _cap(view: View, record: ModelRecord) -> float | None:
    agreed = view.plan(record.process).specification.voting(record.node, record.iteration)
    stated = agreed.options.get("vote_cap")
    return parse_float(stated) if isinstance(stated, str) else None


def check_tree(findings: Findings, view: View, item: Written) -> None:
    """A tree that comes with a model has the digest on record and is a tree."""
    record, (process, creator, _, node) = item.record, item.key.parts
    assert isinstance(record, TreeRecord)  # noqa: S101
    model = view.written.get(keys.model(str(process), str(node)))
    known = isinstance(model, ModelRecord) and record.id in model.stored and record.id.creator == creator
    findings.check("models", known, f"{item.key} belongs to no model of this transaction", view.where)
    if not isinstance(model, ModelRecord):
        return
    agreed = view.process(model.process).specification
    try:
        record.decode(agreed.voting(model.node, model.iteration).limits)
        findings.count("models")
    except AttestreeError as error:
        findings.check("models", False, f"{item.key}: {error.code}: {error.cause}", view.where)


def check_member(findings: Findings, view: View, item: Written) -> None:
    """That an estimator is in a model is true of the model that this transaction published."""
    record, (process, creator, counter, node) = item.record, item.key.parts
    assert isinstance(record, MemberRecord)  # noqa: S101
    model = view.written.get(keys.model(str(process), str(node)))
    named = isinstance(model, ModelRecord) and any(
        (member.id.creator, member.id.counter) == (creator, counter) for member in model.estimators
    )
    findings.check("models", named, f"{item.key} is in no such model", view.where)


def check_access(findings: Findings, view: View, item: Written) -> None:
    """Access begins with the consortium and changes by those who decide, one organisation at a time."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AccessRecord)  # noqa: S101
    before = view.before(item.raw_key, AccessRecord)
    if before is None:
        published = view.written.get(keys.model(record.process, record.node))
        with_model = isinstance(published, ModelRecord) and published.owner == record.owner
        findings.check("access", with_model, f"{key} begins without its model", where)
        consortium = view.plan(record.process).consortium
        opened = AccessRecord.opened(record.process, record.node, record.owner, consortium, record.change.by)
        findings.check("access", record == opened, f"{key} begins with others than the consortium", where)
        return
    asked = _decided(view, record)
    allowed = asked is not None or _may_change(view, before)
    findings.check("access", allowed, f"{key} was changed by {view.creator.organisation.msp_id}", where)
    change = record.change
    other = change.organisation != record.owner
    there = change.action != "revoke" or change.organisation in before.organisations
    findings.check("access", other and there, f"{key} changes what is the owner's, or nobody's", where)
    if asked is not None:
        expected = asked.carried_out(before, change.by)
    elif change.action == "grant":
        expected = before.with_grant(change.organisation, change.expires, change.by)
    else:
        expected = before.without(change.organisation, change.by)
    findings.check("access", record == expected, f"{key} changed otherwise than it says", where)


def _decided(view: View, record: AccessRecord) -> AccessRequest | None:
    """Return the request that a change of access names, if its transaction decided on it."""
    change = record.change
    if change.request is None:
        return None
    asker = change.organisation if change.asked is None else change.asked
    asked = view.written.get(keys.request(record.process, record.node, asker, change.request))
    return asked if isinstance(asked, AccessRequest) and asked.decision is not None else None


def _may_change(view: View, before: AccessRecord) -> bool:
    """Whether the creator may change access without a request: the owner, where it decides alone."""
    rule = view.process(before.process).specification.model_access
    return rule is ModelAccess.OWNER and before.owner == view.creator.organisation.msp_id


RULES = {
    "process": (check_completion,),
    "model": (check_model,),
    "tree": (check_tree,),
    "member": (check_member,),
    "access": (check_access,),
}


def _digest(view: View, model: ModelRecord, member: EnsembleMember) -> Digest | None:
    """Return the digest of a member's tree, which was shared in the process or came along with the model."""
    if member.id in model.stored:
        kept = view.find(keys.tree(model.process, member.id, model.node), TreeRecord)
        return None if kept is None else kept.digest
    shared = view.before(keys.estimator(model.process, member.id), EstimatorRecord)
    return None if shared is None else shared.digest
