"""Results: what FIT created, what GET took, and the ensemble, each as the task signed it."""

from collections.abc import Sequence
from functools import partial

from executor.audit.findings import Findings
from executor.audit.replay.context import context_of, following_counter
from executor.audit.replay.initial import initial_members
from executor.audit.replay.selection import last_ensemble
from executor.audit.replay.view import View, Written
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.estimators import CreationRecord, EstimatorRecord, TakenRecord
from protocol.ledger.task_rules import data_after, head_after
from protocol.ledger.tasks import Head, ResultRecord, ShareRecord, TaskRecord
from protocol.task.opening import Opening, TaskId
from protocol.task.output import check_output
from protocol.task.result import TaskResult, ensemble_digest
from protocol.task.result_rules import check_iteration, check_unread, created_ids, unread_neighbours

SENTENCES = {
    "results": "each result is, byte for byte, what the task's key signed",
    "slots read": "each result took only what neighbours had offered that node",
    "ensembles": "each ensemble comes from the one before, from FIT and from GET, and has the digest signed",
    "outputs": "each step that does not learn left the ensembles alone and came to the output of its kind",
}

Members = dict[EstimatorId, Digest]


def check_result(findings: Findings, view: View, item: Written) -> None:
    """A result fits its task, what the neighbours offered, and the ensemble before it."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ResultRecord)  # noqa: S101
    findings.check(
        "results", view.before(item.raw_key, ResultRecord) is None, f"{key} was overwritten", where
    )
    task = view.written.get(keys.task(record.process, record.node, record.iteration))
    signed = isinstance(task, TaskRecord) and task.result == record.signed
    findings.check("results", signed, f"{key} is not the one its task signed", where)
    if isinstance(task, TaskRecord):
        share = None if task.share is None else task.share.payload_digest
        said = (record.attempt, record.organisation, record.image, record.share)
        same = said == (task.attempt, task.organisation, task.image, share)
        findings.check("results", same, f"{key} says of its task what the task does not", where)
    following = following_counter(view, TaskId(record.process, record.node, record.iteration))
    opening = task.opening if isinstance(task, TaskRecord) else None
    expected = head_after(record, following, _data_after(view, record, opening))
    left = view.written.get(keys.head(record.process, record.node)) == expected
    findings.check("results", left, f"{key} leaves the node somewhere else", where)
    rebuilt = _rebuilt(record, following)
    same = rebuilt is not None and rebuilt.digest == record.signed.payload_digest
    findings.check("results", same, f"{key} is not what its task signed", where)
    if rebuilt is not None:
        _check_created(findings, view, item, record, rebuilt)
    taken = _check_slots(findings, view, item, record)
    _check_ensemble(findings, view, item, record, taken)
    _check_output(findings, view, item, record)


def check_head(findings: Findings, view: View, item: Written) -> None:
    """Where a node stands is written by its result: nobody rolls it back, or on."""
    record, (process, node) = item.record, map(str, item.key.parts)
    assert isinstance(record, Head)  # noqa: S101
    result = view.written.get(keys.result(process, record.iteration, node))
    right = isinstance(result, ResultRecord)
    findings.check("results", right, f"{item.key} was moved without a result", view.where)


def check_creation(findings: Findings, view: View, item: Written) -> None:
    """That FIT made a tree is written by the task that made it, once."""
    record, (process, creator, counter) = item.record, item.key.parts
    assert isinstance(record, CreationRecord)  # noqa: S101
    result = view.written.get(keys.result(str(process), record.iteration, str(creator)))
    wanted = EstimatorId(str(creator), int(counter))
    said = isinstance(result, ResultRecord) and any(
        member.id == wanted and member.digest == record.digest for member in result.created
    )
    fresh = view.before(item.raw_key, CreationRecord) is None
    findings.check("results", said and fresh, f"{item.key} was not created by this task", view.where)


def check_taken(findings: Findings, view: View, item: Written) -> None:
    """That a node took a tree stands in the result of this transaction."""
    record, (process, sender, iteration, node, _) = item.record, item.key.parts
    assert isinstance(record, TakenRecord)  # noqa: S101
    result = view.written.get(keys.result(str(process), record.iteration, str(node)))
    share = view.before(keys.share(str(process), int(iteration), str(sender)), ShareRecord)
    slots = (
        [slot for slot in result.slots if slot.sender == sender] if isinstance(result, ResultRecord) else []
    )
    named = (
        () if share is None else tuple(share.ids[place] for place in record.places if place < len(share.ids))
    )
    said = any(slot.iteration == iteration and slot.taken == named for slot in slots)
    findings.check("slots read", said, f"{item.key} was not taken by this task", view.where)


RULES = {
    "result": (check_result,),
    "head": (check_head,),
    "creation": (check_creation,),
    "taken": (check_taken,),
}


def _data_after(view: View, record: ResultRecord, opening: Opening | None) -> Digest | None:
    """Return the data that the node has to keep to from now on where rows are held out."""
    head = view.before(keys.head(record.process, record.node), Head)
    if opening is None:
        return None if head is None else head.data
    parameters = view.plan(record.process).parameters(record.node, record.iteration)
    return data_after(head, parameters, opening)


def _rebuilt(record: ResultRecord, first: int) -> TaskResult | None:
    try:
        return record.rebuilt(first)
    except AttestreeError:
        return None


def _check_created(
    findings: Findings, view: View, item: Written, record: ResultRecord, rebuilt: TaskResult
) -> None:
    """FIT created as many trees as agreed, under the node's own name and the counters that follow."""
    task = TaskId(record.process, record.node, record.iteration)
    n_new = context_of(view, task).parameters.agreed.n_new
    try:
        ids = created_ids(rebuilt, record.node, following_counter(view, task), n_new)
    except AttestreeError as error:
        findings.check("ensembles", False, f"{item.key}: {error.cause}", view.where)
        return
    named = tuple(member.id for member in record.created)
    findings.check("ensembles", named == ids, f"{item.key} creates trees under other ids", view.where)
    for member in record.created:
        announced = keys.creation(record.process, member.id) in view.written
        findings.check("results", announced, f"{item.key} does not announce {member.id}", view.where)


