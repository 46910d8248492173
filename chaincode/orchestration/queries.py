"""Reading processes: records, lists, status, history, and the contexts of the other chaincodes."""

from chaincode.common import DEFAULT_PAGE, LedgerContract, all_stored, history_page, page, stored_page
from chaincode.common.calls import image_record
from chaincode.common.own import find_word, find_words, is_word
from chaincode.orchestration.consent import agreements, status_of
from chaincode.orchestration.process import Process, ProcessProgress, next_iteration, owner_of
from chaincode.shim import Context, evaluate
from protocol.agreement.consent import consent_to, needed_to_abort
from protocol.agreement.course import ChangeKind
from protocol.agreement.lifecycle import PROCESS
from protocol.agreement.plan import PlannedImage
from protocol.errors import StateError
from protocol.ledger import keys
from protocol.ledger.changes import (
    AbortStatus,
    AbortVote,
    AbsenceVote,
    AgreementRecord,
    AskRecord,
    AskStatus,
    ChangeRecord,
    ProcessVotes,
    change_digest,
)
from protocol.ledger.common import History, Page, ReasonedProvenance
from protocol.ledger.processes import (
    AccessTerms,
    BriefRecord,
    ModelContext,
    NodeProgress,
    ProcessBrief,
    ProcessRecord,
    ProcessStatus,
    ProgressRecord,
    TaskContext,
    TaskImage,
)
from protocol.ledger.task_rules import context_of, place_of
from protocol.task.opening import TaskId


