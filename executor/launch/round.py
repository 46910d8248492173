"""One round: open the task, run its container, relay what it signs, wipe the key.

1. Make a key pair and write down what is about to exist.
2. Open the task: the commitment to code, inputs, parameters and key is on the ledger before anything runs.
3. Create the container by image id, check what was created, start it with the key on its standard input.
4. Serve its four verbs until it is done, gone or out of time.
5. Judge the outcome; a task that came to nothing is closed on the ledger with its cause.
6. Remove the container and everything that was laid out for it.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executor.errors import DeadlineError, IntegrityError, RoundError
from executor.launch.broker import Broker
from executor.launch.desk import TaskDesk
from executor.launch.plan import Bench, Plan
from executor.launch.store import Journal, NodeStore
from executor.sandbox.container import KEY_BYTES, Container, Mounts, Outcome
from protocol.broker.messages import Refusal
from protocol.errors import AttestreeError
from protocol.signing import SigningKey
from protocol.task.opening import TaskId
from protocol.task.result import TaskResult

READABLE = 0o444
"""For the user in the container, who is none of the host's; the directory around it is private."""

_EXITS = {
    64: "it could not use the task or its parameters",
    65: "it could not use the rows",
    66: "the state did not fit the task",
    67: "it refused the trees it was offered",
    68: "the broker was gone or refused it",
    69: "it could not use its key",
    70: "it failed within",
}


@dataclass(frozen=True)
class Summary:
    """What one round came to."""

    task: TaskId
    result: TaskResult
    transactions: dict[str, str]
    block: int
    seconds: float
    learner_seconds: float

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
            "transactions": self.transactions,
            "block": self.block,
            "seconds": round(self.seconds, 3),
            "learner_seconds": round(self.learner_seconds, 3),
        }


def run_round(plan: Plan, bench: Bench, tell: Callable[[str], None]) -> Summary:
    """Run the planned task to its completion on the ledger, or close it there with its cause."""
    began, task = time.monotonic(), plan.terms.task
    key = bytearray(os.urandom(KEY_BYTES))
    opening = plan.opening(SigningKey(bytes(key)).verify_key)
    name = container_name(bench.labels, task)
    bench.store.begin(Journal(task.iteration, str(opening.public_key), name))
    seconds = min(bench.seconds, float(plan.terms.context["task_seconds"]))
    with laid_out(plan, bench.store) as directory:
        tell("opening the task")
        opened = bench.ledger.execution.open_task(task, opening).receipt
        desk = TaskDesk(plan, opening, bench.ledger, bench.store, seconds, tell)
        try:
            learner_seconds = _run_container(bench, desk, directory, key, name)
        except AttestreeError as error:
            _close(bench, task, error)
            raise
        finally:
            key[:] = bytes(len(key))
    bench.store.ended()
    assert desk.result is not None  # noqa: S101
    assert desk.completed is not None  # noqa: S101
    receipts = {"open": opened, "share": desk.shared, "complete": desk.completed}
    transactions = {verb: receipt.tx_id for verb, receipt in receipts.items() if receipt is not None}
    block, seconds = desk.completed.block, time.monotonic() - began
    return Summary(task, desk.result, transactions, block, seconds, learner_seconds)


def container_name(labels: dict[str, str], task: TaskId) -> str:
    """Return a name that people recognise in the engine's list."""
    return f"{labels['attestree.network']}-{task.process}-{task.node}-{task.iteration}"[:120]


@contextmanager
def laid_out(plan: Plan, store: NodeStore) -> Iterator[Path]:
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
    """Where a round lays out what its container reads."""
    return store.directory / "run"


def _run_container(bench: Bench, desk: TaskDesk, directory: Path, key: bytearray, name: str) -> float:
    plan = desk.plan
    state = directory / "state" if plan.state is not None else None
    socket = directory / "broker.sock"
    with Broker(socket, desk, shares=bool(plan.terms.context["neighbours"])) as broker:
        mounts = Mounts(directory / "rows", state, socket)
        with Container.create(bench.client, plan.profile, mounts, bench.labels, name) as container:
            container.start(key)
            if bench.stopping.is_set():  # whoever stops kills what runs by then, and this may have come later
                container.kill()
            outcome = container.wait(desk.seconds)
    _judge(outcome, broker.failure, desk, bench)
    return broker.learner_seconds


def _judge(outcome: Outcome, failure: AttestreeError | None, desk: TaskDesk, bench: Bench) -> None:
    """Return if the result is on the ledger, whatever the container did then; else say why it is not."""
    if desk.completed is not None:
        return
    if bench.stopping.is_set():
        raise interrupted()
    if outcome.timed_out:
        raise DeadlineError(
            "LEARNER_TIMEOUT",
            f"the learner had not completed after {desk.seconds:.0f} s and was killed",
            "Give it more time with --timeout, or look for a neighbour that does not share.",
        )
    if failure is not None:
        raise failure
    # The cause goes on the ledger, where the learner's words, which may hold rows, have no place.
    tail = f" Its last lines:\n{outcome.log_tail}" if outcome.log_tail else ""
    if outcome.oom_killed:
        raise RoundError(
            "LEARNER_MEMORY", "the learner ran out of memory", f"Give it more with --memory.{tail}"
        )
    if outcome.exit_code == 0:
        raise RoundError(
            "LEARNER_NO_RESULT",
            "the learner ended well and gave no result",
            f"Do not use this image: it does not keep to docs/formats/broker-v1.md.{tail}",
        )
    meaning = _EXITS.get(outcome.exit_code, "it failed")
    raise RoundError(
        "LEARNER_FAILED",
        f"the learner ended with {outcome.exit_code}: {meaning}",
        f"See why in its last lines; a launch begins the round anew.{tail}",
    )


def interrupted() -> RoundError:
    """Say that the operator ended the round."""
    return RoundError(
        "INTERRUPTED", "the operator stopped the executor", "Launch again: the round begins anew."
    )


def _close(bench: Bench, task: TaskId, error: AttestreeError) -> None:
    """Record on the ledger why the task came to nothing; if that fails too, the next start sees to it."""
    try:
        if isinstance(error, IntegrityError):
            bench.ledger.execution.refuse(task, error.code, error.evidence)
        else:
            # In words that fit a record: a cause may quote what the learner wrote.
            bench.ledger.execution.fail(task, error.code, Refusal.of(error).cause)
    except AttestreeError:
        return
    bench.store.ended()
