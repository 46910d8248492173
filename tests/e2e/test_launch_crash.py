"""An executor killed at any instant: the next start cleans up and goes on; the ledger has nothing twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker import DockerClient
from support.crashing import INSTANTS
from support.launching import (
    PATIENCE,
    containers_of,
    digest_of,
    launch,
    launched,
    ledger,
    nothing_is_left,
    reached,
    running,
    simulated,
    store_of,
    task_of,
)
from support.network import ROOT, run, until
from support.operator import executing, told

from executor.launch import task_run as steps
from executor.launch.relay import TaskRelay
from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.network import Network
from executor.sandbox.container import Container
from protocol.errors import AttestreeError
from protocol.signing import SigningKey
from protocol.task.opening import TaskId, statement
from protocol.task.statement import Action, sign_statement
from protocol.trees.share import Share

NODES = {"node01": "org1", "node02": "org1"}
# In the order of a round; the second node takes those that the first cannot come to twice.
FIRST, SECOND = "node01", "node02"
BEFORE_ITS_NEIGHBOUR = [
    "the key is made",
    "the journal is written",
    "the task is open",
    "the container is created",
    "the container is started",
    "the share is signed",
    "the share is on the ledger",
    "it waits for neighbours",
]
AFTER_ITS_NEIGHBOUR = ["the state is kept", "the result is on the ledger", "the journal is struck out"]
# The container is made while the task is being opened: either may be there before the other.
EITHER = {"the task is open"}
WITH_A_CONTAINER = {
    "the container is created",
    "the container is started",
    "the share is signed",
    "the share is on the ledger",
    "it waits for neighbours",
    "the state is kept",
    "the result is on the ledger",
}


def killed(instant: str, process: str, rows: Path, *arguments: str) -> None:
    """Launch in a process of its own, which dies at the instant."""
    words = ("launch", "--process", process, "--organisation", "org1", "--data", str(rows), *arguments)
    ran = run(sys.executable, str(ROOT / "tests/support/crashing.py"), instant, *words, PYTHONPATH=str(ROOT))
    assert ran.returncode == -signal.SIGKILL, (instant, ran.returncode, ran.stdout, ran.stderr)


def left_by(instant: str, client: DockerClient, process: str, node: str) -> None:
    """Check that the instant was hit: what a round has by then is there, and nothing else."""
    found = len(containers_of(client, process, node))
    assert found == (instant in WITH_A_CONTAINER) or (found == 1 and instant in EITHER), instant
    assert (store_of(process, node).begun() is None) == (instant == "the key is made"), instant


@pytest.mark.timeout(1200)  # Fourteen launches, one after the other.
def test_f15_b9_b10_killed_at_each_instant_the_next_start_cleans_and_goes_on(
    learner: str, rows: Path, docker_client: DockerClient
) -> None:
    """Every launch but the last is killed, each a little later, and finds what the one before left."""
    process = running(learner, rows, NODES, iterations=2)
    for instant in BEFORE_ITS_NEIGHBOUR:
        killed(instant, process, rows, "--node", FIRST)
        left_by(instant, docker_client, process, FIRST)
    killed("the container is removed", process, rows, "--node", SECOND)
    left_by("the container is removed", docker_client, process, SECOND)
    for instant in AFTER_ITS_NEIGHBOUR:
        killed(instant, process, rows, "--node", FIRST)
        if instant != "the journal is struck out":
            left_by(instant, docker_client, process, FIRST)
    killed("the model is published", process, rows, "--all-local", "--until-complete")
    launched(process, "--all-local", "--until-complete")

    named = {
        *BEFORE_ITS_NEIGHBOUR,
        *AFTER_ITS_NEIGHBOUR,
        "the container is removed",
        "the model is published",
    }
    assert named == set(INSTANTS)
    for node in NODES:
        nothing_is_left(docker_client, process, node)
    check_nothing_is_doubled(process, rows)


def check_nothing_is_doubled(process: str, rows: Path) -> None:
    """Compare the ledger with a run in memory that nobody ever killed."""
    record, expected = ledger("org1", "node01").execution, simulated(rows, tuple(NODES), iterations=2)
    reached(process, "completed")
    tasks = list(record.list_tasks(process))
    assert [(task.node, task.iteration, task.state) for task in tasks] == [
        (node, iteration, "completed") for node in NODES for iteration in range(2)
    ]
    # Two of the instants come before the task is opened, one after it is completed; one may come before, too.
    opened = len(BEFORE_ITS_NEIGHBOUR) + len(AFTER_ITS_NEIGHBOUR) - 3
    assert tasks[0].attempt in (opened - 1, opened)
    assert len(list(record.artifacts(process))) == len(tasks)
    for task in tasks:
        parts = [process, task.node, str(task.iteration)]
        states = [entry.value.state for entry in record.history("task", parts)]
        assert states.count("completed") == 1
        assert states.count("open") == task.attempt
    for node, ensemble in expected.ensembles().items():
        assert record.last_result(process, node).ensemble_digest == digest_of(ensemble)
        standing = record.standing(process, node)
        assert standing.iteration == 1
        assert standing.next_counter == 6
        assert store_of(process, node).state(standing.state)
    assert [model.node for model in ledger().models.list(process)] == list(NODES)


def test_b10_a_task_never_finished_expires_and_its_key_is_worthless(
    learner: str, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = running(learner, rows, NODES, task_seconds=4)
    task, key = TaskId(process, "node01", 0), os.urandom(32)

    class KilledError(BaseException):
        """Ends an executor as a signal would: nothing of ours catches it."""

    def die(*_: object, **__: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(steps, "os", SimpleNamespace(urandom=lambda _: key))
        patched.setattr(Container, "create", die)
        with pytest.raises(KilledError):
            launch(process, "--node", "node01", "--data", str(rows))
    opened = task_of(process, "node01")
    assert opened.state == "open"
    # Another host knows nothing of this journal: it waits until the task's time is over, and takes it then.
    store_of(process, "node01").ended()
    codes: list[str] = []

    def takes_over() -> bool:
        ran = launch(process, "--node", "node01", "--data", str(rows), "--timeout", "1")
        codes.append(ran.error["code"])
        return codes[-1] != "TASK_BUSY"

    until(150, "the task expires", takes_over)
    assert codes[0] == "TASK_BUSY" or len(codes) == 1
    history = ledger().execution.history("task", [process, "node01", "0"])
    states = [entry.value.state for entry in history][::-1]
    assert states[:3] == ["open", "expired", "open"]

    share, opening = Share(()), opened.opening
    signature = sign_statement(SigningKey(key), statement(task, opening, Action.SHARE, share.digest))
    with pytest.raises(AttestreeError) as refused:
        ledger("org1", "node01").execution.share(task, share.to_bytes(), signature)
    assert refused.value.code == "SIGNATURE_INVALID"


def test_a_task_under_way_elsewhere_is_left_alone(
    learner: str, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is on another host: nobody takes the task from it while it has time."""
    process = running(learner, rows, NODES)
    killed("the task is open", process, rows, "--node", "node01")
    store = store_of(process, "node01")
    journal = store.begun()
    assert journal is not None
    store.ended()
    ran = launch(process, "--node", "node01", "--data", str(rows))
    assert (ran.code, ran.error["code"]) == (13, "TASK_BUSY")
    assert task_of(process, "node01").state == "open"
    # The journal is back, and with it the right to close the task; who ended it meanwhile does no harm.
    store.begin(journal)
    closed: list[str] = []
    fail = ExecutionRecord.fail

    def too_late(record: ExecutionRecord, task: TaskId, code: str, reason: str) -> Any:
        closed.append(code)
        if code == "EXECUTOR_LOST":
            fail(record, task, code, reason)
        return fail(record, task, code, reason)

    monkeypatch.setattr(ExecutionRecord, "fail", too_late)
    ran = launch(process, "--node", "node01", "--data", str(rows), "--timeout", "1")
    assert closed[0] == "EXECUTOR_LOST"
    assert ran.error["code"] == closed[1]
    assert task_of(process, "node01").attempt == 2
    nothing_is_left(docker_client, process, "node01")


