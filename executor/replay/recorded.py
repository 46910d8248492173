"""What the ledger says of a task that is to be run again: image, parameters, opening, slots and outcome."""

from executor.image.comparison import check_image, evidence_of
from executor.ledger.chaincodes.proxies import Ledger
from protocol.agreement.image import Image
from protocol.errors import StateError
from protocol.ledger.processes import TaskContext
from protocol.ledger.tasks import TaskEvidence
from protocol.task.opening import Opening, TaskId
from protocol.task.result import Offer, SlotRead
from protocol.values import dataclass


@dataclass(frozen=True)
class Recorded:
    """A task as the ledger has it, with everything that it read except what is its owner's secret."""

    task: TaskEvidence
    opening: Opening
    context: TaskContext
    image: Image
    offers: tuple[Offer, ...]
    """What its slots held when it read them, by sender."""

    @property
    def id(self) -> TaskId:
        """Which task."""
        return self.task.id

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Whom it offered trees to, and who offered it some, whatever the process became since."""
        recipients = () if self.task.offered is None else self.task.offered.recipients
        return tuple(sorted({*recipients, *(offer.sender for offer in self.offers)}))


def read_recorded(ledger: Ledger, task: TaskId) -> Recorded:
    """Read a task that has put something on the ledger, and all that it takes to run it again."""
    found = ledger.execution.get_task(task)
    if found.opening is None or found.image is None or (found.offered is None and found.outcome is None):
        raise StateError("REPLAY_TASK", f"task {task} has put nothing on the ledger")
    if found.outcome is None and found.offered is not None and found.offered.attempt != found.attempt:
        raise StateError("REPLAY_TASK", f"task {task} was opened again after its share, and has no result")
    context = ledger.orchestration.task_context(task)
    if context.parameters_digest != found.opening.parameter_hash:
        raise StateError("REPLAY_TASK", f"the parameters of task {task} are no longer the process's")
    image = ledger.images.get(found.image.name, found.image.version).image
    check_image(image.image_id, found.opening.image_id, evidence_of(image))
    slots = () if found.outcome is None else found.outcome.slots
    return Recorded(found, found.opening, context, image, tuple(_offer(ledger, task, slot) for slot in slots))


def _offer(ledger: Ledger, task: TaskId, slot: SlotRead) -> Offer:
    """Return what a slot held: the sender's share of that iteration, which is written once."""
    offered = ledger.execution.get_task(TaskId(task.process, slot.sender, slot.iteration)).offered
    if offered is None or offered.signed.payload_digest != slot.share:
        raise StateError("REPLAY_TASK", f"task {task} read a share of {slot.sender} that is not there")
    return Offer(slot.sender, slot.iteration, slot.share, offered.ids)
