"""Tasks: committed to before they ran, then shared, completed or closed, each step by their own node."""

from dataclasses import replace

from executor.audit.findings import Findings
from executor.audit.replay.context import context_of
from executor.audit.replay.openings import check_opening
from executor.audit.replay.view import EXECUTION, View, Written
from protocol.agreement.lifecycle import TASK, TaskState
from protocol.errors import SignatureError
from protocol.ledger import keys
from protocol.ledger.common import Signed
from protocol.ledger.task_rules import mark_of, state_at
from protocol.ledger.tasks import RefusalRecord, ResultRecord, ShareRecord, TaskRecord
from protocol.task.opening import Opening, statement
from protocol.task.statement import Action, verify_statement

SENTENCES = {
    "tasks": "each task was opened, shared and completed in order, by its node, whose organisation vouched",
    "task signatures": "each share and each result is signed by the key of its task",
}
CLOSED = (TaskState.FAILED, TaskState.EXPIRED, TaskState.REFUSED)


def check_task(findings: Findings, view: View, item: Written) -> None:
    """A task moves along its life cycle, by its own organisation, on the commitment it was opened with."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, TaskRecord)  # noqa: S101
    before = view.before(item.raw_key, TaskRecord)
    organisation = view.creator.organisation.msp_id
    mine = record.organisation == view.plan(record.process).nodes.get(record.node) == organisation
    findings.check("tasks", mine, f"{key} was written by {organisation}", where)
    own = view.creator.attributes.get("node") == record.node or record.state is TaskState.EXPIRED
    findings.check("tasks", own, f"{key} was written by {view.creator.name[:64]}", where)
    was = TaskState.ABSENT if before is None else before.state
    moved = _follows(view, before, record)
    findings.check("tasks", moved, f"{key} went from {was} to {record.state}", where)
    begun = before is None or record.attempt != before.attempt
    if begun:
        vouched = view.has_mark(EXECUTION, record.organisation, item.raw_key, mark_of(record))
        findings.check("tasks", vouched, f"{record.organisation} did not vouch for {key}", where)
    else:
        same = _committed(before) == _committed(record)
        findings.check("tasks", same, f"{key} was altered after it was opened", where)
    _check_parts(findings, view, item, before)
    if record.opening is None:
        bare = record.state is TaskState.REFUSED
        findings.check("tasks", bare, f"{key} is {record.state}, and was never opened", where)
    elif begun:
        check_opening(findings, view, record, record.opening)


def _follows(view: View, before: TaskRecord | None, record: TaskRecord) -> bool:
    """Whether the life cycle has the way; an unfinished task whose time was over counts as expired."""
    if before is not None and record.attempt == before.attempt:
        was, late = before.state, before.is_expired(view.now)
        after = was if record.state is TaskState.REFUSED else before.after
        in_time = record.state is TaskState.FAILED or (record.state is TaskState.EXPIRED) is late
        if not (before.is_under_way and record.after is after and in_time):
            return False
    else:
        was = state_at(before, view.now)
        attempt = 1 if before is None else before.attempt + 1
        begins = record.state in (TaskState.OPEN, TaskState.REFUSED)
        if not begins or record.attempt != attempt or record.after is not was:
            return False
    return any(row[1] is was and row[2] is record.state for row in TASK.table)


def _committed(record: TaskRecord | None) -> TaskRecord | None:
    """Return the part of a task that stays as it was opened."""
    if record is None:
        return None
    after = state = TaskState.ABSENT
    return replace(record, state=state, after=after, share=None, result=None, closed=None)


def _check_parts(findings: Findings, view: View, item: Written, before: TaskRecord | None) -> None:
    """A task has the signatures and the closure of the state it is in; what is new in it is judged."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, TaskRecord)  # noqa: S101
    goes_on = before is not None and record.attempt == before.attempt
    shared = before.share if before is not None and goes_on else None
    right = (
        (record.share is not None if record.state is TaskState.SHARED else record.share == shared)
        and (record.result is not None) is (record.state is TaskState.COMPLETED)
        and (record.closed is not None) is (record.state in CLOSED)
        and (record.closed is None or record.closed.by == view.provenance)
    )
    findings.check("tasks", right, f"{key} is {record.state}, and has parts of another state", where)
    if record.state is TaskState.REFUSED:
        place = keys.refusal(record.process, record.node, record.iteration, record.attempt)
        findings.check("tasks", place in view.written, f"{key} was refused without evidence", where)
    if record.opening is None:
        signed = record.share is not None or record.result is not None
        findings.check("task signatures", not signed, f"{key} has results, and no key", where)
        return
    if record.share is not None and record.share != shared:
        _check_share(findings, view, item, record.share)
        check_signed(findings, view, record, record.opening, Action.SHARE, record.share)
    if record.result is not None:
        _check_result(findings, view, item, record.result)
        check_signed(findings, view, record, record.opening, Action.COMPLETE, record.result)


