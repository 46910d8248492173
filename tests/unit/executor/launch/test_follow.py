"""`executor launch --follow` as it is typed: what it refuses, what it prints and keeps, and how it ends."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.memory.launches import Host, LearnerContainer, at_host, fresh
from support.memory.services import impatient

from executor.cli import main
from executor.errors import DatasetError, UsageError
from executor.exits import USAGE
from executor.launch import nodes, task_run
from executor.launch import serve as serve_command
from executor.launch.agenda import Assignment
from executor.launch.log import Event, LaunchLog, LogEntry
from executor.launch.places import places_of_host
from executor.launch.settings import LaunchSettings
from executor.launch.store import held
from executor.sandbox.container import Outcome
from executor.sandbox.profile import Limits
from executor.stop import StopSignals
from protocol.task.opening import TaskId


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    impatient(monkeypatch)
    with at_host(Host(socket_folder, fresh(1)), monkeypatch) as found:
        yield found


def typed(*options: str) -> Result:
    return CliRunner().invoke(main, ["launch", "--follow", *options])


def test_f7_only_one_service_works_for_an_organisation(host: Host) -> None:
    lock = host.state / "executor" / "org1" / "service.lock"
    lock.parent.mkdir(parents=True)
    with held(lock, UsageError("SERVICE_BUSY", "never")):
        refused = typed("--json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.exit_code, error["code"]) == (USAGE, "SERVICE_BUSY")
    assert f"works for org1 with {host.state / 'executor'}" in error["cause"]


def test_a_signal_ends_the_learner_closes_its_task_and_the_service_ends_well(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = threading.Event()

    class Hanging(LearnerContainer):
        def start(self, key: bytearray) -> None:
            key[:] = bytes(len(key))
            self.thread = threading.Thread(target=killed.wait)
            self.thread.start()
            signal.raise_signal(signal.SIGTERM)

        def wait_for_end(self, _: float) -> bool:
            self.thread.join()
            return False

        def outcome(self, *, timed_out: bool) -> Outcome:
            return Outcome(137, False, timed_out, "a private word")

    monkeypatch.setattr(task_run, "Container", Hanging)
    monkeypatch.setattr(nodes, "kill_all", lambda *_: killed.set())
    host.lay_out("node01", "node02")
    ran = typed("--json", "--tasks", "1")
    assert (ran.exit_code, ran.stderr) == (0, "")
    said = [LogEntry.from_line(line.encode()) for line in ran.stdout.splitlines()]
    assert None not in said
    found = [entry for entry in said if entry is not None]
    assert [entry.event for entry in found][-4:] == [
        Event.SERVICE_STOPPING,
        Event.NODE_STOPPED,
        Event.NODE_STOPPED,
        Event.SERVICE_STOPPED,
    ]
    assert "a private word" not in ran.stdout
    states = [task.closed for task in map(host.ledger().execution.get_task, opened(host))]
    assert [closed.code for closed in states if closed is not None] == ["INTERRUPTED"]
    assert LaunchLog(host.state, "org1").newest.read_text() == ran.stdout


def opened(host: Host) -> list[TaskId]:
    """The one task that was begun: there was one place."""
    found = [TaskId(task.process, task.node, 0) for task in host.ledger().execution.list_tasks(host.process)]
    assert len(found) == 1
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("--process", "p"),
        ("--node", "node01"),
        ("--all-local",),
        ("--iterations", "2"),
        ("--until-complete",),
        ("--data", "x.csv"),
        ("--label", "Fraud"),
        ("--drop", "x"),
        ("--dry-run",),
    ],
    ids=lambda options: options[0],
)
def test_what_says_for_whom_to_work_is_no_option_of_a_service(host: Host, options: tuple[str, ...]) -> None:
    refused = typed(*options, "--json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.exit_code, error["code"]) == (USAGE, "LAUNCH_OPTIONS")
    assert error["cause"] == f"--follow and {options[0]} exclude each other"


def test_a_launch_needs_a_process_or_to_follow(host: Host) -> None:
    refused = CliRunner().invoke(main, ["launch", "--json"])
    error = json.loads(refused.stdout)["error"]
    assert (refused.exit_code, error["code"]) == (USAGE, "LAUNCH_OPTIONS")
    assert "--follow" in error["remedy"]


UNREADABLE = DatasetError("DATA_FILE", "/srv/bank/rows.csv is not there", case="unnamed")


class Following:
    """Takes what the command hands to its service, and has it say one line and one error."""

    made: "Following"

    def __init__(self, *given: Any) -> None:
        Following.made = self
        self.caller, self.client, self.settings, self.keep, self.explain, self.stop = given

    def run(self) -> None:
        assert isinstance(self.stop, StopSignals)
        self.keep(LogEntry.now(Event.PROCESS_FOUND, "org1", "runs\u202e", process="p"))
        self.explain(Assignment("p", "node01"), UNREADABLE)


def followed(host: Host, monkeypatch: pytest.MonkeyPatch, *options: str) -> tuple[Result, Following]:
    monkeypatch.setattr(serve_command, "Service", Following)
    ran = typed(*options)
    assert ran.exit_code == 0, ran.output
    assert (Following.made.caller.organisation, Following.made.client) == ("org1", host.engine)
    return ran, Following.made


def test_a_service_works_by_its_options_for_whatever_process_there_is(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = followed(
        host, monkeypatch, "--memory", "300", "--cpus", "0.5", "--timeout", "7", "--runtime", "runsc"
    )
    settings: LaunchSettings = made.settings
    limits = Limits(memory_bytes=300 << 20, cpus=0.5)
    assert (settings.process, settings.iterations, settings.source) == ("", None, None)
    assert (settings.limits, settings.seconds, settings.runtime) == (limits, 7.0, "runsc")
    assert settings.places._count == places_of_host(limits)
    assert followed(host, monkeypatch, "--tasks", "3")[1].settings.places._count == 3


def test_a_service_shows_each_line_and_explains_each_error_to_people_alone(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, _ = followed(host, monkeypatch)
    (line,) = LaunchLog(host.state, "org1").newest.read_text().splitlines()
    entry = LogEntry.from_line(line.encode())
    assert shown.stdout == str(entry).replace("\u202e", "\\u202e") + "\n"
    assert shown.stderr == f"executor: p node01: {UNREADABLE}\n"
    told, _ = followed(host, monkeypatch, "--json")
    assert told.stdout == LaunchLog(host.state, "org1").newest.read_text().splitlines(keepends=True)[1]
    assert told.stderr == ""


def test_g9_a_service_whose_reader_is_gone_goes_on_and_keeps_its_lines(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(serve_command.click, "echo", gone)
    monkeypatch.setattr(serve_command, "note", lambda _: None)
    followed(host, monkeypatch)
    assert len(LaunchLog(host.state, "org1").newest.read_text().splitlines()) == 1
