"""The functions of the execution record that read tasks, shares and results: for audits and running tasks."""

from collections.abc import Iterator

from chaincode.common import (
    DEFAULT_PAGE,
    history_page,
    keyed_page,
    read_many,
    stored_page,
)
from chaincode.common.calls import model_context, task_context
from chaincode.common.pages import from_bookmark
from chaincode.common.records import fields_of
from chaincode.execution_record.estimator_queries import EstimatorQueries
from chaincode.execution_record.store import (
    find_head,
    find_result,
    find_share,
    find_shares,
    get_task,
)
from chaincode.shim import Context, RefusalError, evaluate
from protocol.digest import Digest
from protocol.errors import IdentifierError, StateError
from protocol.identifiers import (
    EstimatorId,
    check_counter,
    parse_image_name,
    parse_image_version,
    parse_node,
    parse_organisation,
    parse_process,
)
from protocol.ledger import keys
from protocol.ledger.common import History, Page
from protocol.ledger.record import VERSION, LedgerRecord
from protocol.ledger.tasks import (
    HISTORIES,
    FirstShare,
    Head,
    ImageUseRecord,
    Offers,
    RefusalRecord,
    ResultRecord,
    SlotRecord,
    Standing,
    TaskEvidence,
    TaskRecord,
)
from protocol.task.opening import TaskId
from protocol.task.result import Offer

ANY = -1
"""Stands for every iteration where a function may be asked for one."""


