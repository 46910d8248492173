"""How a task ends without a result: failed, expired, or refused before it ran."""

from dataclasses import replace
from typing import Any

from chaincode.common import LedgerContract, Role, allow, caller_of, provenance
from chaincode.common.calls import task_context
from chaincode.execution_record.store import begin_task, find_task, get_task, put_task
from chaincode.execution_record.traces import write_refusal
from chaincode.shim import Context, submit
from protocol import canonical
from protocol.agreement.lifecycle import TASK, TaskState, TaskTransition
from protocol.errors import RecordError, StateError
from protocol.fields import Fields
from protocol.ledger.record import VERSION
from protocol.ledger.task_rules import state_at
from protocol.ledger.tasks import Closure, TaskRecord
from protocol.task.opening import TaskId

MAX_EVIDENCE_BYTES = 1 << 14


class Closures(LedgerContract):
    """Fail, Expire and Refuse."""

    @submit
    @allow(Role.NODE)
    def fail(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, iteration: int, code: str, reason: str
    ) -> TaskRecord:
        """Close a task that came to nothing, with a code and a reason; its key is worthless then."""
        task = get_task(ctx, TaskId(process, node, iteration))
        caller_of(ctx).need_node(node, task.organisation)
        closure = Closure(_code(code), provenance(ctx), reason=_reason(reason))
        return self._close(ctx, task, TaskTransition.FAIL, "TaskFailed", closure)

    @submit
    @allow(Role.NODE, Role.ADMIN, Role.DATA_SCIENTIST)
    def expire(self, ctx: Context, process: str, node: str, iteration: int) -> TaskRecord:
        """Close a task whose time is over.

        Only the node's own organisation may: a transaction's time is its client's claim, and nobody shall
        end the tasks of others by a wrong clock.
        """
        task = get_task(ctx, TaskId(process, node, iteration))
        caller_of(ctx).need_organisation(task.organisation)
        TASK.after(TaskTransition.EXPIRE, task.state)
        if not task.is_expired(ctx.time):
            raise StateError("TASK_NOT_EXPIRED", f"task {task.id} has time until {task.expires}")
        closure = Closure("TASK_EXPIRED", provenance(ctx))
        return self._close(ctx, task, TaskTransition.EXPIRE, "TaskExpired", closure)

    @submit
    @allow(Role.NODE)
    def refuse(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, iteration: int, code: str, evidence: dict[str, Any]
    ) -> TaskRecord:
        """Record that the node refused to run a task, and what it found; the evidence stays for good.

        `evidence` is an object of the executor's choosing within 16 KiB, for example what image id was
        expected and which one was found.
        """
        task_id = TaskId(process, node, iteration)
        context = task_context(ctx, task_id)
        caller_of(ctx).need_node(node, context.organisation)
        context.check_running()
        context.check_next()
        canonical.encode(evidence, max_bytes=MAX_EVIDENCE_BYTES)
        closure = Closure(_code(code), provenance(ctx), reason="", evidence=evidence)
        before = find_task(ctx, task_id)
        task = _to_refuse(ctx, task_id, before, context.organisation)
        if before is None or task.attempt != before.attempt:
            begin_task(ctx, task, before)
        write_refusal(ctx, task, closure.code, "", evidence)
        return self._close(ctx, task, TaskTransition.REFUSE, "TaskRefused", closure)

    def _close(
        self, ctx: Context, task: TaskRecord, transition: TaskTransition, event: str, closure: Closure
    ) -> TaskRecord:
        task = replace(task, state=TASK.after(transition, task.state), closed=closure)
        put_task(ctx, task)
        self.announce_task(ctx, event, task, code=closure.code)
        return task

    def announce_task(self, ctx: Context, event: str, task: TaskRecord, **more: canonical.Record) -> None:
        """Announce what happened to a task."""
        payload: dict[str, canonical.Record] = {
            "version": VERSION,
            **task.id.to_dict(),
            "organisation": task.organisation,
            "attempt": task.attempt,
            "state": task.state.value,
            **more,
        }
        self.announce(ctx, event, payload)


def _to_refuse(ctx: Context, task: TaskId, before: TaskRecord | None, organisation: str) -> TaskRecord:
    """Return the task as it stands if it is open, else the record of one more attempt at it."""
    was = state_at(before, ctx.time)
    if before is not None and was is TaskState.OPEN:
        return replace(before, after=was)
    attempt = 1 if before is None else before.attempt + 1
    return TaskRecord(task.process, task.node, task.iteration, organisation, was, attempt, was)


def _code(code: str) -> str:
    text = Fields({"code": code}, "the cause", ("code",)).text("code", 64)
    if not text or not text.replace("_", "").isalnum() or not text.isascii() or text != text.upper():
        raise RecordError("RECORD_VALUE", "a code has capital letters, digits and underscores")
    return text


def _reason(reason: str) -> str:
    return Fields({"reason": reason}, "the cause", ("reason",)).text("reason")
