"""Which nodes a launch works for, what it shows meanwhile, and what it prints at the end."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from support.memory.launches import Host, at_host, fresh

from executor.errors import DatasetError
from executor.exits import DATA_UNUSABLE, LEDGER_UNREACHABLE, USAGE
from executor.launch import command
from executor.launch.node_report import NodeReport
from executor.launch.nodes import NodeLaunch
from executor.launch.parts import Part, PartTimes
from executor.launch.places import places_of_host
from executor.launch.source import DataSource
from executor.launch.task_run import TaskSummary
from executor.ledger.errors import PhaseError
from executor.output import Progress
from executor.sandbox.profile import Limits
from protocol.digest import Digest
from protocol.task.opening import TaskId

UNREADABLE = DatasetError("DATA_FILE", "it is not there", case="unnamed")
AWAY = PhaseError("LEDGER_UNREACHABLE", "no peer answers")


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as found:
        yield found


class Launched:
    """Takes what the command hands to those who work, and gives it these reports."""

    def __init__(self, *reports: NodeReport) -> None:
        self.reports = list(reports)
        self.settings: Any = None
        self.nodes: list[str] = []

    def __call__(self, *given: Any) -> list[NodeReport]:
        launches: list[NodeLaunch]
        caller, client, launches, stop = given
        for each in launches:
            assert (caller.organisation, each.account.organisation) == ("org1", "org1")
            assert (each.account.process, stop.asked) == (each.settings.process, False)
        assert client.inspect_image is not None
        self.settings, self.nodes = launches[0].settings, [each.node for each in launches]
        for report in self.reports:
            report.process = self.settings.process
        return self.reports


def launched(host: Host, patch: pytest.MonkeyPatch, *options: object, reports: Any = ()) -> Launched:
    made = Launched(*reports)
    patch.setattr(command, "launch_nodes", made)
    result = host.launch(*options)
    assert result.exit_code == 0, result.output
    return made


def error_of(result: Result) -> Any:
    return json.loads(result.stdout)["error"]


def unenrol(host: Host, *nodes: str) -> None:
    for node in nodes:
        shutil.rmtree(host.state / "organisations" / "org1" / "users" / node)


# --- for whom ---


def test_an_identity_names_the_node_unless_all_are_asked_for(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert launched(host, monkeypatch, "--identity", "node02").nodes == ["node02"]
    assert launched(host, monkeypatch, "--identity", "node02", "--node", "node01").nodes == ["node01"]
    both = launched(host, monkeypatch, "--identity", "node02", "--all-local")
    assert both.nodes == ["node01", "node02"]


def test_the_only_node_of_a_host_needs_no_name(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    unenrol(host, "node01")
    for options in ((), ("--all-local",)):
        assert launched(host, monkeypatch, *options).nodes == ["node02"]


@pytest.mark.parametrize("options", [(), ("--all-local",)])
def test_a_host_without_a_node_of_the_process_is_told_so(host: Host, options: tuple[str, ...]) -> None:
    unenrol(host, "node01", "node02")
    refused = host.launch(*options, "--json")
    assert (refused.exit_code, error_of(refused)["code"]) == (USAGE, "LAUNCH_NODE")
    assert error_of(refused)["cause"] == f"org1 has no node of process {host.process} on this host"


def test_a_node_that_is_not_enrolled_is_refused_with_what_to_do(host: Host) -> None:
    for node, remedy in (
        ("node03", "Add --organisation org2."),
        ("node09", "Enrol it: network/enroll.sh org1 node09 node."),
    ):
        error = error_of(host.launch("--node", node, "--json"))
        assert (error["code"], error["remedy"]) == ("LAUNCH_NODE", remedy)
        assert error["cause"] == f"org1 has no identity '{node}' on this host"


# --- how ---


def test_the_options_are_what_the_nodes_work_by(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--data", "x.csv", "--label", "Fraud", "--drop", "a", "--drop", "b", "--timeout", 7)
    more = ("--memory", 300, "--cpus", 1.5, "--runtime", "runsc", "--tasks", 3, "--iterations", 4)
    settings = launched(host, monkeypatch, "--node", "node01", *options, *more).settings
    assert (settings.process, settings.iterations, settings.seconds) == (host.process, 4, 7.0)
    assert settings.source == DataSource("x.csv", "Fraud", ("a", "b"))
    assert settings.limits == Limits(memory_bytes=300 << 20, cpus=1.5)
    assert (settings.runtime, settings.places._count) == ("runsc", 3)
    assert (settings.for_silent, settings.waits) == (False, True)


def test_without_options_one_iteration_is_run_by_what_was_remembered(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = launched(host, monkeypatch, "--node", "node01").settings
    assert (settings.iterations, settings.source, settings.seconds) == (1, None, 3600.0)
    assert (settings.runtime, settings.places._count) == ("", places_of_host(Limits()))
    assert settings.limits == Limits(memory_bytes=1 << 30, cpus=1.0)
    assert launched(host, monkeypatch, "--node", "node01", "--until-complete").settings.iterations is None


# --- what is shown ---


def test_each_step_is_shown_on_its_node_s_own_row(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, str]] = []
    monkeypatch.setattr(Progress, "say", lambda _, text, row="": shown.append((row, text)))
    host.launch("--node", "node01", "--until-complete", *host.data)
    assert {row for row, _ in shown} == {"node01"}
    texts = [text for _, text in shown]
    assert texts[:2] == ["node01 iteration 0: opening the task", "node01 iteration 0: FIT"]
    assert [text for text in texts if text.endswith("done")] == [
        "node01 iteration 0: done",
        "node01 iteration 1: done",
    ]
    # How it ended is shown when all have.
    assert texts[-1].startswith("node01: publishing the model")


def summary(node: str, iteration: int, **counts: int) -> TaskSummary:
    result: Any = SimpleNamespace(
        created=range(counts["created"]),
        slots=[
            SimpleNamespace(taken=range(counts["taken"]), refused=range(counts["refused"])),
            SimpleNamespace(taken=range(1), refused=range(2)),
        ],
        ensemble=range(counts["ensemble"]),
        ensemble_digest=Digest.of(node.encode()),
        state=Digest.of(b"state"),
        output=None,
    )
    parts = PartTimes()
    parts.add(Part.LEARNING, 1.23456)
    transactions = {"open": "a", "complete": "b"}
    return TaskSummary(TaskId("p", node, iteration), result, transactions, 77, 2.34567, parts)


def test_the_table_has_what_each_task_came_to(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    done = summary("node01", 3, created=4, taken=5, refused=6, ensemble=7)
    reports = [NodeReport("node01", [done]), NodeReport("node02")]
    monkeypatch.setattr(command, "launch_nodes", Launched(*reports))
    lines = host.launch("--all-local").stdout.splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    digest = Digest.of(b"node01").hex[:12]
    assert cells[-1] == ["node01", "3", "4", "6", "8", "7", "77", "2.3", digest]
    assert lines[0] == "**Tasks**"
    assert lines[-1] == "node02: nothing was left to do"
    assert not any(line.startswith("node01") for line in lines)


def test_a_summary_as_json_has_it_all() -> None:
    told = summary("node01", 3, created=4, taken=5, refused=6, ensemble=7).to_dict()
    assert told.pop("parts")["learning"] == 1.235
    assert told == {
        "process": "p",
        "node": "node01",
        "iteration": 3,
        "created": 4,
        "taken": 6,
        "refused": 8,
        "ensemble": 7,
        "ensemble_digest": str(Digest.of(b"node01")),
        "state": str(Digest.of(b"state")),
        "output": None,
        "transactions": {"open": "a", "complete": "b"},
        "block": 77,
        "seconds": 2.346,
        "learner_seconds": 1.235,
    }


def test_how_each_node_s_part_ended_is_printed(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gravest failure decides, and what failed besides is printed too."""
    finished = {"model": "sha256:ab", "process": "completed"}
    reports = [
        NodeReport("node01", finished=finished),
        NodeReport("node02", left=0),
        NodeReport("node03", error=AWAY, beside=[UNREADABLE]),
    ]
    monkeypatch.setattr(command, "launch_nodes", Launched(*reports))
    ended = host.launch("--all-local")
    assert ended.exit_code == DATA_UNUSABLE
    assert ended.stdout.splitlines() == [
        "node01: model sha256:ab is published; the process is completed",
        "node02: takes no part from iteration 0 on: its organisation let it leave",
    ]
    assert ended.stderr.splitlines() == [f"executor: node03: {AWAY}", f"executor: node03: {UNREADABLE}"]
    told = json.loads(host.launch("--all-local", "--json").stdout)
    assert (told["exit_code"], len(told["nodes"])) == (DATA_UNUSABLE, 3)
    monkeypatch.setattr(command, "launch_nodes", Launched(NodeReport("node03", error=AWAY)))
    assert host.launch("--all-local").exit_code == LEDGER_UNREACHABLE
