"""The functions of the execution record that write: what can happen to a task.

Each finds the caller and the task, applies the rules, and only then writes; what fails writes nothing.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from chaincode.common import Role, allow, caller_of, provenance, time_text, write
from chaincode.common.calls import advance, task_context
from chaincode.common.trees import check_channel
from chaincode.execution_record import store, traces
from chaincode.execution_record.challenges import EVENTS, Challenges
from chaincode.execution_record.closures import Closures
from chaincode.execution_record.initial import InitialModels
from chaincode.execution_record.queries import TaskQueries
from chaincode.execution_record.result_rules import check_result
from chaincode.execution_record.share_rules import check_share
from chaincode.shim import Context, submit
from protocol.agreement.lifecycle import TASK, TaskState, TaskTransition
from protocol.digest import Digest
from protocol.errors import SignatureError, StateError
from protocol.ledger import keys
from protocol.ledger.challenges import AnswerRecord, ChallengeRecord, OpenChallenges, VerdictRecord
from protocol.ledger.common import ImageVersion, Signed
from protocol.ledger.estimators import (
    CreationRecord,
    EstimatorRecord,
    OfferRecord,
    TakenRecord,
    TreeRecord,
    TwinRecord,
)
from protocol.ledger.processes import TaskContext
from protocol.ledger.record import LedgerRecord
from protocol.ledger.task_rules import check_data, state_at
from protocol.ledger.tasks import (
    CompletionReceipt,
    Head,
    ImageUseRecord,
    InitialRecord,
    InitialTreeRecord,
    RefusalRecord,
    ResultRecord,
    ShareReceipt,
    ShareRecord,
    SlotRecord,
    TaskKeyRecord,
    TaskRecord,
)
from protocol.signing import SIGNATURE_SIZE
from protocol.task.opening import Opening, TaskId, inputs_digest, statement
from protocol.task.payload import read_payload
from protocol.task.possession import check_possession
from protocol.task.result import TaskResult
from protocol.task.sandbox import check_profile
from protocol.task.statement import Action, verify_statement
from protocol.trees.share import Share, ShareLimits

_TASK = "version, process, node, iteration, organisation, attempt, state"


class ExecutionRecordContract(Closures, Challenges, InitialModels, TaskQueries):
    """The evidence of every task: what it committed to, what it signed, what that put on the ledger."""

    name = "execution-record"
    events: ClassVar[dict[str, str]] = {
        "TaskOpened": f"a task committed to its key, code and inputs: {_TASK}, expires",
        "TaskShared": f"a node offered estimators: {_TASK}, share (digest), offered and created (how many)",
        "TaskCompleted": f"a task completed and its node advanced: {_TASK}, result (digest), ensemble_digest",
        "TaskFailed": f"a task was closed without result: {_TASK}, code",
        "TaskExpired": f"a task was closed because its time was over: {_TASK}, code",
        "TaskRefused": f"a node refused to run a task: {_TASK}, code",
        **EVENTS,
    }
    values: ClassVar[dict[str, type[LedgerRecord]]] = {
        "task": TaskRecord,
        "estimator": EstimatorRecord,
        "sharedtree": TreeRecord,
        "slot": SlotRecord,
        "share": ShareRecord,
        "result": ResultRecord,
        "head": Head,
        "creation": CreationRecord,
        "offer": OfferRecord,
        "taken": TakenRecord,
        "twin": TwinRecord,
        "initial": InitialRecord,
        "initialtree": InitialTreeRecord,
        "refusal": RefusalRecord,
        "taskkey": TaskKeyRecord,
        "imageuse": ImageUseRecord,
        "challenge": ChallengeRecord,
        "answer": AnswerRecord,
        "verdict": VerdictRecord,
        "openchallenges": OpenChallenges,
    }

    @submit
    @allow(Role.NODE)
    def open_task(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        iteration: int,
        opening: dict[str, Any],
        proof: str,
        profile: str,
    ) -> TaskRecord:
        """Commit to the key, code, parameters and inputs of a task before anything runs.

        `opening` has the fields of docs/formats/task-v1.md, and `proof` is its key's signature, in hex, over
        it, the task and the node's organisation (docs/formats/possession-v1.md). The task must be the node's
        next; one that failed, was refused or is overdue is opened again, with a key that no task had before.
        What the old key signs is worthless from then on, whatever time its client claims. `profile` is the
        container's configuration, whose digest is the opening's `sandbox`: it stays in the block, where
        every auditor reads what the task committed to.
        """
        task = TaskId(process, node, iteration)
        context = task_context(ctx, task)
        caller_of(ctx).need_node(node, context.organisation)
        context.check_running()
        context.check_next()
        commitment = Opening.from_dict(opening)
        check_possession(task, context.organisation, commitment, _from_hex(proof))
        context.check_opening(commitment)
        check_profile(commitment, profile.encode())
        _check_state(ctx, commitment, context)
        before = store.find_task(ctx, task)
        was = state_at(before, ctx.time)
        opened = TaskRecord(
            process,
            node,
            iteration,
            context.organisation,
            TASK.after(TaskTransition.OPEN, was),
            attempt=1 if before is None else before.attempt + 1,
            after=was,
            image=ImageVersion(context.image.name, context.image.version),
            opening=commitment,
            proof=proof,
            inputs_digest=inputs_digest(task, commitment),
            opened=provenance(ctx),
            expires=time_text(ctx.time + timedelta(seconds=context.task_seconds)),
        )
        _claim_key(ctx, opened, commitment)
        store.begin_task(ctx, opened, before)
        traces.write_image_use(ctx, opened, context.image)
        self.announce_task(ctx, "TaskOpened", opened, expires=opened.expires)
        return opened

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
    ) -> ShareReceipt:
        """SHARE: put the node's new estimators on the ledger and overwrite its neighbours' slots.

        The share (docs/formats/share-v1.md) is the transient field `share` or the last argument in base64;
        `digest` is its SHA-256 and `signature` the task key's, in hex, over the task statement. The same
        share sent again changes nothing and answers with `replayed` true.
        """
        task, signed = self._signed(ctx, TaskId(process, node, iteration), Action.SHARE, digest, signature)
        if _is_replay(task.share, signed):
            return ShareReceipt(True, process, node, iteration, signed.payload_digest)
        raw = read_payload(ctx.transient.get("share"), payload, signed.payload_digest)
        context = _context_of_running(ctx, task)
        check_channel(payload, context.collection)
        if not context.step.kind.learns:
            raise StateError("RESULT_KIND", f"a step of kind {context.step.kind} offers no estimators")
        state = _state_after(ctx, task, TaskTransition.SHARE)
        before = store.find_share(ctx, task.id)
        if before is not None:
            return self._share_again(ctx, replace(task, state=state, share=signed), before)
        share = Share.from_bytes(raw, ShareLimits(context.parameters.agreed.n_share), context.limits)
        new = check_share(ctx, task.id, share, context)
        task = replace(task, state=state, share=signed)
        store.put_task(ctx, task)
        traces.write_share(ctx, task, share, new, context)
        self.announce_task(ctx, "TaskShared", task, share=digest, offered=len(share.ids), created=len(new))
        created = tuple(estimator.id for estimator in new)
        return ShareReceipt(
            False, process, node, iteration, signed.payload_digest, created, context.neighbours
        )

    def _share_again(self, ctx: Context, task: TaskRecord, before: ShareRecord) -> ShareReceipt:
        """Take a later launch's signature under the share of an earlier one, which stays as it was written.

        Neighbours may have read it by now, so it can neither be replaced nor offered to others.
        """
        assert task.share is not None  # noqa: S101
        digest, fixed = task.share.payload_digest, before.signed.payload_digest
        if digest != fixed:
            raise StateError("SHARE_FIXED", f"task {task.id} has offered {fixed}, not {digest}")
        store.put_task(ctx, task)
        self.announce_task(
            ctx, "TaskShared", task, share=str(digest), offered=len(before.estimators), created=0
        )
        return ShareReceipt(False, task.process, task.node, task.iteration, digest, (), before.recipients)

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
    ) -> CompletionReceipt:
        """Complete a task by its signed result, and advance the node in the process.

        The result (docs/formats/task-v1.md) is the transient field `result` or the last argument in base64;
        `digest` and `signature` are as for Share. The same result sent again changes nothing and answers
        with `replayed` true.
        """
        task, signed = self._signed(ctx, TaskId(process, node, iteration), Action.COMPLETE, digest, signature)
        if _is_replay(task.result, signed):
            return CompletionReceipt(True, process, node, iteration, signed.payload_digest)
        raw = read_payload(ctx.transient.get("result"), payload, signed.payload_digest)
        context = _context_of_running(ctx, task)
        state = _state_after(ctx, task, TaskTransition.COMPLETE)
        if task.state is TaskState.OPEN and context.neighbours:
            raise StateError("SHARE_REQUIRED", f"{node} has not shared in iteration {iteration}")
        result = TaskResult.from_bytes(raw)
        checked = check_result(ctx, task.id, result, context)
        task = replace(task, state=state, result=signed)
        advance(ctx, task.id)
        store.put_task(ctx, task)
        head = traces.write_result(ctx, task, result, checked, context.parameters)
        ensemble = str(result.ensemble_digest)
        self.announce_task(ctx, "TaskCompleted", task, result=digest, ensemble_digest=ensemble)
        return CompletionReceipt(
            False,
            process,
            node,
            iteration,
            signed.payload_digest,
            result.ensemble_digest,
            head.next_counter,
        )

    def _signed(
        self, ctx: Context, task_id: TaskId, action: Action, digest: str, signature: str
    ) -> tuple[TaskRecord, Signed]:
        """Find the task of the calling node and verify the signature against the key it is open with."""
        task = store.get_task(ctx, task_id)
        caller_of(ctx).need_node(task_id.node, task.organisation)
        payload = Digest.parse(digest)
        if task.opening is None:
            raise StateError("TASK_UNKNOWN", f"task {task.id} was refused before it had a key")
        said = statement(task.id, task.opening, action, payload)
        verify_statement(task.opening.public_key, said, _from_hex(signature))
        return task, Signed(payload, signature, provenance(ctx))


def _is_replay(known: Signed | None, signed: Signed) -> bool:
    """Whether this very result is on the ledger already."""
    return known is not None and known.payload_digest == signed.payload_digest


def _from_hex(text: str) -> bytes:
    if len(text) != 2 * SIGNATURE_SIZE or not set(text) <= set("0123456789abcdef"):
        raise SignatureError("SIGNATURE_INPUT", f"a signature is {2 * SIGNATURE_SIZE} lower-case hex digits")
    return bytes.fromhex(text)


def _context_of_running(ctx: Context, task: TaskRecord) -> TaskContext:
    """Ask again at each result: the process may have been closed while the task ran."""
    context = task_context(ctx, task.id)
    context.check_running()
    return context


def _state_after(ctx: Context, task: TaskRecord, transition: TaskTransition) -> TaskState:
    """Return the state after a result, which has to come before the task's time is over."""
    state = TASK.after(transition, task.state)
    if task.is_expired(ctx.time):
        raise StateError("TASK_EXPIRED", f"task {task.id} had time until {task.expires}")
    return state


def _check_state(ctx: Context, opening: Opening, context: TaskContext) -> None:
    """Return if the task goes on where the node stopped, or begins with a model that is what it should be."""
    head = store.find_head(ctx, context.process, context.node)
    expected = None if head is None else head.state
    if opening.state != expected:
        raise StateError("STATE_MISMATCH", f"{context.node} left state {expected}, not {opening.state}")
    context.check_estimators(None if head is None else head.ensemble_digest)
    check_data(head, context.parameters, opening)
    wanted = context.parameters.initial_model
    bound = store.find_initial(ctx, context.process) if wanted is not None else None
    if wanted is not None and (bound is None or bound.model != wanted):
        raise StateError("MODEL_DIGEST", f"{context.process} did not start from the model {wanted.digest}")


def _claim_key(ctx: Context, task: TaskRecord, opening: Opening) -> None:
    """Write the public key down as used, or refuse it if it was."""
    key = keys.taskkey(str(Digest.of(opening.public_key.raw)))
    if ctx.get(key) is not None:
        raise StateError("KEY_USED", "a task was opened with this public key before")
    write(ctx, key, TaskKeyRecord(task.process, task.node, task.iteration, task.attempt))
