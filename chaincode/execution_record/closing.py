"""How a task ends without a result: failed, expired, or refused before it ran."""

from dataclasses import replace
from typing import Any

from chaincode.common import LedgerContract, Role, allow, caller_of, provenance
from chaincode.common.records import VERSION
from chaincode.execution_record.records import Task
from chaincode.execution_record.store import find_task, get_task, put_task
from chaincode.execution_record.terms import Terms
from chaincode.execution_record.writing import write_refusal
from chaincode.shim import Context, submit
from protocol import canonical
from protocol.agreement.lifecycle import TASK, TaskState, TaskTransition
from protocol.errors import RecordError, StateError
from protocol.fields import Fields
from protocol.task.opening import TaskId

MAX_EVIDENCE_BYTES = 1 << 14


class Closing(LedgerContract):
    """Fail, Expire and Refuse."""

    @submit
    @allow(Role.NODE)
    def fail(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, iteration: int, code: str, reason: str
    ) -> dict[str, Any]:
        """Close a task whose round came to nothing, with a code and a reason; its key is worthless then."""
        task = get_task(ctx, TaskId(process, node, iteration))
        caller_of(ctx).need_node(node, task.organisation)
        return self._close(ctx, task, TaskTransition.FAIL, "TaskFailed", _cause(code, reason))

    @submit
    @allow(Role.NODE, Role.ADMIN, Role.DATA_SCIENTIST)
    def expire(self, ctx: Context, process: str, node: str, iteration: int) -> dict[str, Any]:
        """Close a task whose time is over.

        Only the node's own organisation may: a transaction's time is its client's claim, and nobody shall
        end the tasks of others by a wrong clock.
        """
        task = get_task(ctx, TaskId(process, node, iteration))
        caller_of(ctx).need_organisation(task.organisation)
        TASK.after(TaskTransition.EXPIRE, task.state)
        if not task.expired(ctx.time):
            raise StateError("TASK_NOT_EXPIRED", f"task {task.id} has time until {task.expires}")
        return self._close(ctx, task, TaskTransition.EXPIRE, "TaskExpired", {"code": "TASK_EXPIRED"})

    @submit
    @allow(Role.NODE)
    def refuse(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, iteration: int, code: str, evidence: dict[str, Any]
    ) -> dict[str, Any]:
        """Record that the node refused to run a task, and what it found; the evidence stays for good.

        `evidence` is an object of the executor's choosing within 16 KiB, for example what image id was
        expected and which one was found.
        """
        task_id = TaskId(process, node, iteration)
        terms = Terms.of(ctx, task_id)
        caller_of(ctx).need_node(node, terms.organisation)
        terms.check_running(task_id)
        terms.check_next(task_id)
        canonical.encode(evidence, max_bytes=MAX_EVIDENCE_BYTES)
        cause = {**_cause(code, ""), "evidence": evidence}
        before = find_task(ctx, task_id)
        was = state_now(ctx, before)
        if before is not None and was is TaskState.OPEN:
            task = replace(before, after=was)
        else:
            task = Task(task_id, terms.organisation, was, before.attempt + 1 if before else 1, was)
        write_refusal(ctx, task, cause)
        return self._close(ctx, task, TaskTransition.REFUSE, "TaskRefused", cause)

    def _close(
        self, ctx: Context, task: Task, transition: TaskTransition, event: str, cause: dict[str, Any]
    ) -> dict[str, Any]:
        state = TASK.after(transition, task.state)
        task = replace(task, state=state, closed={**cause, "by": provenance(ctx)})
        put_task(ctx, task)
        self.announce_task(ctx, event, task, code=cause["code"])
        return task.to_dict()

    def announce_task(self, ctx: Context, event: str, task: Task, **more: canonical.Record) -> None:
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


def state_now(ctx: Context, task: Task | None) -> TaskState:
    """Return the state of a task, seeing that an unfinished one has expired when its time is over."""
    if task is None:
        return TaskState.ABSENT
    unfinished = task.state in (TaskState.OPEN, TaskState.SHARED)
    return TaskState.EXPIRED if unfinished and task.expired(ctx.time) else task.state


def _cause(code: str, reason: str) -> dict[str, Any]:
    fields = Fields({"code": code, "reason": reason}, "the cause", ("code", "reason"))
    text = fields.text("code", 64)
    if not text or not text.replace("_", "").isalnum() or not text.isascii() or text != text.upper():
        raise RecordError("RECORD_VALUE", "a code has capital letters, digits and underscores")
    return {"code": text, "reason": fields.text("reason")}
