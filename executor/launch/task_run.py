"""One task: open it, run its container, relay what it signs, wipe the key.

1. Make a key pair and write down what is about to exist.
2. Create the container by image id and check what was created; nothing of it runs.
3. Meanwhile open the task: the commitment to code, inputs, parameters and key goes on the ledger.
4. When it is there, start the container with the key on its standard input.
5. Serve its four verbs until it is done, gone or out of time.
6. Judge the outcome; a task that came to nothing is closed on the ledger with its cause.
7. Remove what was laid out, and the container while the node goes on; the key is wiped whatever happened.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from executor.errors import DeadlineError, IntegrityError, TaskError, host_failed
from executor.exits import gravest
from executor.launch.broker import BrokerServer
from executor.launch.containers import ContainerCreation
from executor.launch.layout import laid_out, mounts_of
from executor.launch.parts import Part, PartTimes
from executor.launch.plan import TaskPlan
from executor.launch.reasons import closing_words, fit_for_record
from executor.launch.recovery import check_free
from executor.launch.relay import TaskRelay
from executor.launch.session import STORE_LABEL, NodeSession
from executor.launch.store import Journal, NodeStore
from executor.ledger.transport import Receipt
from executor.sandbox.container import KEY_BYTES, Container, Outcome
from protocol import canonical
from protocol.broker.exit_codes import LearnerExit
from protocol.errors import AttestreeError, LifecycleError
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId
from protocol.task.possession import prove_possession
from protocol.task.result import TaskResult
from protocol.values import dataclass

_NAME_LENGTH, _NAME_DIGITS = 100, 16


@dataclass(frozen=True)
class TaskSummary:
    """What one task came to."""

    task: TaskId
    result: TaskResult
    transactions: dict[str, str]
    block: int
    seconds: float
    parts: PartTimes

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as `--json` prints it."""
        result = self.result
        return {
            **self.task.to_dict(),
            "created": len(result.created),
            "taken": sum(len(slot.taken) for slot in result.slots),
            "refused": sum(len(slot.refused) for slot in result.slots),
            "ensemble": len(result.ensemble),
            "ensemble_digest": str(result.ensemble_digest),
            "state": str(result.state),
            "output": None if result.output is None else result.output.to_dict(),
            "transactions": self.transactions,
            "block": self.block,
            "seconds": round(self.seconds, 3),
            "learner_seconds": round(self.parts[Part.LEARNING], 3),
            "parts": self.parts.to_dict(),
        }


def run_task(
    plan: TaskPlan, session: NodeSession, tell: Callable[[str], None], parts: PartTimes | None = None
) -> TaskSummary:
    """Run the planned task to its completion on the ledger, or close it there with its cause.

    Where its time goes is added to `parts`.
    """
    parts = PartTimes() if parts is None else parts
    began, task = time.monotonic(), plan.task.id
    key = bytearray(os.urandom(KEY_BYTES))
    try:
        opening, proof = _commit(plan, SigningKey(bytes(key)))
        name = container_name(session.labels, task)
        session.check_going_on()
        with parts.timed(Part.CONTAINER):
            session.removal.finish()  # of the task before, whose journal and directory this one takes over
        lost = session.lost_keys[-1] if session.lost_keys else ""
        session.store.begin(
            Journal(task.iteration, str(opening.public_key), name, session.labels[STORE_LABEL], lost)
        )
        relay, opened = _open_and_run(plan, opening, proof, session, key, name, tell, parts)
    finally:
        key[:] = bytes(len(key))
    assert relay.result is not None  # noqa: S101
    assert relay.completed is not None  # noqa: S101
    receipts = {"open": opened, "share": relay.shared, "complete": relay.completed}
    transactions = {verb: receipt.tx_id for verb, receipt in receipts.items() if receipt is not None}
    block, seconds = relay.completed.block, time.monotonic() - began
    return TaskSummary(task, relay.result, transactions, block, seconds, parts)


def _commit(plan: TaskPlan, key: SigningKey) -> tuple[Opening, bytes]:
    """Return what the task commits to, and the proof that this node holds the key it names."""
    opening = plan.opening(key.verify_key)
    return opening, prove_possession(key, plan.task.id, plan.context.organisation, opening)


def _open_and_run(  # noqa: PLR0917
    plan: TaskPlan,
    opening: Opening,
    proof: bytes,
    session: NodeSession,
    key: bytearray,
    name: str,
    tell: Callable[[str], None],
    parts: PartTimes,
) -> tuple[TaskRelay, Receipt]:
    """Open the task and run its container; one that came to nothing is closed before the error goes on.

    The container is created and compared while the task is being opened. It is started when the commitment is
    on the ledger, and not before.
    """
    seconds = min(session.seconds, float(plan.context.task_seconds))
    relay = TaskRelay(
        plan,
        opening,
        session.ledger,
        session.store,
        seconds,
        tell,
        session.places.lent,
        session.trees,
        parts,
    )
    opened: Receipt | None = None
    try:
        with laid_out(plan, session.store) as directory:
            mounts = mounts_of(plan, directory)
            create = partial(Container.create, session.client, plan.profile, mounts, session.labels, name)
            shares, beside = bool(plan.context.neighbours), partial(_failed_beside, session, plan.task.id)
            with (
                BrokerServer(mounts.socket, relay, shares) as broker,
                ContainerCreation(create, beside) as creation,
            ):
                tell("opening the task")
                profile = canonical.encode(plan.profile.to_record())
                with parts.timed(Part.COMMITS):
                    opened = session.ledger.execution.open_task(plan.task.id, opening, proof, profile).receipt
                run = _run_container(session, relay, creation, key)
            _account(run, broker, parts)
            if relay.completed is None and run.outcome is not None:
                _judge(run.outcome, broker.failure, relay, session)
            return relay, opened
    except OSError as error:
        failed = host_failed(error)
        if opened is not None:
            _close(session, plan.task.id, failed)
        raise failed from error
    except AttestreeError as error:
        if opened is not None:
            _close(session, plan.task.id, error)
        elif isinstance(error, LifecycleError):
            check_free(session, plan.task.id)  # says best why the ledger does not open it
        raise


