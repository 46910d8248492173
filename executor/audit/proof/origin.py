"""Where a published model comes from: tasks, trees, images and parameters, read from verified blocks."""

from collections.abc import Iterator
from dataclasses import field

from executor.audit.replay.view import View, Written
from protocol.canonical import Record
from protocol.digest import Digest
from protocol.ledger import keys
from protocol.ledger.common import EnsembleMember
from protocol.ledger.estimators import CreationRecord, EstimatorRecord
from protocol.ledger.images import ImageRecord
from protocol.ledger.models import ModelRecord
from protocol.ledger.tasks import TaskRecord
from protocol.values import dataclass

Task = tuple[str, int]
"""Node and iteration."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """One thing that a model depends on, by its digest."""

    name: str
    digest: Digest
    notes: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Record]:
        """Return it as in-toto describes a resource."""
        made: dict[str, Record] = {"name": self.name, "digest": {"sha256": self.digest.hex}}
        return {**made, "annotations": dict(self.notes)} if self.notes else made


@dataclass(frozen=True)
class Origin:
    """A model as the channel has it, with all that it depends on."""

    record: ModelRecord
    specification: Digest
    started: str
    block: int
    dependencies: tuple[Dependency, ...] = field(repr=False)

    @classmethod
    def of(cls, view: View, record: ModelRecord) -> "Origin":
        """Read it at the transaction that published the model."""
        process = view.process(record.process)
        made = dict(_creations(view, record))
        own = [(record.node, iteration) for iteration in range(record.iteration + 1)]
        tasks = {
            place: found for place in sorted({*own, *made.values()}) if (found := _task(view, record, place))
        }
        opened = [tasks[place].opened for place in own if place in tasks]
        dependencies = [
            Dependency(f"specification {record.process}", process.specification_digest),
            *_initial(view, record),
            *_images(view, tasks),
            *_parameters(tasks, own),
            *_tasks(tasks),
            *_estimators(view, record, made),
        ]
        started = next((by.time for by in opened if by is not None), record.published.time)
        position = view.committed.position
        return cls(record, process.specification_digest, started, position.block, tuple(dependencies))


class OriginSearch:
    """Waits for the transaction that publishes a model."""

    def __init__(self, process: str, node: str) -> None:
        self.found: Origin | None = None
        self._key = ("model", process, node)

    def observe(self, view: View, item: Written) -> None:
        """Look at a record; what the node publishes comes after what a member published for it."""
        if (item.key.kind, *item.key.parts) == self._key and isinstance(item.record, ModelRecord):
            self.found = Origin.of(view, item.record)


def _creations(view: View, record: ModelRecord) -> Iterator[tuple[EnsembleMember, Task]]:
    """Iterate over the trees that were made in this process, each with the task that made it."""
    for member in record.estimators:
        announced = view.before(keys.creation(record.process, member.id), CreationRecord)
        found = announced or view.before(keys.estimator(record.process, member.id), EstimatorRecord)
        if found is not None:
            yield member, (member.id.creator, found.iteration)


def _task(view: View, record: ModelRecord, place: Task) -> TaskRecord | None:
    found = view.before(keys.task(record.process, *place), TaskRecord)
    return found if found is not None and (found.result or found.share) else None


def _initial(view: View, record: ModelRecord) -> Iterator[Dependency]:
    initial = view.process(record.process).specification.initial_model
    if initial is not None:
        yield Dependency(f"model {initial.process}/{initial.node}", initial.digest)


def _images(view: View, tasks: dict[Task, TaskRecord]) -> Iterator[Dependency]:
    used = {task.image for task in tasks.values() if task.image is not None}
    for image in sorted(used, key=lambda image: (image.name, image.version)):
        registered = view.before(keys.image(image.name, image.version), ImageRecord)
        if registered is not None:
            by = registered.registered
            notes = {
                "manifest": str(registered.image.manifest_digest),
                "registered by": by.organisation,
                "transaction": by.tx,
            }
            yield Dependency(f"image {image.name}:{image.version}", registered.image.image_id, notes)


def _parameters(tasks: dict[Task, TaskRecord], own: list[Task]) -> Iterator[Dependency]:
    for place in own:
        task = tasks.get(place)
        if task is not None and task.opening is not None:
            yield Dependency(f"parameters of task {task.id}", task.opening.parameter_hash)


def _tasks(tasks: dict[Task, TaskRecord]) -> Iterator[Dependency]:
    for task in tasks.values():
        signed, opening = task.result or task.share, task.opening
        if signed is None or opening is None:
            continue
        notes = {
            "signed": "result" if task.result else "share",
            "organisation": task.organisation,
            "image": str(opening.image_id),
            "parameters": str(opening.parameter_hash),
            "inputs": str(task.inputs_digest),
            "data": str(opening.data),
            "sandbox": str(opening.sandbox),
            "key": str(opening.public_key),
            "transaction": signed.by.tx,
        }
        yield Dependency(f"task {task.id}", signed.payload_digest, notes)


def _estimators(view: View, record: ModelRecord, made: dict[EnsembleMember, Task]) -> Iterator[Dependency]:
    nodes = view.plan(record.process).nodes
    for member in record.estimators:
        notes = {"organisation": nodes.get(member.id.creator, "")}
        if member in made:
            node, iteration = made[member]
            notes["task"] = f"{record.process}/{node}/{iteration}"
        yield Dependency(f"estimator {member.id}", member.digest, notes)
