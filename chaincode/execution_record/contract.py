"""The functions of the execution record that write: what can happen to a task.

Each finds the caller and the task, applies the rules, and only then writes; what fails writes nothing.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from chaincode.common import Role, allow, caller_of, provenance, time_text, write
from chaincode.common.calls import ORCHESTRATION
from chaincode.common.records import VERSION
from chaincode.execution_record import documentation, writing
from chaincode.execution_record.closing import Closing, state_now
from chaincode.execution_record.completing import check_result
from chaincode.execution_record.initial import initial_members
from chaincode.execution_record.queries import Queries
from chaincode.execution_record.records import Signed, Task
from chaincode.execution_record.sharing import admit
from chaincode.execution_record.signature import is_replay, verify
from chaincode.execution_record.store import find_head, find_task, get_task, put_task
from chaincode.execution_record.terms import Terms
from chaincode.shim import Context, submit
from protocol.agreement.lifecycle import TASK, TaskState, TaskTransition
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger import keys
from protocol.task.opening import Opening, TaskId, inputs_digest
from protocol.task.payload import read_payload
from protocol.task.result import RoundResult
from protocol.task.statement import Action
from protocol.trees.share import Share, ShareLimits


class ExecutionRecord(Closing, Queries):
    """The evidence of every task: what it committed to, what it signed, what that put on the ledger."""

    name = "execution-record"
    events: ClassVar[dict[str, str]] = documentation.EVENTS
    values: ClassVar[dict[str, dict[str, str]]] = documentation.VALUES

    @submit
    @allow(Role.NODE)
    def open_task(
        self, ctx: Context, process: str, node: str, iteration: int, opening: dict[str, Any]
    ) -> dict[str, Any]:
        """Commit to the key, code, parameters and inputs of a task before anything runs.

        `opening` has the fields of docs/formats/task-v1.md. The task must be the node's next; a task that
        failed, was refused or is overdue is opened again, with a key that no task had before. What the old
        key signs is worthless from then on, whatever time its client claims.
        """
        task = TaskId(process, node, iteration)
        terms = Terms.of(ctx, task)
        caller_of(ctx).need_node(node, terms.organisation)
        terms.check_running(task)
        terms.check_next(task)
        commitment = Opening.from_dict(opening)
        terms.check_opening(commitment)
        _check_state(ctx, task, commitment, terms)
        before = find_task(ctx, task)
        was = state_now(ctx, before)
        opened = Task(
            task,
            terms.organisation,
            TASK.after(TaskTransition.OPEN, was),
            1 if before is None else before.attempt + 1,
            was,
            {"name": terms.image["name"], "version": terms.image["version"]},
            commitment,
            inputs_digest(task, commitment),
            provenance(ctx),
            time_text(ctx.time + timedelta(seconds=terms.task_seconds)),
        )
        _claim_key(ctx, opened, commitment)
        put_task(ctx, opened)
        self.announce_task(ctx, "TaskOpened", opened, expires=opened.expires)
        return opened.to_dict()

    @submit
    @allow(Role.NODE)
    def share(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        iteration: int,
        digest: str,
        signature: str,
        payload: str = "",
    ) -> dict[str, Any]:
        """SHARE: put the node's new estimators on the ledger and overwrite its neighbours' slots.

        The share (docs/formats/share-v1.md) is the transient field `share` or the last argument in base64;
        `digest` is its SHA-256 and `signature` the task key's, in hex, over the task statement. The same
        share sent again changes nothing and answers with `replayed` true.
        """
        task, signed = self._signed(ctx, TaskId(process, node, iteration), Action.SHARE, digest, signature)
        if is_replay(task.share, signed):
            return {"replayed": True, **task.id.to_dict(), "share": digest}
        raw = read_payload(ctx.transient.get("share"), payload, Digest.parse(digest))
        terms = _terms_of_running(ctx, task)
        state = _state_after(ctx, task, TaskTransition.SHARE)
        share = Share.from_bytes(raw, ShareLimits(terms.n_share), terms.limits)
        new = admit(ctx, task.id, share, terms)
        task = replace(task, state=state, share=signed)
        put_task(ctx, task)
        writing.write_share(ctx, task, share, new, terms.neighbours)
        created = [str(estimator.id) for estimator in new]
        self.announce_task(
            ctx, "TaskShared", task, share=digest, offered=len(share.ids), created=len(created)
        )
        return {
            "replayed": False,
            **task.id.to_dict(),
            "share": digest,
            "created": created,
            "recipients": list(terms.neighbours),
        }

    @submit
    @allow(Role.NODE)
    def complete(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        iteration: int,
        digest: str,
        signature: str,
        payload: str = "",
    ) -> dict[str, Any]:
        """Complete a task by its signed result, and advance the node in the process.

        The result (docs/formats/task-v1.md) is the transient field `result` or the last argument in base64;
        `digest` and `signature` are as for Share. The same result sent again changes nothing and answers
        with `replayed` true.
        """
        task, signed = self._signed(ctx, TaskId(process, node, iteration), Action.COMPLETE, digest, signature)
        if is_replay(task.result, signed):
            return {"replayed": True, **task.id.to_dict(), "result": digest}
        raw = read_payload(ctx.transient.get("result"), payload, Digest.parse(digest))
        terms = _terms_of_running(ctx, task)
        state = _state_after(ctx, task, TaskTransition.COMPLETE)
        if task.state is TaskState.OPEN and terms.neighbours:
            raise StateError("SHARE_REQUIRED", f"{node} has not shared in iteration {iteration}")
        result = RoundResult.from_bytes(raw)
        checked = check_result(ctx, task.id, result, terms)
        task = replace(task, state=state, result=signed)
        ctx.invoke(ORCHESTRATION, ("Advance", process, node, str(iteration)))
        put_task(ctx, task)
        writing.write_result(ctx, task, result, checked)
        self.announce_task(
            ctx, "TaskCompleted", task, result=digest, ensemble_digest=str(result.ensemble_digest)
        )
        return {
            "replayed": False,
            **task.id.to_dict(),
            "result": digest,
            "ensemble_digest": str(result.ensemble_digest),
            "next_counter": checked.next_counter,
        }

    def _signed(
        self, ctx: Context, task_id: TaskId, action: Action, digest: str, signature: str
    ) -> tuple[Task, Signed]:
        """Find the task of the calling node and verify the signature against the key it is open with."""
        task = get_task(ctx, task_id)
        caller_of(ctx).need_node(task_id.node, task.organisation)
        verify(task, action, Digest.parse(digest), signature)
        return task, Signed(digest, signature, provenance(ctx))


def _terms_of_running(ctx: Context, task: Task) -> Terms:
    """Ask again at each result: the process may have been closed while the task ran."""
    terms = Terms.of(ctx, task.id)
    terms.check_running(task.id)
    return terms


def _state_after(ctx: Context, task: Task, transition: TaskTransition) -> TaskState:
    """Return the state after a result, which has to come before the task's time is over."""
    state = TASK.after(transition, task.state)
    if task.expired(ctx.time):
        raise StateError("TASK_EXPIRED", f"task {task.id} had time until {task.expires}")
    return state


def _check_state(ctx: Context, task: TaskId, opening: Opening, terms: Terms) -> None:
    """Return if the task goes on where the node stopped, or begins with a model that is what it should be."""
    head = find_head(ctx, task.process, task.node)
    expected = None if head is None else head.state
    if opening.state != expected:
        raise StateError("STATE_MISMATCH", f"{task.node} left state {expected}, not {opening.state}")
    if head is None:
        initial_members(ctx, terms)


def _claim_key(ctx: Context, task: Task, opening: Opening) -> None:
    """Write the public key down as used, or refuse it if it was."""
    key = keys.taskkey(str(Digest.of(opening.public_key.raw)))
    if ctx.get(key) is not None:
        raise StateError("KEY_USED", "a task was opened with this public key before")
    write(ctx, key, {"version": VERSION, **task.id.to_dict(), "attempt": task.attempt})
