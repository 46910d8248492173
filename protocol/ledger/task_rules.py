"""What follows from what the ledger has about a node's tasks; chaincode and auditor compute it alike."""

from collections.abc import Iterable
from datetime import datetime

from protocol.agreement.lifecycle import TaskState
from protocol.agreement.parameters import TaskParameters
from protocol.agreement.plan import Plan
from protocol.agreement.step import Step
from protocol.agreement.step_kind import held_out_of
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.common import EnsembleMember
from protocol.ledger.processes import ProcessRecord, StepPlace, TaskContext, TaskImage
from protocol.ledger.tasks import Head, InitialRecord, ResultRecord, TaskRecord
from protocol.task.opening import Opening, TaskId


def context_of(
    record: ProcessRecord, plan: Plan, task: TaskId, image: TaskImage, upcoming: int | None
) -> TaskContext:
    """Return all that a task is checked against, by its process and the iteration its node has to do next."""
    node, iteration, specification = task.node, task.iteration, record.specification
    step, first = specification.step_at(iteration)
    parameters = plan.parameters(node, iteration)
    return TaskContext(
        process=record.process,
        status=record.status,
        node=node,
        organisation=plan.nodes[node],
        iteration=iteration,
        iterations=plan.iterations,
        next=upcoming,
        step=place_of(plan, step, first),
        synchronous=step.synchronous,
        active=plan.is_active(node, iteration),
        neighbours=plan.neighbours(node, iteration),
        image=image,
        parameters=parameters,
        parameters_digest=parameters.digest,
        limits=parameters.agreed.limits,
        schema_digest=parameters.agreed.schema_digest,
        task_seconds=specification.task_seconds,
        consortium=plan.consortium,
        collection=specification.collection,
    )


def place_of(plan: Plan, step: Step, first: int) -> StepPlace:
    """Return a step with the place it has in the process, and whether it is open."""
    return StepPlace(step.name, step.kind, first, step.iterations, plan.is_open(first))


def state_at(task: TaskRecord | None, now: datetime) -> TaskState:
    """Return the state of a task, seeing that an unfinished one has expired when its time is over."""
    if task is None:
        return TaskState.ABSENT
    return TaskState.EXPIRED if task.is_under_way and task.is_expired(now) else task.state


def mark_of(task: TaskRecord) -> str:
    """Return what an organisation vouches for: which attempt this is, and with which key."""
    key = "" if task.opening is None else task.opening.public_key.raw.hex()
    return f"{task.attempt} {key}"


def next_counter(head: Head | None, initial: InitialRecord | None, node: str) -> int:
    """Return the counter of a node's next estimator, by its last task or the model the process began with."""
    if head is not None:
        return head.next_counter
    return 0 if initial is None else initial.next_counters.get(node, 0)


def next_counters(members: Iterable[EnsembleMember]) -> dict[str, int]:
    """Return for each creator of a model the counter after its last."""
    following: dict[str, int] = {}
    for member in members:
        creator, counter = member.id.creator, member.id.counter
        following[creator] = max(following.get(creator, 0), counter + 1)
    return following


def head_after(result: ResultRecord, following: int, data: Digest | None) -> Head:
    """Return where a node stands after a result whose trees have the counters that follow."""
    counter = following + len(result.created)
    return Head(result.iteration, counter, result.state, result.ensemble_digest, data)


def data_after(head: Head | None, parameters: TaskParameters, opening: Opening) -> Digest | None:
    """Return the data that a node's tasks have to keep to where rows are held out; None before the first.

    Which rows are held out is drawn anew from the file of each task: out of another file, or of one with a
    row more, come others, and those that a node is judged by may be rows that it has learned from.
    """
    known = None if head is None else head.data
    return opening.data if known is None and _holds_out(parameters) else known


def check_data(head: Head | None, parameters: TaskParameters, opening: Opening) -> None:
    """Refuse a task that holds rows out of other data than the node's tasks before it did."""
    known = None if head is None else head.data
    if known is not None and _holds_out(parameters) and opening.data != known:
        raise StateError("DATA_MISMATCH", f"rows were held out of data {known}, not of {opening.data}")


def _holds_out(parameters: TaskParameters) -> bool:
    return held_out_of(parameters.agreed.options) is not None
