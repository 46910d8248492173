"""The functions of the execution record that read: an auditor's questions, and what a running round needs."""

from typing import Any

from chaincode.common import DEFAULT_PAGE, LedgerContract, caller_of, history_page, page, read
from chaincode.common.calls import MODEL, ORCHESTRATION, call_json
from chaincode.common.records import parse
from chaincode.execution_record.lineage import as_stored, counter_text, trace
from chaincode.execution_record.store import find_shares, get_task
from chaincode.execution_record.terms import Terms
from chaincode.shim import Context, RefusalError, evaluate
from protocol.errors import IdentifierError, StateError
from protocol.identifiers import EstimatorId, check_counter, parse_node, parse_organisation, parse_process
from protocol.ledger import keys
from protocol.task.opening import TaskId

MAX_ESTIMATORS = 1000
ANY = -1
"""Stands for every iteration where a function may be asked for one."""
HISTORIES = ("task", "slot", "share", "result", "head")


class Queries(LedgerContract):
    """Trees are for the organisations of the process; everything else the whole channel may read."""

    @evaluate
    def get_task(self, ctx: Context, process: str, node: str, iteration: int) -> dict[str, Any]:
        """Return a task with what it offered (`offered`) and what it came to (`outcome`)."""
        task = get_task(ctx, TaskId(process, node, iteration))
        offered = read(ctx, keys.share(process, iteration, node))
        outcome = read(ctx, keys.result(process, iteration, node))
        return {**task.to_dict(), "offered": offered, "outcome": outcome}

    @evaluate
    def list_tasks(
        self, ctx: Context, process: str, node: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the tasks of a process, or of one node, by node and iteration."""
        return page(ctx, _prefix("task", process, node), size, bookmark, as_stored)

    @evaluate
    def list_refusals(
        self, ctx: Context, process: str, node: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the refused starts of a process, or of one node, with their evidence."""
        return page(ctx, _prefix("refusal", process, node), size, bookmark, as_stored)

    @evaluate
    def artifacts(
        self, ctx: Context, process: str, iteration: int = ANY, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List what was published at the end of each run of a process, or of one iteration (-1 for all).

        Each item is the result of one completed task: the estimators created and offered, those taken and
        refused, the ensemble with its digest, and the signature.
        """
        return page(ctx, _results(process, iteration), size, bookmark, as_stored)

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
    ) -> dict[str, Any]:
        """List what one organisation published: of all its tasks, of one node's, or of one task's."""
        parse_organisation(organisation)
        if node:
            parse_node(node)

        def show(record: dict[str, Any]) -> dict[str, Any] | None:
            wanted = record["organisation"] == organisation and node in ("", record["node"])
            return record if wanted else None

        return page(ctx, _results(process, iteration), size, bookmark, show)

    @evaluate
    def slots(
        self, ctx: Context, process: str, node: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the slots of a node as they are now: what each sender offered it last."""
        return page(ctx, ("slot", parse_process(process), parse_node(node)), size, bookmark, as_stored)

    @evaluate
    def offers(self, ctx: Context, process: str, node: str, iteration: int) -> dict[str, Any]:
        """Return what the neighbours offered a node in exactly this iteration, and who has not shared yet.

        A slot may hold the next iteration's share by the time it is read; a synchronous round reads this,
        and goes on when nobody is missing. Who became a neighbour after sharing offers nothing.
        """
        task = TaskId(process, node, iteration)
        neighbours = Terms.of(ctx, task).neighbours
        shares = find_shares(ctx, process, [(iteration, sender) for sender in neighbours])
        offered = [share for share in shares.values() if node in share.recipients]
        return {
            **task.to_dict(),
            "slots": [
                {
                    "sender": share.task.node,
                    "iteration": iteration,
                    "share": share.signed.payload_digest,
                    "ids": [str(estimator_id) for estimator_id in share.ids],
                }
                for share in offered
            ],
            "missing": [sender for sender in neighbours if (iteration, sender) not in shares],
        }

    @evaluate
    def standing(self, ctx: Context, process: str, node: str) -> dict[str, Any]:
        """Return where a node stands: last completed iteration, state digest, next counter; null before."""
        found = read(ctx, keys.head(process, node))
        if found is None:
            found = {"iteration": None, "next_counter": None, "state": None, "ensemble_digest": None}
        return {**found, "process": process, "node": node}

    @evaluate
    def last_result(self, ctx: Context, process: str, node: str) -> dict[str, Any]:
        """Return the result of a node's last completed task: what its model is made of."""
        head = read(ctx, keys.head(process, node))
        found = read(ctx, keys.result(process, head["iteration"], node)) if head else None
        if found is None:
            raise StateError("TASK_UNKNOWN", f"{node} has completed no task of {process}")
        return found

    @evaluate
    def estimator(self, ctx: Context, process: str, estimator: str) -> dict[str, Any]:
        """Return an estimator with its tree in base64 and its origin, to members of the consortium."""
        _check_reader(ctx, process)
        found = read(ctx, keys.estimator(process, EstimatorId.parse(estimator)))
        if found is None:
            raise StateError("ESTIMATOR_UNKNOWN", f"{estimator} was never shared in {process}")
        return found

    @evaluate
    def estimators(self, ctx: Context, process: str, ids: list[str]) -> dict[str, Any]:
        """Return digests and trees (base64) of up to 1000 estimators, to members of the consortium.

        `missing` lists those that were never shared in the process.
        """
        _check_reader(ctx, process)
        if len(ids) > MAX_ESTIMATORS:
            raise RefusalError("BAD_ARGUMENT", f"ask for at most {MAX_ESTIMATORS} estimators")
        values = ctx.get_many([keys.estimator(process, EstimatorId.parse(text)) for text in ids])
        found = [parse(value) for value in values if value is not None]
        return {
            "estimators": [{name: record[name] for name in ("id", "digest", "tree")} for record in found],
            "missing": [text for text, value in zip(ids, values, strict=True) if value is None],
        }

    @evaluate
    def lineage(
        self, ctx: Context, process: str, estimator: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """Trace an estimator: its creator, task and image, the slots it went into, its takers, its models.

        The slots come page by page: `offers` has a sender, an iteration and the recipients of each SHARE.
        """
        return trace(ctx, process, EstimatorId.parse(estimator), size, bookmark)

    @evaluate
    def history(
        self, ctx: Context, kind: str, parts: list[str], size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the changes of one record, newest first: `kind` is task, slot, share, result or head.

        `parts` are those of the key in docs/formats/keys-v1.md, counters as plain numbers; the history of a
        process is the orchestration chaincode's.
        """
        return history_page(ctx, _key_of(kind, parts), size, bookmark)


def _prefix(kind: str, process: str, node: str) -> tuple[str, ...]:
    return (kind, parse_process(process), parse_node(node)) if node else (kind, parse_process(process))


def _results(process: str, iteration: int) -> tuple[str, ...]:
    if iteration == ANY:
        return ("result", parse_process(process))
    return ("result", parse_process(process), counter_text(check_counter(iteration, "iteration")))


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


def _check_reader(ctx: Context, process: str) -> None:
    """Let the organisations of the process read trees, and the model chaincode for those with a grant."""
    if ctx.addressed != MODEL:
        found = call_json(ctx, ORCHESTRATION, "ModelContext", process)
        caller_of(ctx).need_member(found["consortium"])
