"""Reading processes: records, lists, status, history, and the contexts of the other chaincodes."""

from chaincode.common import DEFAULT_PAGE, LedgerContract, history_page, page
from chaincode.common.calls import image_record
from chaincode.orchestration.process import Process, ProcessProgress, find_progress, next_iteration, owner_of
from chaincode.shim import Context, evaluate
from protocol.agreement.lifecycle import PROCESS
from protocol.agreement.plan import PlannedImage
from protocol.errors import StateError
from protocol.ledger import keys
from protocol.ledger.common import History, Page
from protocol.ledger.processes import (
    ChangeRecord,
    ChangeStatus,
    ModelContext,
    NodeProgress,
    ProcessBrief,
    ProcessRecord,
    ProcessStatus,
    ProgressRecord,
    StepPlace,
    TaskContext,
    TaskImage,
)


class ProcessQueries(LedgerContract):
    """What anyone on the channel may ask."""

    @evaluate
    def get(self, ctx: Context, process: str) -> ProcessRecord:
        """Return the record of a process."""
        return Process.load(ctx, process).record

    @evaluate
    def list(
        self, ctx: Context, status: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ProcessBrief]:
        """List processes by id, all or those of one status: `items` in brief, `bookmark`."""
        if status:
            PROCESS.state(status)

        def show(record: ProcessRecord) -> ProcessBrief | None:
            return _brief(record) if status in ("", record.status.value) else None

        return page(ctx, ("process",), size, bookmark, ProcessRecord, show)

    @evaluate
    def status(self, ctx: Context, process: str) -> ProcessStatus:
        """Return where a process stands: status, acceptances, current iteration, and each node's progress."""
        found = Process.load(ctx, process)
        return _status(found.record, ProcessProgress(ctx, process, found.plan))

    @evaluate
    def history(
        self, ctx: Context, process: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> History[ProcessRecord]:
        """List the changes of a process, newest first: `items` of tx, time and value, `bookmark`."""
        Process.load(ctx, process)
        return history_page(ctx, keys.process(process), size, bookmark, ProcessRecord)

    @evaluate
    def progress_history(
        self, ctx: Context, process: str, node: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> History[ProgressRecord]:
        """List how a node advanced in a process, newest first: `items` of tx, time and value, `bookmark`."""
        owner_of(Process.load(ctx, process).plan.nodes, node, process)
        return history_page(ctx, keys.progress(process, node), size, bookmark, ProgressRecord)

    @evaluate
    def task_context(self, ctx: Context, process: str, node: str, iteration: int) -> TaskContext:
        """Return all that a task of a node in an iteration is checked against; execution-record reads it."""
        found = Process.load(ctx, process)
        plan = found.plan
        owner_of(plan.nodes, node, process)
        if not 0 <= iteration < found.specification.iterations:
            raise StateError("ITERATION_RANGE", f"{process} has no iteration {iteration}")
        image = _task_image(ctx, plan.image(iteration))
        upcoming = next_iteration(plan, node, find_progress(ctx, process, node))
        return _task_context(found.record, node, iteration, image, upcoming)

    @evaluate
    def model_context(self, ctx: Context, process: str) -> ModelContext:
        """Return who takes part in a process and whether it has ended; the model chaincode reads it."""
        found = Process.load(ctx, process)
        plan = found.plan
        nodes = {node: plan.nodes[node] for node in sorted(plan.nodes)}
        return ModelContext(
            process,
            found.record.status,
            plan.consortium,
            nodes,
            plan.iterations,
            found.specification.collection,
        )


def _brief(record: ProcessRecord) -> ProcessBrief:
    specification = record.specification
    return ProcessBrief(
        record.process,
        record.status,
        specification.description,
        specification.organisations,
        record.created,
        record.ended,
    )


def _status(record: ProcessRecord, progress: ProcessProgress) -> ProcessStatus:
    plan = progress.plan
    return ProcessStatus(
        process=record.process,
        status=record.status,
        consortium=plan.consortium,
        accepted=tuple(sorted(record.accepted)),
        missing=record.missing,
        iteration=progress.current(),
        iterations=plan.iterations,
        changes=tuple(map(_change, record.changes)),
        nodes=tuple(_node(progress, node) for node in sorted(plan.nodes)),
    )


def _change(entry: ChangeRecord) -> ChangeStatus:
    return ChangeStatus(
        entry.number, entry.kind, entry.iteration, entry.subject, entry.asked, entry.holds, entry.missing
    )


def _node(progress: ProcessProgress, node: str) -> NodeProgress:
    record = progress.records.get(node)
    return NodeProgress(
        node=node,
        organisation=progress.plan.nodes[node],
        completed=None if record is None else record.iteration,
        next=progress.next_of(node),
        left=progress.plan.has_left(node),
        updated=None if record is None else record.updated.time,
    )


def _task_image(ctx: Context, planned: PlannedImage) -> TaskImage:
    """Return the image as the process pinned it; one that was not pinned is what is registered."""
    record = image_record(ctx, planned.name, planned.version)
    pin = planned.pin or record.image.pin
    return TaskImage(planned.name, planned.version, pin.image_id, pin.manifest_digest, record.status)


def _task_context(
    record: ProcessRecord, node: str, iteration: int, image: TaskImage, upcoming: int | None
) -> TaskContext:
    specification, plan = record.specification, record.plan
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
        step=StepPlace(step.name, step.kind, first, step.iterations),
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