def _check_slots(findings: Findings, view: View, item: Written, record: ResultRecord) -> Members:
    """Compare each slot read with the share that its sender signed; return what was taken."""
    taken: Members = {}
    context = context_of(view, TaskId(record.process, record.node, record.iteration))
    if context.synchronous and context.step.kind.learns:
        rule = partial(_check_synchronous, view, record, context.neighbours)
        findings.allows("slots read", rule, str(item.key), view.where)
    initial = initial_members(view, view.plan(record.process).specification.initial_model)
    for slot in record.slots:
        share = view.before(keys.share(record.process, slot.iteration, slot.sender), ShareRecord)
        named = {*slot.taken, *(refused for refused, _ in slot.refused)}
        right = (
            share is not None
            and record.node in share.recipients
            and share.signed.payload_digest == slot.share
            and named <= set(share.ids)
        )
        what = f"{item.key} took from {slot.sender} what it was not offered"
        findings.check("slots read", right, what, view.where)
        for estimator_id in slot.taken:
            digest = initial.get(estimator_id) or _shared(view, record.process, estimator_id)
            if digest is not None:
                taken[estimator_id] = digest
    return taken


def _check_ensemble(
    findings: Findings, view: View, item: Written, record: ResultRecord, taken: Members
) -> None:
    plan = view.plan(record.process)
    before = last_ensemble(view, record.process, record.node)
    available = {**before, **taken, **{made.id: made.digest for made in record.created}}
    foreign = [made for made in record.ensemble if available.get(made.id) != made.digest]
    what = f"{item.key} holds {foreign[0].id if foreign else ''}, which came from nowhere"
    findings.check("ensembles", not foreign, what, view.where)
    members = [(member.id, member.digest) for member in record.ensemble]
    same = ensemble_digest(members) == record.ensemble_digest
    findings.check("ensembles", same, f"{item.key} names another digest than its ensemble has", view.where)
    parameters = plan.parameters(record.node, record.iteration)
    most = parameters.agreed.n_max if parameters.kind.learns else len(before)
    fits = len(members) <= most
    findings.check("ensembles", fits, f"{item.key} has more trees than agreed", view.where)
    for made in record.created:
        shared = _shared(view, record.process, made.id)
        what = f"{item.key} created {made.id} otherwise than it was shared"
        findings.check("ensembles", shared in (None, made.digest), what, view.where)


def _check_synchronous(view: View, record: ResultRecord, neighbours: Sequence[str]) -> None:
    """Refuse a result of a synchronous step that read another iteration, or left out a neighbour."""
    for slot in record.slots:
        check_iteration(slot, record.iteration)
    unread = unread_neighbours(record.slots, neighbours)
    places = {sender: keys.share(record.process, record.iteration, sender) for sender in unread}
    shares = {sender: view.before(place, ShareRecord) for sender, place in places.items()}
    offered = {sender: record.node in share.recipients for sender, share in shares.items() if share}
    check_unread(unread, offered)


def _check_output(findings: Findings, view: View, item: Written, record: ResultRecord) -> None:
    """Check an output by the code of the ledger, and that nothing else came of its task."""
    parameters = view.plan(record.process).parameters(record.node, record.iteration)
    ids = [member.id for member in record.ensemble]
    try:
        check_output(record.output, parameters, record.node, ids)
    except AttestreeError as error:
        findings.check("outputs", False, f"{item.key}: {error.cause}", view.where)
        return
    if parameters.kind.learns:
        return
    before = last_ensemble(view, record.process, record.node)
    same = {member.id: member.digest for member in record.ensemble} == before
    alone = same and not record.created and not record.slots and record.share is None
    findings.check("outputs", alone, f"{item.key} does not learn, and changed the ensemble", view.where)


def _shared(view: View, process: str, estimator_id: EstimatorId) -> Digest | None:
    found = view.find(keys.estimator(process, estimator_id), EstimatorRecord)
    return None if found is None else found.digest