class ProcessQueries(LedgerContract):
    """What anyone on the channel may ask."""

    @evaluate
    def get(self, ctx: Context, process: str) -> ProcessRecord:
        """Return the record of a process."""
        return Process.load(ctx, process).with_acceptances()

    @evaluate
    def list(
        self, ctx: Context, status: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ProcessBrief]:
        """List processes by status and id, all or those of one status: `items` in brief, `bookmark`."""
        prefix = ("brief", PROCESS.state(status).value) if status else ("brief",)
        return page(ctx, prefix, size, bookmark, BriefRecord, lambda record: record.shown)

    @evaluate
    def status(self, ctx: Context, process: str) -> ProcessStatus:
        """Return where a process stands: status, acceptances, current iteration, and each node's progress."""
        found = Process.load(ctx, process)
        return _status(found.with_acceptances(), ProcessProgress(ctx, process, found.plan))

    @evaluate
    def asks(
        self, ctx: Context, process: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[AskStatus]:
        """List the changes of a process that are asked for: `items`, `bookmark`.

        What holds is no longer listed, but for an image that an organisation has yet to agree to; nor is
        what a later change has decided otherwise.
        """
        progress = ProcessProgress(ctx, process, Process.load(ctx, process).plan)

        def show(asked: AskRecord) -> AskStatus | None:
            settled = asked.change is not None and asked.kind is not ChangeKind.IMAGE
            settled = settled or (asked.change is None and asked.overtaken_by(progress.plan) is not None)
            place = keys.ask(process, asked.asked, asked.number)
            if settled or asked.withdrawn is not None or not is_word(ctx, asked.asked, place, asked):
                return None
            consent = consent_to(asked.wanted, progress)
            found = status_of(asked, consent, agreements(ctx, asked, consent.members))
            return found if found.missing or not found.holds else None

        return page(ctx, ("ask", process), size, bookmark, AskRecord, show)

    @evaluate
    def changes(
        self, ctx: Context, process: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ChangeRecord]:
        """List the changes of a process that hold, in the order they came to: `items`, `bookmark`."""
        Process.load(ctx, process)
        return stored_page(ctx, ("change", process), size, bookmark, ChangeRecord)

    @evaluate
    def votes(self, ctx: Context, process: str) -> ProcessVotes:
        """Return the votes of a process: to give it up, and to leave out who is silent."""
        found = Process.load(ctx, process)
        progress = ProcessProgress(ctx, process, found.plan)
        present, status = progress.present(), found.record.status
        needed = needed_to_abort(found.specification, status, progress)
        abort = AbortStatus(process, status, abort_votes(ctx, process, progress.plan.consortium), needed)
        absences = [
            vote
            for kind in ("absence", "departure")
            for vote in all_stored(ctx, (kind, process), AbsenceVote)
            if vote.organisation in present
            and vote.nodes.items() <= progress.unfinished().items()
            and is_word(ctx, vote.by.organisation, vote.key, vote)
        ]
        return ProcessVotes(abort, tuple(absences))

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
        found, progress = Process.load_with_progress(ctx, process, node)
        plan = found.plan
        owner_of(plan.nodes, node, process)
        if not 0 <= iteration < found.specification.iterations:
            raise StateError("ITERATION_RANGE", f"{process} has no iteration {iteration}")
        image = _task_image(ctx, found, plan.nodes[node], plan.image(iteration))
        upcoming = next_iteration(plan, node, progress)
        return context_of(found.record, plan, TaskId(process, node, iteration), image, upcoming)

    @evaluate
    def model_context(self, ctx: Context, process: str) -> ModelContext:
        """Return who takes part in a process and whether it has ended; the model chaincode reads it."""
        found = Process.load(ctx, process)
        plan, last = found.plan, found.specification.steps[-1].kind
        nodes = {node: plan.nodes[node] for node in sorted(plan.nodes)}
        return ModelContext(
            process,
            found.record.status,
            plan.consortium,
            nodes,
            plan.iterations,
            found.specification.collection,
            found.specification.description,
            found.specification.model_access,
            found.specification.model_licence,
            None if last.learns else last,
            found.specification.initial_model,
        )

    @evaluate
    def access_terms(self, ctx: Context, process: str) -> AccessTerms:
        """Return the terms on which models of a process are given away; the model chaincode reads it."""
        found = Process.load(ctx, process)
        agreed = found.specification
        return AccessTerms(
            process,
            found.record.status,
            agreed.model_access,
            agreed.model_licence,
            agreed.change_quota,
            ProcessProgress(ctx, process, found.plan).entitled(),
        )


def _status(record: ProcessRecord, progress: ProcessProgress) -> ProcessStatus:
    plan = progress.plan
    return ProcessStatus(
        process=record.process,
        status=record.status,
        consortium=plan.consortium,
        present=progress.present(),
        accepted=tuple(sorted(record.accepted)),
        missing=record.missing,
        iteration=progress.current(),
        iterations=plan.iterations,
        nodes=tuple(_node(progress, node) for node in sorted(plan.nodes)),
        steps=tuple(place_of(plan, step, first) for step, first in plan.specification.places()),
        coordinator=plan.coordinator,
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


def abort_votes(ctx: Context, process: str, members: tuple[str, ...]) -> dict[str, ReasonedProvenance]:
    """Return the votes of these organisations to give a process up."""
    places = {name: keys.abort(process, name) for name in members}
    return {name: vote.by for name, vote in find_words(ctx, places, AbortVote).items()}


def _task_image(ctx: Context, process: Process, organisation: str, planned: PlannedImage) -> TaskImage:
    """Return the image as the process pinned it, retired or not; without a pin, what is registered.

    A change of it may hold without the node's organisation, which then runs nothing until it agrees.
    """
    pin = planned.pin or image_record(ctx, planned.name, planned.version).image.pin
    agreed = planned.change is None or _has_agreed(ctx, process.change_of(planned.change), organisation)
    return TaskImage(planned.name, planned.version, pin.image_id, pin.manifest_digest, agreed)


def _has_agreed(ctx: Context, change: ChangeRecord, organisation: str) -> bool:
    """Whether an organisation asked for a change or agreed to it, by its own endorsement."""
    if change.ask is None:
        return True
    if organisation == change.asked:
        place = keys.ask(change.process, organisation, change.ask)
        return find_word(ctx, organisation, place, AskRecord) is not None
    place = keys.agreement(change.process, change.asked, change.ask, organisation)
    given = find_word(ctx, organisation, place, AgreementRecord)
    return given is not None and given.digest == change_digest(change.change)