def test_a_signal_that_another_thread_takes_stops_the_executor_as_well(
    learner: str, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = running(learner, rows, NODES)
    waited = TaskRelay.slots

    def interrupted(relay: TaskRelay) -> Any:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        return waited(relay)

    monkeypatch.setattr(TaskRelay, "slots", interrupted)
    ran = launch(process, "--node", "node01", "--data", str(rows), "--timeout", "60")
    assert (ran.code, ran.error["code"]) == (1, "INTERRUPTED")
    assert task_of(process, "node01").closed.code == "INTERRUPTED"
    nothing_is_left(docker_client, process, "node01")


@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGINT,), (signal.SIGHUP,), (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
    ids=["SIGINT", "SIGHUP", "several"],
)
def test_an_operator_who_stops_the_executor_finds_the_task_closed(
    learner: str, rows: Path, docker_client: DockerClient, numbers: tuple[signal.Signals, ...]
) -> None:
    """While it waits for a neighbour that never comes, which is when operators lose their patience."""
    process = running(learner, rows, NODES)
    with waiting_for_a_neighbour(process, rows) as launching:
        for number in numbers:
            launching.send_signal(number)
        stopped(launching)
    task = task_of(process, "node01")
    assert (task.state, task.closed.code) == ("failed", "INTERRUPTED")
    nothing_is_left(docker_client, process, "node01")


