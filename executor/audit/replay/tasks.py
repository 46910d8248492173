"""Tasks: committed to before they ran, on what the process had agreed, signed by a key of their own."""

from executor.audit.findings import Findings
from executor.audit.replay.selection import last_ensemble
from executor.audit.replay.view import View, Written
from protocol.agreement.image import ImagePin
from protocol.agreement.lifecycle import TASK, TaskState
from protocol.digest import Digest
from protocol.errors import RecordError, SignatureError
from protocol.ledger import keys
from protocol.ledger.common import ImageVersion, Signed
from protocol.ledger.images import ImageRecord
from protocol.ledger.tasks import Head, ImageUseRecord, RefusalRecord, TaskKeyRecord, TaskRecord
from protocol.task.opening import Opening, inputs_digest, statement
from protocol.task.possession import check_possession
from protocol.task.sandbox import check_profile
from protocol.task.statement import Action, verify_statement

SENTENCES = {
    "tasks": "each task was opened, shared and completed in order, for a node by its own organisation",
    "task images": "each task committed to the image that the process had agreed on, as registered",
    "task keys": "each task's key was on the ledger before the task had results, and served no other task",
    "task inputs": "each task committed to the parameters, the features, the data and the state before it",
    "sandboxes": "each container's configuration that a task handed in is the one it committed to",
    "task signatures": "each share and each result is signed by the key of its task",
}


def check_task(findings: Findings, view: View, item: Written) -> None:
    """A task moves along its life cycle, by its own organisation."""
    record, key = item.record, item.key
    assert isinstance(record, TaskRecord)  # noqa: S101
    before = view.before(item.raw_key, TaskRecord)
    owner = view.plan(record.process).nodes.get(record.node)
    mine = record.organisation == owner == view.creator.organisation.msp_id
    findings.check("tasks", mine, f"{key} was written by {view.creator.organisation.msp_id}", view.where)
    moved = _moved(before, record)
    was = TaskState.ABSENT if before is None else before.state
    findings.check("tasks", moved, f"{key} went from {was} to {record.state}", view.where)
    if record.opening is None:
        return
    if before is None or before.opening != record.opening:
        check_opening(findings, view, record, record.opening, before)
    for action, signed in ((Action.SHARE, record.share), (Action.COMPLETE, record.result)):
        known = None if before is None else before.share if action is Action.SHARE else before.result
        if signed is not None and signed != known:
            check_signed(findings, view, record, action, signed)


def check_opening(
    findings: Findings, view: View, record: TaskRecord, opening: Opening, before: TaskRecord | None
) -> None:
    """A task commits to image, parameters, data and state before it runs, with a key that is new."""
    key, where = f"task {record.id}", view.where
    is_node = view.creator.attributes.get("node") == record.node
    findings.check("tasks", is_node, f"{key} was opened by {view.creator.name[:64]}", where)
    findings.check("tasks", record.state is TaskState.OPEN, f"{key} begins as {record.state}", where)
    attempt = 1 if before is None else before.attempt + 1
    findings.check("tasks", record.attempt == attempt, f"{key} is attempt {record.attempt}", where)
    plan = view.plan(record.process)
    findings.check("steps", plan.is_open(record.iteration), f"{key} is of a step that was not open", where)
    planned = plan.image(record.iteration)
    registered = view.find(keys.image(planned.name, planned.version), ImageRecord)
    committed = ImagePin(opening.image_id, opening.manifest_digest)
    right = registered is not None and committed == registered.image.pin == (planned.pin or committed)
    what = f"{key} committed to image {opening.image_id}, which is not {planned.name} {planned.version}"
    findings.check("task images", right, what, where)
    parameters = plan.parameters(record.node, record.iteration)
    agreed = (parameters.digest, parameters.agreed.schema_digest)
    same = agreed == (opening.parameter_hash, opening.schema_digest)
    findings.check("task inputs", same, f"{key} committed to other parameters or features", where)
    head = view.find(keys.head(record.process, record.node), Head)
    state = None if head is None else head.state
    findings.check("task inputs", opening.state == state, f"{key} begins with another state", where)
    if parameters.needs_estimators:
        held = bool(last_ensemble(view, record.process, record.node))
        findings.check("task inputs", held, f"{key} needs estimators, and the node had none", where)
    inputs = inputs_digest(record.id, opening)
    findings.check("task inputs", record.inputs_digest == inputs, f"{key} has another inputs digest", where)
    used = keys.taskkey(str(Digest.of(opening.public_key.raw)))
    claim = view.written.get(used)
    mine = isinstance(claim, TaskKeyRecord) and (claim.process, claim.node, claim.iteration) == (
        record.process,
        record.node,
        record.iteration,
    )
    profile = profile_of(view)
    if profile:
        _check_profile(findings, view, record, opening, profile)
    findings.check("task keys", _is_proved(record, opening), f"{key} has no proof of its key", where)
    fresh = mine and view.before(used, TaskKeyRecord) is None
    findings.check("task keys", fresh, f"the key of {key} was not claimed, or before", where)


