"""Openings: what a task commits to before it runs, with a key of its own."""

from datetime import datetime, timedelta
from functools import partial

from executor.audit.findings import Findings
from executor.audit.replay.context import context_of
from executor.audit.replay.selection import last_ensemble
from executor.audit.replay.view import View, Written
from protocol.agreement.image import ImagePin
from protocol.digest import Digest
from protocol.ledger import keys
from protocol.ledger.common import ImageVersion
from protocol.ledger.images import ImageRecord
from protocol.ledger.processes import TaskContext
from protocol.ledger.task_rules import check_data
from protocol.ledger.tasks import Head, ImageUseRecord, TaskKeyRecord, TaskRecord
from protocol.task.opening import Opening, inputs_digest
from protocol.task.possession import check_possession
from protocol.task.sandbox import check_profile

SENTENCES = {
    "task images": "each task committed to the image that the process had agreed on, as registered",
    "task keys": "each task's key was on the ledger before the task had results, and served no other task",
    "task inputs": "each task committed to the parameters, the features, the data and the state before it",
    "sandboxes": "each task handed in the container's configuration that it committed to",
}


def check_opening(findings: Findings, view: View, record: TaskRecord, opening: Opening) -> None:
    """A task commits to image, parameters, data and state before it runs, with a key that is new."""
    key, where, context = f"task {record.id}", view.where, context_of(view, record.id)
    findings.allows("tasks", context.check_running, key, where)
    what = f"{key} was opened, and its node had to do {context.next}"
    findings.check("tasks", record.iteration == context.next, what, where)
    findings.check("steps", context.step.opened, f"{key} is of a step that was not open", where)
    findings.check("tasks", record.opened == view.provenance, f"{key} was opened by somebody else", where)
    until = view.now + timedelta(seconds=context.task_seconds)
    timed = record.expires is not None and datetime.fromisoformat(record.expires) == until
    findings.check("tasks", timed, f"{key} has time until {record.expires}, not {until}", where)
    _check_image(findings, view, record, opening, context)
    _check_inputs(findings, view, record, opening, context)
    _check_key(findings, view, record, opening)
    profile = profile_of(view)
    what = f"{key} came without the container's configuration that it committed to"
    if findings.check("sandboxes", bool(profile), what, where):
        findings.allows("sandboxes", partial(check_profile, opening, profile), key, where)


def profile_of(view: View) -> bytes:
    """Return the sandbox profile that a transaction opened a task with; empty where it brought none."""
    said = view.committed.transaction.arguments
    return said[6] if len(said) > 6 and said[0] == b"OpenTask" else b""


def _check_image(
    findings: Findings, view: View, record: TaskRecord, opening: Opening, context: TaskContext
) -> None:
    key, where, planned = f"task {record.id}", view.where, context.image
    registered = view.before(keys.image(planned.name, planned.version), ImageRecord)
    committed = ImagePin(opening.image_id, opening.manifest_digest)
    pinned = ImagePin(planned.image_id, planned.manifest_digest)
    right = registered is not None and committed == registered.image.pin == pinned
    right = right and record.image == ImageVersion(planned.name, planned.version)
    what = f"{key} committed to image {opening.image_id}, which is not {planned.name} {planned.version}"
    findings.check("task images", right, what, where)
    what = f"{record.organisation} did not agree to the image of {key}"
    findings.check("task images", planned.agreed, what, where)
    place = (planned.name, planned.version, record.process, record.node, record.iteration, record.attempt)
    noted = keys.imageuse(*place) in view.written
    findings.check("task images", noted, f"{key} is not noted under its image", where)


def _check_inputs(
    findings: Findings, view: View, record: TaskRecord, opening: Opening, context: TaskContext
) -> None:
    key, where = f"task {record.id}", view.where
    agreed = (context.parameters_digest, context.schema_digest)
    same = agreed == (opening.parameter_hash, opening.schema_digest)
    findings.check("task inputs", same, f"{key} committed to other parameters or features", where)
    head = view.before(keys.head(record.process, record.node), Head)
    state = None if head is None else head.state
    findings.check("task inputs", opening.state == state, f"{key} begins with another state", where)
    findings.allows("task inputs", partial(check_data, head, context.parameters, opening), key, where)
    if context.parameters.needs_estimators:
        held = bool(last_ensemble(view, record.process, record.node))
        findings.check("task inputs", held, f"{key} needs estimators, and the node had none", where)
    inputs = inputs_digest(record.id, opening)
    findings.check("task inputs", record.inputs_digest == inputs, f"{key} has another inputs digest", where)


def _check_key(findings: Findings, view: View, record: TaskRecord, opening: Opening) -> None:
    key, where = f"task {record.id}", view.where
    try:
        proof = bytes.fromhex(record.proof or "")
    except ValueError:
        proof = b""
    rule = partial(check_possession, record.id, record.organisation, opening, proof)
    findings.allows("task keys", rule, f"{key} has no proof of its key", where)
    used = keys.taskkey(str(Digest.of(opening.public_key.raw)))
    claim = TaskKeyRecord(record.process, record.node, record.iteration, record.attempt)
    fresh = view.written.get(used) == claim and view.before(used, TaskKeyRecord) is None
    findings.check("task keys", fresh, f"the key of {key} was not claimed, or before", where)


def check_task_key(findings: Findings, view: View, item: Written) -> None:
    """A key is noted as used by the transaction that opens a task with it, and by no other."""
    record = item.record
    assert isinstance(record, TaskKeyRecord)  # noqa: S101
    task = view.written.get(keys.task(record.process, record.node, record.iteration))
    opening = task.opening if isinstance(task, TaskRecord) else None
    mine = opening is not None and str(Digest.of(opening.public_key.raw)) == item.key.parts[0]
    findings.check("task keys", mine, f"{item.key} is the key of no task of this transaction", view.where)


def check_image_use(findings: Findings, view: View, item: Written) -> None:
    """That a task used an image is true of the task that this transaction opened."""
    record, (name, version, process, node, iteration, attempt) = item.record, item.key.parts
    assert isinstance(record, ImageUseRecord)  # noqa: S101
    task = view.written.get(keys.task(str(process), str(node), int(iteration)))
    true = (
        isinstance(task, TaskRecord)
        and task.image == ImageVersion(str(name), str(version))
        and task.opening is not None
        and (task.opening.image_id, task.organisation) == (record.image_id, record.organisation)
        and (task.attempt, view.provenance.tx) == (attempt, record.tx)
    )
    findings.check("task images", true, f"{item.key} is not what the task committed to", view.where)


RULES = {"imageuse": (check_image_use,), "taskkey": (check_task_key,)}
