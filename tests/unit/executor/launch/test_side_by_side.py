"""Nodes of one host that wait for each other, with fewer places than nodes: all of them come to an end."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.memory.federation import Federation
from support.memory.launches import SCHEMA, Host, LearnerContainer, at_host, specification_of
from support.memory.learners import specification

from executor.launch import node_tasks, task_run
from executor.launch.places import Places
from executor.ledger.chaincodes.orchestration import Orchestration
from protocol.task.opening import TaskId

SECONDS = 150
"""For a task; where nodes wait for each other's place for ever, it fails after that."""


class SideBySide(LearnerContainer):
    """Runs learners side by side, as an engine does."""

    turn: Any = nullcontext()


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host of the only two nodes of a process in which each waits for the other's share."""
    made = specification(synchronous=True, iterations=2)
    parameters = {**made["steps"][0]["parameters"], "schema_digest": str(SCHEMA.digest)}
    made["steps"][0] |= {"parameters": parameters}
    federation: Any = Federation(made)
    for node in ("node03", "node04"):
        federation.admin2.submit("orchestration", "Leave", federation.process, node, 0, "")
    with at_host(Host(socket_folder, federation), monkeypatch) as found:
        monkeypatch.setattr(task_run, "Container", SideBySide)
        yield found


def launched(host: Host) -> Any:
    ran = host.launch(
        "--all-local", "--iterations", 2, "--tasks", 1, "--timeout", SECONDS, "--json", *host.data
    )
    return ran.exit_code, json.loads(ran.stdout)["nodes"]


def test_two_neighbours_with_one_place_wait_for_each_other_and_both_complete(host: Host) -> None:
    code, reports = launched(host)
    assert (code, [report["error"] for report in reports]) == (0, [None, None])
    assert [len(report["rounds"]) for report in reports] == [2, 2]


def test_a_node_that_waits_for_its_neighbour_and_keeps_its_place_would_wait_for_ever(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above is worth: without lending, the neighbour never begins."""
    asked = threading.Event()

    @contextmanager
    def kept(_: Places) -> Iterator[None]:
        asked.set()
        yield

    monkeypatch.setattr(Places, "lent", kept)
    ran = host.launch("--all-local", "--tasks", 1, "--timeout", 2, "--json", *host.data)
    assert asked.is_set()
    codes = [(report["error"] or {}).get("code") for report in json.loads(ran.stdout)["nodes"]]
    assert "WAIT_TIMEOUT" in codes or "LEARNER_TIMEOUT" in codes


def test_several_processes_are_worked_for_side_by_side_and_told_apart(host: Host) -> None:
    first = host.process
    second = host.agree({**specification_of(1), "process": "second"})
    words = ("--process", second, "--process", first, "--all-local", "--until-complete", "--tasks", 1)
    ran = host.launch(*words, "--timeout", SECONDS, "--json", *host.data)
    reports = json.loads(ran.stdout)["nodes"]
    assert ran.exit_code == 0, ran.output
    assert [(report["process"], report["node"], len(report["rounds"])) for report in reports] == [
        (first, "node01", 2),
        (first, "node02", 2),
        (second, "node01", 1),
        (second, "node02", 1),
    ]
    assert {task["process"] for report in reports[2:] for task in report["rounds"]} == {second}
    assert f"{second} node01 iteration 0: opening the task" in ran.stderr
    again = host.launch(*words, *host.data).stdout.splitlines()
    assert [line.partition(":")[0] for line in again] == [
        f"{process} {node}" for process in (first, second) for node in ("node01", "node02")
    ]


def test_all_processes_share_the_places_of_the_host(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes whose nodes wait for nobody, and one place: no two learners work at once."""
    first, at_work, most = host.agree({**specification_of(1), "process": "first"}), 0, 0
    second, lock = host.agree({**specification_of(1), "process": "second"}), threading.Lock()
    start, wait = SideBySide.start, SideBySide.wait_for_end

    def started(container: SideBySide, key: bytearray) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        start(container, key)

    def ended(container: SideBySide, seconds: float) -> bool:
        nonlocal at_work
        timed_out = wait(container, seconds)
        with lock:
            at_work -= 1
        return timed_out

    monkeypatch.setattr(SideBySide, "start", started)
    monkeypatch.setattr(SideBySide, "wait_for_end", ended)
    host.federation.process = first
    ran = host.launch("--process", second, "--all-local", "--tasks", 1, *host.data)
    assert (ran.exit_code, most) == (0, 1), ran.output


def test_after_a_wait_for_a_place_the_context_of_a_task_is_read_again(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was agreed on while it waited holds for it: with what it knew before, it could not be opened."""
    reads: list[TaskId] = []
    read = Orchestration.task_context

    def noted(ledger: Orchestration, task: TaskId) -> Any:
        reads.append(task)
        return read(ledger, task)

    monkeypatch.setattr(Orchestration, "task_context", noted)
    counted = []
    for name, seconds in (("first", SECONDS), ("second", -1)):
        monkeypatch.setattr(node_tasks, "FRESH_SECONDS", seconds)
        host.federation.process = host.agree({**specification_of(1), "process": name})
        assert host.launch("--node", "node01", *host.data).exit_code == 0
        counted.append(len([task for task in reads if task.process == name]))
    assert counted[1] == counted[0] + 1