def profile_of(view: View) -> bytes:
    """Return the sandbox profile that a transaction opened a task with; empty where it brought none."""
    said = view.committed.transaction.arguments
    return said[6] if len(said) > 6 and said[0] == b"OpenTask" else b""


def _check_profile(
    findings: Findings, view: View, record: TaskRecord, opening: Opening, profile: bytes
) -> None:
    try:
        check_profile(opening, profile)
        findings.count("sandboxes")
    except RecordError as error:
        findings.check("sandboxes", False, f"task {record.id}: {error.cause}", view.where)


def _is_proved(record: TaskRecord, opening: Opening) -> bool:
    """Whether whoever opened the task held its key."""
    try:
        check_possession(record.id, record.organisation, opening, bytes.fromhex(record.proof or ""))
    except (SignatureError, ValueError):
        return False
    return True


def check_signed(findings: Findings, view: View, record: TaskRecord, action: Action, signed: Signed) -> None:
    """A result is signed by the key that an earlier transaction has put on the ledger for this task."""
    opening = record.opening
    assert opening is not None  # noqa: S101
    key = f"task {record.id}"
    before = view.before(keys.task(record.process, record.node, record.iteration), TaskRecord)
    known = before is not None and before.opening == opening
    findings.check("task keys", known, f"the key of {key} was not there before its {action}", view.where)
    try:
        said = statement(record.id, opening, action, signed.payload_digest)
        verify_statement(opening.public_key, said, bytes.fromhex(signed.signature))
        findings.count("task signatures")
    except (SignatureError, ValueError):
        findings.check(
            "task signatures", False, f"the {action} of {key} is not signed by its key", view.where
        )


def check_refusal(findings: Findings, view: View, item: Written) -> None:
    """A refusal is the word of the node that refused."""
    record = item.record
    assert isinstance(record, RefusalRecord)  # noqa: S101
    own = view.creator.attributes.get("node") == record.node
    findings.check("tasks", own, f"{item.key} was written by {view.creator.name[:64]}", view.where)
    fresh = view.before(item.raw_key, RefusalRecord) is None
    findings.check("tasks", fresh, f"{item.key} was overwritten", view.where)


def check_image_use(findings: Findings, view: View, item: Written) -> None:
    """That a task used an image is true of the task that this transaction opened."""
    record, (name, version, process, node, iteration, _) = item.record, item.key.parts
    assert isinstance(record, ImageUseRecord)  # noqa: S101
    task = view.written.get(keys.task(str(process), str(node), int(iteration)))
    true = (
        isinstance(task, TaskRecord)
        and task.image == ImageVersion(str(name), str(version))
        and task.opening is not None
        and task.opening.image_id == record.image_id
        and record.tx == view.provenance.tx
    )
    findings.check("task images", true, f"{item.key} is not what the task committed to", view.where)


RULES = {"task": (check_task,), "refusal": (check_refusal,), "imageuse": (check_image_use,)}


def _moved(before: TaskRecord | None, after: TaskRecord) -> bool:
    """Whether the life cycle has the way; an unfinished task whose time was over counts as expired."""
    was = after.after if before is None or after.attempt != before.attempt else before.state
    if before is not None and after.attempt != before.attempt:
        overdue = before.is_under_way and was is TaskState.EXPIRED
        if was is not before.state and not overdue:
            return False
    return any(row[1] is was and row[2] is after.state for row in TASK.table)
