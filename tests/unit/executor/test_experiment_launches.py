"""Executors of several organisations: heard while they work, ended when one fails, killed on request."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executor.errors import TaskError
from executor.experiment import launches as module
from executor.experiment.launches import Launches, Reports
from executor.launch.log import Event, LaunchLog, LogEntry

# Stands for `executor launch`: works as its last option says, and prints what a launch prints.
PROGRAM = """
import json, sys, time
words = sys.argv[1:]
organisation, how = words[words.index("--organisation") + 1], words[-2]
if how == "fails":
    print(json.dumps({"error": "it broke"})); print("because of this", file=sys.stderr); sys.exit(13)
if how == "hangs":
    time.sleep(600)
parts = {"commits": 1.0, "learning": 2.0 if organisation == "org1" else 4.0}
process = words[words.index("--process") + 1]
report = {"process": process, "node": organisation, "rounds": [{"iteration": 0}], "parts": parts}
print(json.dumps({"nodes": [report]}))
"""


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launches]:
    monkeypatch.setattr(module, "PROGRAM", (sys.executable, "-c", PROGRAM))
    network: Any = SimpleNamespace(state=tmp_path / "state")
    with Launches(network, tmp_path / "work") as made:
        yield made


def test_what_each_did_is_collected_and_its_parts_are_those_of_the_mean_node(launches: Launches) -> None:
    for organisation in ("org1", "org2"):
        launches.start(organisation, "p", "works")
    reports = launches.wait(lambda _: None)
    assert sorted(report["node"] for report in reports.nodes) == ["org1", "org2"]
    assert len(reports.tasks) == 2
    assert reports.mean_parts() == {"commits": 1.0, "learning": 3.0}


def test_the_first_that_fails_ends_the_others_with_its_words(launches: Launches) -> None:
    launches.start("org1", "p", "hangs")
    launches.start("org2", "p", "fails")
    with pytest.raises(TaskError, match=r"p-org2-2 ended with 13: .*it broke.*\n.*because of this"):
        launches.wait(lambda _: None)


def test_one_that_is_killed_is_gone_and_can_be_started_again(launches: Launches) -> None:
    launches.kill(launches.start("org1", "p", "hangs"))
    launches.start("org1", "p", "works")
    assert [report["node"] for report in launches.wait(lambda _: None).nodes] == ["org1"]


def test_leaving_ends_what_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAM", (sys.executable, "-c", PROGRAM))
    network: Any = SimpleNamespace(state=tmp_path / "state")
    with Launches(network, tmp_path) as made:
        made.start("org1", "p", "hangs")
        ((child, _),) = made._running.values()
    assert isinstance(child, subprocess.Popen)
    assert child.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_what_nodes_say_meanwhile_is_heard_and_what_they_said_before_is_not(
    launches: Launches, tmp_path: Path
) -> None:
    log = LaunchLog(tmp_path / "state", "org1")
    log.write(LogEntry.now(Event.TASK_DONE, "org1", "before"))
    launches.start("org1", "p", "works")
    log.write(LogEntry.now(Event.TASK_DONE, "org1", "meanwhile", process="p", node="node01"))
    heard: list[str] = []
    launches.wait(lambda entry: heard.append(entry.text))
    assert heard == ["meanwhile"]


def test_a_launch_without_anything_to_do_has_no_parts() -> None:
    assert Reports().mean_parts() == {}
    assert json.dumps(Reports().tasks) == "[]"


def reported(process: str, **parts: float) -> dict[str, Any]:
    return {"process": process, "rounds": [], "parts": parts}


def test_parts_of_processes_that_run_at_once_add_up_to_the_time_of_the_whole_and_of_each() -> None:
    """One that ends early has nodes that are done; nothing of that is called the executors' start."""
    short, long = reported("short", commits=1.0, learning=2.0), reported("long", commits=4.0, learning=5.0)
    reports = Reports([short, long])
    assert reports.parts_of(10.0) == {"commits": 2.5, "learning": 3.5, "done": 3.0, "executor": 1.0}
    assert reports.parts_of(10.0, "short") == {
        "commits": 1.0,
        "learning": 2.0,
        "done": 6.0,
        "executor": 1.0,
    }
    assert reports.parts_of(10.0, "long") == {"commits": 4.0, "learning": 5.0, "done": 0.0, "executor": 1.0}
    assert Reports().parts_of(2.0) == {"done": 0.0, "executor": 2.0}