class TaskQueries(EstimatorQueries):
    """What the whole channel may read."""

    @evaluate
    def get_task(self, ctx: Context, process: str, node: str, iteration: int) -> TaskEvidence:
        """Return a task with what it offered (`offered`) and what it came to (`outcome`)."""
        task_id = TaskId(process, node, iteration)
        task = get_task(ctx, task_id)
        return TaskEvidence(
            **fields_of(task), offered=find_share(ctx, task_id), outcome=find_result(ctx, task_id)
        )

    @evaluate
    def list_tasks(
        self, ctx: Context, process: str, node: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[TaskRecord]:
        """List the tasks of a process, or of one node, by node and iteration."""
        return stored_page(ctx, _prefix("task", process, node), size, bookmark, TaskRecord)

    @evaluate
    def list_refusals(
        self, ctx: Context, process: str, node: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[RefusalRecord]:
        """List the refused starts of a process, or of one node, with their evidence."""
        return stored_page(ctx, _prefix("refusal", process, node), size, bookmark, RefusalRecord)

    @evaluate
    def artifacts(
        self, ctx: Context, process: str, iteration: int = ANY, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ResultRecord]:
        """List what was published at the end of each run of a process, or of one iteration (-1 for all).

        Each item is the result of one completed task: the estimators created and offered, those taken and
        refused, the ensemble with its digest, and the signature.
        """
        return stored_page(ctx, _results(process, iteration), size, bookmark, ResultRecord)

    @evaluate
    def artifacts_of(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        organisation: str,
        node: str = "",
        iteration: int = ANY,
        size: int = DEFAULT_PAGE,
        bookmark: str = "",
    ) -> Page[ResultRecord]:
        """List what one organisation published: of all its tasks, of one node's, or of one task's.

        By iteration, and within one by node. The results are read by their keys, those of others not at all.
        """
        parse_organisation(organisation)
        owners = model_context(ctx, process).nodes
        nodes = sorted(name for name, owner in owners.items() if owner == organisation and node in ("", name))
        if iteration == ANY:
            heads = read_many(ctx, [keys.head(process, name) for name in nodes], Head)
            iterations = range(max((head.iteration + 1 for head in heads if head is not None), default=0))
        else:
            iterations = range(check_counter(iteration, "iteration"), iteration + 1)
        return keyed_page(ctx, _result_keys(process, iterations, nodes, bookmark), size, ResultRecord)

    @evaluate
    def slots(
        self, ctx: Context, process: str, node: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[SlotRecord]:
        """List the slots of a node as they are now: what each sender offered it last."""
        return stored_page(
            ctx, ("slot", parse_process(process), parse_node(node)), size, bookmark, SlotRecord
        )

    @evaluate
    def offers(self, ctx: Context, process: str, node: str, iteration: int) -> Offers:
        """Return what the neighbours offered a node in exactly this iteration, and who has not shared yet.

        A slot may hold the next iteration's share by the time it is read; a synchronous task reads this,
        and goes on when nobody is missing. Who became a neighbour after sharing offers nothing.
        """
        neighbours = task_context(ctx, TaskId(process, node, iteration)).neighbours
        shares = find_shares(ctx, process, [(iteration, sender) for sender in neighbours])
        slots = [
            Offer(sender, at, Digest.parse(share.digest), tuple(map(EstimatorId.parse, share.offers)))
            for (at, sender), share in shares.items()
            if share.is_for(node)
        ]
        missing = [sender for sender in neighbours if (iteration, sender) not in shares]
        return Offers(process, node, iteration, tuple(slots), tuple(missing))

    @evaluate
    def first_share(self, ctx: Context, process: str, node: str, iteration: int) -> FirstShare:
        """Return who first shared in a task, and when; null before.

        It reads what is written once and nothing else of the task, so that a vote about a node is not void
        whenever the node opens, fails or refuses its task again.
        """
        found = find_share(ctx, TaskId(process, node, iteration))
        return FirstShare(process, node, iteration, None if found is None else found.signed.by)

    @evaluate
    def standing(self, ctx: Context, process: str, node: str) -> Standing:
        """Return where a node stands: last completed iteration, state digest, next counter; null before."""
        head = find_head(ctx, process, node)
        if head is None:
            return Standing(process, node)
        return Standing(
            process, node, head.iteration, head.next_counter, head.state, head.ensemble_digest, VERSION
        )

    @evaluate
    def last_result(self, ctx: Context, process: str, node: str) -> ResultRecord:
        """Return the result of a node's last completed task: what its model is made of."""
        head = find_head(ctx, process, node)
        found = None if head is None else find_result(ctx, TaskId(process, node, head.iteration))
        if found is None:
            raise StateError("TASK_UNKNOWN", f"{node} has completed no task of {process}")
        return found

    @evaluate
    def image_uses(
        self, ctx: Context, name: str, version: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ImageUseRecord]:
        """List in which tasks an image version was used: every launch that committed to it, by process."""
        prefix = ("imageuse", parse_image_name(name), parse_image_version(version))
        return stored_page(ctx, prefix, size, bookmark, ImageUseRecord)

    @evaluate
    def history(
        self, ctx: Context, kind: str, parts: list[str], size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> History[LedgerRecord]:
        """List the changes of one record, newest first: `kind` is task, slot, share, result or head.

        `parts` are those of the key in docs/formats/keys-v1.md, counters as plain numbers; the history of a
        process is the orchestration chaincode's.
        """
        return history_page(ctx, _key_of(kind, parts), size, bookmark, HISTORIES[kind])


def _result_keys(process: str, iterations: range, nodes: list[str], bookmark: str) -> Iterator[str]:
    """Return the keys of these tasks' results in order, from the one that a bookmark names on."""
    found = from_bookmark("result", [process], bookmark)
    first, following = keys.parse(found).parts[1:] if found else (iterations.start, "")
    for iteration in range(max(iterations.start, int(first)), iterations.stop):
        for node in nodes:
            if iteration > int(first) or node >= str(following):
                yield keys.result(process, iteration, node)


def _prefix(kind: str, process: str, node: str) -> tuple[str, ...]:
    return (kind, parse_process(process), parse_node(node)) if node else (kind, parse_process(process))


def _results(process: str, iteration: int) -> tuple[str, ...]:
    if iteration == ANY:
        return ("result", parse_process(process))
    return ("result", parse_process(process), keys.counter_text(check_counter(iteration, "iteration")))


def _key_of(kind: str, parts: list[str]) -> str:
    if kind not in HISTORIES or len(parts) != len(keys.KINDS[kind]):
        wanted = ", ".join(f"{name}({' '.join(keys.KINDS[name])})" for name in HISTORIES)
        raise RefusalError("BAD_ARGUMENT", f"a history is of {wanted}")
    named = zip(keys.KINDS[kind], parts, strict=True)
    return keys.prefix(kind, *[_whole(part) if name == "iteration" else part for name, part in named])


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= keys.COUNTER_DIGITS):
        raise IdentifierError("COUNTER_SYNTAX", f"{text[:20]!r} is not an iteration")
    return int(text)
