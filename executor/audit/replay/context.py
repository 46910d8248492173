"""What a task was checked against when it was written, made from the records before its block.

It is what orchestration's TaskContext answered the execution record, by the same code of `protocol`.
"""

from executor.audit.replay.view import ORCHESTRATION, View
from protocol.agreement.plan import PlannedImage
from protocol.errors import RecordError
from protocol.ledger import keys, task_rules
from protocol.ledger.changes import AgreementRecord, AskRecord, ChangeRecord, OwnWord, change_digest
from protocol.ledger.images import ImageRecord
from protocol.ledger.processes import ProgressRecord, TaskContext, TaskImage
from protocol.ledger.tasks import Head, InitialRecord
from protocol.task.opening import TaskId


def context_of(view: View, task: TaskId) -> TaskContext:
    """Return all that a task is checked against, or raise where its process has no such task."""
    found = view.contexts.get(task)
    if found is None:
        plan = view.plan(task.process)
        if task.node not in plan.nodes or task.iteration >= plan.iterations:
            raise RecordError("RECORD_VALUE", f"process {task.process} has no task {task}")
        done = view.before(keys.progress(task.process, task.node), ProgressRecord)
        upcoming = plan.next_iteration(task.node, 0 if done is None else done.iteration + 1)
        image = _image(view, task, plan.nodes[task.node], plan.image(task.iteration))
        found = task_rules.context_of(view.process(task.process), plan, task, image, upcoming)
        view.contexts[task] = found
    return found


def following_counter(view: View, task: TaskId) -> int:
    """Return the counter of a node's next estimator before the transaction."""
    head = view.before(keys.head(task.process, task.node), Head)
    initial = view.before(keys.initial(task.process), InitialRecord)
    return task_rules.next_counter(head, initial, task.node)


def _image(view: View, task: TaskId, organisation: str, planned: PlannedImage) -> TaskImage:
    """Return the image of a task as it is pinned, and whether its node's organisation agreed to it."""
    registered = view.before(keys.image(planned.name, planned.version), ImageRecord)
    if registered is None:
        raise RecordError("RECORD_VALUE", f"{planned.name} {planned.version} is not registered")
    pin = planned.pin or registered.image.pin
    agreed = planned.change is None or _has_agreed(view, task.process, planned.change, organisation)
    return TaskImage(planned.name, planned.version, pin.image_id, pin.manifest_digest, agreed)


def _has_agreed(view: View, process: str, number: int, organisation: str) -> bool:
    """Whether an organisation asked for a change or agreed to it, and vouched for that."""
    change = view.before(keys.change(process, number), ChangeRecord)
    if change is None or change.ask is None:
        return change is not None
    word: OwnWord | None
    if organisation == change.asked:
        key = keys.ask(process, organisation, change.ask)
        word = view.before(key, AskRecord)
    else:
        key = keys.agreement(process, change.asked, change.ask, organisation)
        word = view.before(key, AgreementRecord)
        if isinstance(word, AgreementRecord) and word.digest != change_digest(change.change):
            word = None
    return word is not None and view.had_mark(ORCHESTRATION, organisation, key, word.mark)