def _failed_beside(session: NodeSession, task: TaskId, error: AttestreeError) -> None:
    """Tell why the container of a task that could not be opened failed, too; a refusal is evidence."""
    if isinstance(error, IntegrityError):
        refuse(session, task, error)
    session.beside.append(error)


def container_name(labels: Mapping[str, str], task: TaskId) -> str:
    """Return a name that people recognise in the engine's list, and that no other task's container has.

    A digest of the whole makes up for what is cut off, and for the host's directory that is not in it.
    """
    whole = f"{labels['attestree.network']}-{task.process}-{task.node}-{task.iteration}"
    told_apart = sha256(f"{whole} {labels[STORE_LABEL]}".encode()).hexdigest()[:_NAME_DIGITS]
    return f"{whole[:_NAME_LENGTH]}-{told_apart}"


@dataclass(frozen=True)
class ContainerRun:
    """When a container was waited for, started and gone, and how it ended unless its task is completed."""

    began: float
    started: float
    ended: float
    outcome: Outcome | None


def _run_container(
    session: NodeSession, relay: TaskRelay, creation: ContainerCreation, key: bytearray
) -> ContainerRun:
    """Start the container of a task that is open, and wait for its end; it is removed while others go on.

    One whose task came to nothing is removed at once, by whoever made it.
    """
    outcome, began = None, time.monotonic()
    container = creation.container()
    container.start(key)
    started = time.monotonic()
    if session.stopping.is_set():  # whoever stops kills what runs by then: this may have come later
        container.kill()
    timed_out = container.wait_for_end(relay.seconds)
    if relay.completed is None:
        outcome = container.outcome(timed_out=timed_out)
    else:
        session.removal.begin(partial(_remove, creation.hand_over(), session.store))
    return ContainerRun(began, started, time.monotonic(), outcome)


def _remove(container: Container, store: NodeStore) -> None:
    """Remove what is left of a task that is on the ledger; only then is it struck out of the journal."""
    container.remove()
    store.ended()


def _account(run: ContainerRun, broker: BrokerServer, parts: PartTimes) -> None:
    asked, answered = broker.first_question or run.ended, broker.last_answer or run.ended
    started = min(run.started, asked)  # a learner may ask before the engine has said that it runs
    parts.add(Part.CONTAINER, started - run.began + run.ended - answered)
    parts.add(Part.IMPORTS, asked - started)
    parts.add(Part.LEARNING, broker.learner_seconds)


def _timed_out(outcome: Outcome, seconds: float) -> DeadlineError | None:
    if not outcome.timed_out:
        return None
    return DeadlineError(
        "LEARNER_TIMEOUT", f"the learner had not completed after {seconds:.0f} s and was killed"
    )


def _judge(outcome: Outcome, failure: AttestreeError | None, relay: TaskRelay, session: NodeSession) -> None:
    """Say why the result is not on the ledger."""
    causes = [failure, session.interrupted(), _timed_out(outcome, relay.seconds)]
    known = [cause for cause in causes if cause is not None]
    if known:
        raise gravest(known)
    tail = f" Its last lines:\n{outcome.log_tail}" if outcome.log_tail else ""
    if outcome.oom_killed:
        raise TaskError("LEARNER_MEMORY", "the learner ran out of memory", tail=tail)
    if outcome.exit_code == 0:
        raise TaskError(
            "LEARNER_NO_RESULT",
            "the learner ended well and gave no result",
            tail=tail,
        )
    meaning = LearnerExit.meaning_of(outcome.exit_code)
    raise TaskError(
        "LEARNER_FAILED",
        f"the learner ended with {outcome.exit_code}: {meaning}",
        tail=tail,
    )


def refuse(session: NodeSession, task: TaskId, error: IntegrityError) -> None:
    """Record on the ledger that this node refused to run a task, and what it found.

    That it could not be recorded changes nothing about the refusal: it is told beside it.
    """
    try:
        session.ledger.execution.refuse(task, error.code, fit_for_record(error.evidence))
    except AttestreeError as failed:
        session.beside.append(failed)


def _close(session: NodeSession, task: TaskId, error: AttestreeError) -> None:
    """Record on the ledger why the task came to nothing; if that fails too, the next start sees to it."""
    before = len(session.beside)
    if isinstance(error, IntegrityError):
        refuse(session, task, error)
    else:
        try:
            session.ledger.execution.fail(task, *closing_words(error))
        except AttestreeError as failed:
            session.beside.append(failed)
    if len(session.beside) == before:
        session.store.ended()