def _check_share(findings: Findings, view: View, item: Written, signed: Signed) -> None:
    """SHARE is of a running process and of a step that learns, and the share is on the ledger."""
    record, where = item.record, view.where
    assert isinstance(record, TaskRecord)  # noqa: S101
    context = context_of(view, record.id)
    findings.allows("tasks", context.check_running, str(item.key), where)
    learns = context.step.kind.learns
    findings.check("tasks", learns, f"{item.key} offers trees in a step that does not learn", where)
    share = view.find(keys.share(record.process, record.iteration, record.node), ShareRecord)
    there = share is not None and share.signed.payload_digest == signed.payload_digest
    findings.check("shares", there, f"{item.key} signed a share that is not on the ledger", where)


def _check_result(findings: Findings, view: View, item: Written, signed: Signed) -> None:
    """COMPLETE is of a running process, after SHARE where there are neighbours, and brings its result."""
    record, where = item.record, view.where
    assert isinstance(record, TaskRecord)  # noqa: S101
    context = context_of(view, record.id)
    findings.allows("tasks", context.check_running, str(item.key), where)
    shared = record.share is not None or not context.neighbours
    findings.check("tasks", shared, f"{item.key} completed without SHARE, and has neighbours", where)
    result = view.written.get(keys.result(record.process, record.iteration, record.node))
    there = isinstance(result, ResultRecord) and result.signed == signed
    findings.check("results", there, f"{item.key} completed without its result", where)
    advanced = keys.progress(record.process, record.node) in view.written
    findings.check("progress", advanced, f"{item.key} completed, and its node did not advance", where)


def check_signed(  # noqa: PLR0917
    findings: Findings, view: View, record: TaskRecord, opening: Opening, action: Action, signed: Signed
) -> None:
    """A result is signed by the key that an earlier transaction has put on the ledger for this task."""
    key, where = f"task {record.id}", view.where
    before = view.before(keys.task(record.process, record.node, record.iteration), TaskRecord)
    known = before is not None and before.opening == opening
    findings.check("task keys", known, f"the key of {key} was not there before its {action}", where)
    said_by = signed.by == view.provenance
    findings.check("tasks", said_by, f"the {action} of {key} names another transaction", where)
    try:
        said = statement(record.id, opening, action, signed.payload_digest)
        verify_statement(opening.public_key, said, bytes.fromhex(signed.signature))
        findings.count("task signatures")
    except (SignatureError, ValueError):
        findings.check("task signatures", False, f"the {action} of {key} is not signed by its key", where)


def check_refusal(findings: Findings, view: View, item: Written) -> None:
    """A refusal is the word of the node that refused, of the task that it had to do next, once."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, RefusalRecord)  # noqa: S101
    own = view.creator.attributes.get("node") == record.node
    findings.check("tasks", own, f"{key} was written by {view.creator.name[:64]}", where)
    fresh = view.before(item.raw_key, RefusalRecord) is None
    findings.check("tasks", fresh, f"{key} was overwritten", where)
    task = view.written.get(keys.task(record.process, record.node, record.iteration))
    closed = task.closed if isinstance(task, TaskRecord) and task.attempt == record.attempt else None
    said = closed is not None and (closed.code, closed.evidence) == (record.code, record.evidence)
    findings.check("tasks", said, f"{key} is not about the task of this transaction", where)
    if isinstance(task, TaskRecord):
        context = context_of(view, task.id)
        findings.allows("tasks", context.check_running, str(key), where)
        findings.allows("tasks", context.check_next, str(key), where)


RULES = {"task": (check_task,), "refusal": (check_refusal,)}
