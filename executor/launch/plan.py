"""What a task will be, read and checked before anything is opened, run or written."""

from typing import Any

from executor.data import Dataset
from executor.engine import describe
from executor.image.check import check_local, obtain
from executor.image.comparison import check_image, evidence_of
from executor.launch.session import NodeSession
from executor.ledger.chaincodes.proxies import Ledger
from executor.sandbox.profile import Limits, Profile
from executor.sandbox.support import check_engine
from protocol.agreement.image import Image
from protocol.agreement.parameters import InitialModel
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.processes import TaskContext
from protocol.signing import VerifyKey
from protocol.task.commitment import data_commitment
from protocol.task.opening import Opening, TaskId
from protocol.task.state import StateRecord
from protocol.values import dataclass


@dataclass(frozen=True)
class NextTask:
    """What the ledger says a node has to do next."""

    context: TaskContext
    image: Image
    state: Digest | None
    """The state that the node's last task left; None before its first."""

    @property
    def id(self) -> TaskId:
        """Which task."""
        return self.context.task


@dataclass(frozen=True)
class TaskPlan:
    """Everything a task commits to except its key, and the bytes that go in."""

    task: NextTask
    dataset: Dataset
    salt: bytes
    state: bytes | None
    profile: Profile

    @property
    def context(self) -> TaskContext:
        """What the process agreed on for the task."""
        return self.task.context

    @property
    def commitment(self) -> Digest:
        """The salted commitment to the private data."""
        data = self.dataset
        return data_commitment(self.salt, data.file, data.table.digest, data.schema.digest)

    def opening(self, key: VerifyKey) -> Opening:
        """Return the commitment that goes on the ledger before anything runs."""
        return Opening.for_task(
            self.context, key, state=self.task.state, data=self.commitment, sandbox=self.profile.digest
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as `--dry-run` prints it."""
        context, image = self.context, self.task.image
        return {
            **self.task.id.to_dict(),
            "iterations": context.iterations,
            "synchronous": context.synchronous,
            "neighbours": list(context.neighbours),
            "image": {
                "name": image.name,
                "version": image.version,
                "repository": image.repository,
                "manifest_digest": str(image.manifest_digest),
                "image_id": str(image.image_id),
            },
            "parameters": context.parameters.to_dict(),
            "parameters_digest": str(context.parameters_digest),
            "state": None if self.task.state is None else str(self.task.state),
            "data": {
                "file": str(self.dataset.path),
                "rows": len(self.dataset.table.y),
                "features": len(self.dataset.schema.features),
                "commitment": str(self.commitment),
            },
            "sandbox": {"digest": str(self.profile.digest), "profile": self.profile.to_record()},
        }


def find_next_task(session: NodeSession, last: NextTask | None = None) -> NextTask | None:
    """Read what the node has to do next; None when nothing is left to do.

    After `last` an image that is still the same is not read again: both its digests are in the context.
    """
    ledger = session.ledger
    standing = ledger.execution.standing(session.process, session.node)
    # Any task's context says which comes next; most launches begin with a node's first.
    context = ledger.orchestration.task_context(TaskId(session.process, session.node, 0))
    if context.next is None:
        return None
    if context.next != context.iteration:
        context = ledger.orchestration.task_context(TaskId(session.process, session.node, context.next))
    context.check_running()
    return _with_image(session, context, standing.state, last)


def find_following_task(session: NodeSession, done: NextTask, state: Digest) -> NextTask | None:
    """Read what the node has to do after a task that it has just completed with this state; None if nothing.

    The result is on the ledger on the word of enough organisations, so where it left the node need not be
    asked for: if the ledger says that the next iteration is the node's next task, that is all there is to
    know. It refuses a task that starts from any other state. Whatever else it says is read in full. After the
    last iteration there is none.
    """
    if done.context.is_last:
        return None
    place = TaskId(session.process, session.node, done.id.iteration + 1)
    context = session.ledger.orchestration.task_context(place)
    if context.is_running and context.next == place.iteration:
        return _with_image(session, context, state, done)
    return find_next_task(session, done)


def _with_image(
    session: NodeSession, context: TaskContext, state: Digest | None, last: NextTask | None
) -> NextTask:
    if last is not None and last.context.image == context.image:
        return NextTask(context, last.image, state)
    image = session.ledger.images.get(context.image.name, context.image.version).image
    return NextTask(context, image, state)


def make_plan(
    task: NextTask,
    session: NodeSession,
    dataset: Dataset,
    limits: Limits,
    runtime: str = "",
    *,
    dry: bool = False,
) -> TaskPlan:
    """Check data, state and image against the task, the image last because it may have to be pulled.

    A dry plan pulls nothing: an image that the engine does not have is said to be missing.
    """
    _check_registered(task)
    wanted = task.context.schema_digest
    if dataset.schema.digest != wanted:
        raise StateError(
            "SCHEMA_MISMATCH",
            f"{dataset.path} has columns of schema {dataset.schema.digest}, the process agreed on {wanted}",
        )
    state = _state(task, session)
    # Once for the plan, not between tasks: an engine that changes its image store must be noticed.
    described = describe(session.client)
    check_engine(session.client, runtime, described)  # before a pull, which may take its time
    find = check_local if dry else obtain
    local = find(session.client, task.image, network=session.network, described=described)
    profile = Profile.for_image(
        session.client, local, limits, state is not None, runtime, described=described
    )
    return TaskPlan(task, dataset, session.store.salt(), state, profile)


def _check_registered(task: NextTask) -> None:
    """Refuse to run another image than the task commits to: the two come in two answers of one peer."""
    found, committed = task.image, task.context.image
    check_image(found.image_id, committed.image_id, evidence_of(found))
    check_image(found.manifest_digest, committed.manifest_digest, evidence_of(found))


def _state(task: NextTask, session: NodeSession) -> bytes | None:
    if task.state is not None:
        return session.store.state(task.state)
    initial = task.context.parameters.initial_model
    return None if initial is None else initial_state(task.context, session.ledger, initial).to_bytes()


def initial_state(context: TaskContext, ledger: Ledger, initial: InitialModel) -> StateRecord:
    """Build the state a first task starts from when the process starts from a published model."""
    trees = ledger.models.trees(initial.process, initial.node, used_by=context.process)
    model = [shared.decode(context.limits) for shared in trees]
    return StateRecord.initial(context.task, context.parameters.agreed.seed, model)
