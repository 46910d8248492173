"""One task: open it, run its container, relay what it signs, wipe the key.

1. Make a key pair and write down what is about to exist.
2. Open the task: the commitment to code, inputs, parameters and key is on the ledger before anything runs.
3. Create the container by image id, check what was created, start it with the key on its standard input.
4. Serve its four verbs until it is done, gone or out of time.
5. Judge the outcome; a task that came to nothing is closed on the ledger with its cause.
6. Remove the container and everything that was laid out for it; the key is wiped whatever happened.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from executor.errors import DeadlineError, IntegrityError, TaskError, host_failed
from executor.exits import gravest
from executor.launch.broker import BrokerServer
from executor.launch.parts import Part, PartTimes
from executor.launch.plan import TaskPlan
from executor.launch.reasons import closing_words, fit_for_record
from executor.launch.relay import TaskRelay
from executor.launch.session import STORE_LABEL, NodeSession
from executor.launch.store import Journal, NodeStore
from executor.ledger.transport import Receipt
from executor.sandbox.container import KEY_BYTES, Container, Mounts, Outcome
from protocol import canonical
from protocol.broker.exit_codes import LearnerExit
from protocol.errors import AttestreeError
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId
from protocol.task.possession import prove_possession
from protocol.task.result import TaskResult

_NAME_LENGTH, _NAME_DIGITS = 100, 16
READABLE = 0o444
"""For the container's user, who does not exist on the host; the directory around it is private."""


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
        session.store.begin(
            Journal(task.iteration, str(opening.public_key), name, session.labels[STORE_LABEL])
        )
        relay, opened = _open_and_run(plan, opening, proof, session, key, name, tell, parts)
    finally:
        key[:] = bytes(len(key))
    session.store.ended()
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
    """Open the task and run its container; one that came to nothing is closed before the error goes on."""
    seconds = min(session.seconds, float(plan.context.task_seconds))
    with laid_out(plan, session.store) as directory:
        tell("opening the task")
        profile = canonical.encode(plan.profile.to_record())
        with parts.timed(Part.COMMITS):
            opened = session.ledger.execution.open_task(plan.task.id, opening, proof, profile).receipt
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
        try:
            _run_container(session, relay, directory, key, name)
            return relay, opened
        except OSError as error:
            failed = host_failed(error)
            _close(session, plan.task.id, failed)
            raise failed from error
        except AttestreeError as error:
            _close(session, plan.task.id, error)
            raise


def container_name(labels: Mapping[str, str], task: TaskId) -> str:
    """Return a name that people recognise in the engine's list, and that no other task's container has.

    A digest of the whole makes up for what is cut off, and for the host's directory that is not in it.
    """
    whole = f"{labels['attestree.network']}-{task.process}-{task.node}-{task.iteration}"
    told_apart = sha256(f"{whole} {labels[STORE_LABEL]}".encode()).hexdigest()[:_NAME_DIGITS]
    return f"{whole[:_NAME_LENGTH]}-{told_apart}"


@contextmanager
def laid_out(plan: TaskPlan, store: NodeStore) -> Iterator[Path]:
    """Lay out what the container reads; the rows are a copy, so nothing can change under the learner."""
    directory = run_directory(store)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)
    try:
        for name, content in (("rows", plan.dataset.table.to_bytes()), ("state", plan.state)):
            if content is not None:
                (directory / name).write_bytes(content)
                (directory / name).chmod(READABLE)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_directory(store: NodeStore) -> Path:
    """Where a task lays out what its container reads."""
    return store.directory / "run"


def _run_container(
    session: NodeSession, relay: TaskRelay, directory: Path, key: bytearray, name: str
) -> None:
    plan, parts = relay.plan, relay.parts
    outcome = None
    state = directory / "state" if plan.state is not None else None
    socket = directory / "broker.sock"
    with BrokerServer(socket, relay, shares=bool(plan.context.neighbours)) as broker:
        mounts = Mounts(directory / "rows", state, socket)
        began = time.monotonic()
        with Container.create(session.client, plan.profile, mounts, session.labels, name) as container:
            container.start(key)
            started = time.monotonic()
            if session.stopping.is_set():  # whoever stops kills what runs by then: this may have come later
                container.kill()
            timed_out = container.wait_for_end(relay.seconds)
            if relay.completed is None:
                outcome = container.outcome(timed_out=timed_out)
        removed = time.monotonic()
    asked, answered = broker.first_question or removed, broker.last_answer or removed
    started = min(started, asked)  # a learner may ask before the engine has said that it runs
    parts.add(Part.CONTAINER, started - began + removed - answered)
    parts.add(Part.IMPORTS, asked - started)
    parts.add(Part.LEARNING, broker.learner_seconds)
    if relay.completed is None and outcome is not None:
        _judge(outcome, broker.failure, relay, session)


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