def test_f7_an_executor_with_a_copy_of_the_directory_leaves_the_first_one_alone(
    learner: str, rows: Path, docker_client: DockerClient, tmp_path: Path
) -> None:
    process = running(learner, rows, NODES)
    with waiting_for_a_neighbour(process, rows) as launching:
        state = Network.load().state
        for path in state.iterdir():
            if path.name != "executor":
                (tmp_path / path.name).symlink_to(path)
        copied = Path("executor/org1") / process
        shutil.copytree(state / copied, tmp_path / copied, ignore=shutil.ignore_patterns("run"))
        assert (tmp_path / copied / "node01/journal.json").exists()
        before = containers_of(docker_client, process, "node01")
        ran = launch(process, "--node", "node01", "--data", str(rows), ATTESTREE_STATE=str(tmp_path))
        assert (ran.code, ran.error["code"]) == (13, "TASK_BUSY"), ran.out
        assert containers_of(docker_client, process, "node01") == before != []
        assert launching.poll() is None
        assert task_of(process, "node01").is_under_way
        launching.send_signal(signal.SIGTERM)
        stopped(launching)
    nothing_is_left(docker_client, process, "node01")


def test_a_watcher_stops_at_a_signal_that_its_parent_ignored(learner: str, rows: Path) -> None:
    process = running(learner, rows, NODES)
    with executing("process", "watch", process, "--json", "--seconds", PATIENCE) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["event"] == "Snapshot"
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=150)
    assert watching.returncode == 1
    assert "Traceback" not in err


@contextmanager
def waiting_for_a_neighbour(process: str, rows: Path) -> Iterator[subprocess.Popen[str]]:
    """The executor in a process of its own, which ignores signals by birth, in the middle of a task."""
    words = ("--organisation", "org1", "--node", "node01", "--data", str(rows), "--timeout", PATIENCE)
    with executing("launch", "--process", process, *words, "--json") as launching:
        assert "iteration 0" in told(launching, "waiting for node02")
        yield launching


def stopped(launching: "subprocess.Popen[str]") -> None:
    out, err = launching.communicate(timeout=150)
    assert launching.returncode == 1, out + err
    assert json.loads(out)["nodes"][0]["error"]["code"] == "INTERRUPTED"
