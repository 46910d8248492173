"""The launch command from its options to its exit code, on the channel in memory and without an engine."""

import itertools
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.memory.launches import IMAGE, Host, LearnerContainer, at_host, fresh
from support.memory.scenario import DIGESTS

from executor.errors import EngineError, TaskError
from executor.exits import (
    DATA_UNUSABLE,
    FAILED,
    IMAGE_INTEGRITY,
    INVALID_PAYLOAD,
    USAGE,
    WRONG_STATE,
)
from executor.image.registry import ImageRegistry
from executor.launch import nodes, task_run
from executor.launch.session import STORE_LABEL
from executor.launch.store import NodeStore
from executor.sandbox.container import Outcome
from protocol.errors import StateError
from protocol.task.opening import TaskId


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as found:
        yield found


def told(result: Result) -> Any:
    return json.loads(result.stdout)


def refused(result: Result) -> tuple[int, str]:
    return result.exit_code, told(result)["error"]["code"]


@pytest.fixture
def clock_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a millisecond pass at each look at the clock, so that no part's time is rounded to nothing."""
    monotonic, looks = time.monotonic, itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + next(looks) / 1000)


@pytest.mark.usefixtures("clock_goes_on")
def test_a_launch_reports_what_the_ledger_has(host: Host) -> None:
    launched = host.launch("--node", "node01", *host.data, "--json")
    assert launched.exit_code == 0
    (report,) = told(launched)["nodes"]
    (round_,) = report["rounds"]
    task = host.ledger().execution.get_task(TaskId(host.process, "node01", 0))
    result = host.ledger().execution.last_result(host.process, "node01")
    assert task.opening is not None
    assert task.opened is not None
    assert task.share is not None
    assert task.result is not None
    parts = round_.pop("parts")
    assert parts["learning"] == round_["learner_seconds"]
    assert parts["commits"] > 0 < parts["learning"]
    rounded = 0.0005 * (len(parts) + 2)
    assert sum(parts.values()) <= report["parts"]["reading"] + round_["seconds"] + rounded
    seconds = [round_.pop(name) for name in ("seconds", "learner_seconds")]
    assert 0 < seconds[1] < seconds[0] < 150
    assert round_ == {
        "process": host.process,
        "node": "node01",
        "iteration": 0,
        "created": 4,
        "taken": 0,
        "refused": 0,
        "ensemble": 4,
        "ensemble_digest": str(result.ensemble_digest),
        "output": None,
        "state": str(result.state),
        "transactions": {
            "open": task.opened.tx,
            "share": task.share.by.tx,
            "complete": task.result.by.tx,
        },
        "block": host.federation.blocks,
    }
    assert {name: report[name] for name in ("node", "finished", "error", "beside")} == {
        "node": "node01",
        "finished": None,
        "error": None,
        "beside": [],
    }
    assert "exit_code" not in told(launched)


def test_every_local_node_runs_until_nothing_is_left_and_publishes(host: Host) -> None:
    launched = host.launch("--all-local", "--until-complete", "--tasks", 1, *host.data)
    assert launched.exit_code == 0
    lines = launched.stdout.splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| node")
    ]
    (head,) = [line for line in lines if line.startswith("| Node")]
    columns = "Node Iteration Created Taken Refused Ensemble Block Seconds Digest"
    assert " ".join(head.replace("|", " ").split()) == columns
    rows = {(node, iteration): rest for node, iteration, *rest in cells}
    assert list(rows) == [
        ("node01", "0"),
        ("node01", "1"),
        ("node02", "0"),
        ("node02", "1"),
    ]
    for node in ("node01", "node02"):
        model = host.ledger().models.get(host.process, node)
        assert f"{node}: model {model.digest} is published; the process is running" in lines
        last = host.ledger().execution.last_result(host.process, node)
        created, taken, refused, ensemble, block, seconds, digest = rows[node, "1"]
        read = sum(len(slot.taken) for slot in last.slots)
        assert (created, taken, refused) == ("4", str(read), "0")
        assert (ensemble, digest) == (str(len(last.ensemble)), last.ensemble_digest.hex[:12])
        assert int(block) <= host.federation.blocks
        assert 0 <= float(seconds) < 150
    for said in (
        "node01 iteration 0: opening the task",
        "node02 iteration 1: done",
        "node01: publishing the model",
    ):
        assert said in launched.stderr
    again = host.launch("--node", "node01", "--json")
    assert told(again)["nodes"][0]["rounds"] == []
    assert told(again)["nodes"][0]["finished"]["process"] == "running"


def test_a_process_that_starts_from_a_model_starts_from_its_trees(host: Host) -> None:
    host.launch("--node", "node01", "--until-complete", *host.data)
    model = host.ledger().models.get(host.process, "node01")
    host.start_from(model)
    for node in ("node01", "node02"):
        launched = host.launch("--node", node, *host.data, "--json")
        assert launched.exit_code == 0, launched.stdout
        result = host.ledger().execution.last_result(host.process, node)
        old = [one for one in result.ensemble if one.id.creator == "node01" and one.id.counter < 8]
        assert set(old) <= set(host.ledger().models.members(model.process, "node01").estimators)
        assert old
    # node02 was offered trees of the model by node01, which are with the model and not with the process.
    assert [slot.sender for slot in result.slots] == ["node01"]


def test_a_stop_before_a_node_has_a_directory_stops_it_all_the_same(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(
        _caller: Any, _client: Any, settings: Any, node: str, _tell: Any, stopping: threading.Event
    ) -> Any:
        signal.raise_signal(signal.SIGTERM)
        assert stopping.wait(150)
        stopped = TaskError("INTERRUPTED", "the operator stopped the executor")
        return nodes.NodeReport(node, error=stopped, process=settings.process)

    monkeypatch.setattr(nodes, "launch_node", wait)
    result = host.launch("--all-local", *host.data, "--json")
    assert [report["error"]["code"] for report in told(result)["nodes"]] == ["INTERRUPTED", "INTERRUPTED"]
    assert not host.directory().exists()


WRONG = {
    "two ways to say how many": (("--iterations", 1, "--until-complete"), "LAUNCH_OPTIONS", "exclude"),
    "two ways to say who": (("--node", "node01", "--all-local"), "LAUNCH_OPTIONS", "exclude"),
    "one of several": ((), "LAUNCH_NODE", "node01, node02"),
    "another's": (("--node", "node03"), "LAUNCH_NODE", "--organisation org2"),
    "nobody's": (("--node", "node09"), "LAUNCH_NODE", "network/enroll.sh"),
    "no name": (("--node", "No Node"), "NAME_SYNTAX", "No Node"),
    "a path with another field": (("--node", "node01", "--data", "{x}.csv"), "DATA_PATH", "{node}"),
}


@pytest.mark.parametrize("what", WRONG)
def test_options_that_contradict_or_name_nothing_are_refused(host: Host, what: str) -> None:
    options, code, words = WRONG[what]
    result = host.launch(*options, "--json")
    if code.startswith("DATA"):
        (report,) = told(result)["nodes"]
        error = report["error"]
    else:
        error = told(result)["error"]
    assert (result.exit_code, error["code"]) == (INVALID_PAYLOAD if code == "NAME_SYNTAX" else USAGE, code)
    assert words in f"{error['cause']} {error['remedy']}"


def test_where_the_rows_are_is_remembered_once_they_were_read(host: Host) -> None:
    bad = host.launch("--node", "node01", "--data", host.folder / "nothing.csv", "--json")
    assert bad.exit_code == DATA_UNUSABLE
    lost = host.launch("--node", "node01", "--json")
    assert told(lost)["nodes"][0]["error"]["code"] == "DATA_FILE"
    assert str(host.state / "executor/org1/data/node01.csv") in told(lost)["nodes"][0]["error"]["cause"]
    assert told(lost)["exit_code"] == DATA_UNUSABLE
    options = ("--label", "Fraud", "--drop", "name", "--drop", "x9")
    wide = host.rows("node01").read_text().replace("Class", "Class,name,x9").splitlines()
    host.rows("node01").write_text("\n".join([wide[0], *(f"{line},Ada,7" for line in wide[1:])]))
    assert host.launch("--node", "node01", *host.data, *options).exit_code != 0
    assert host.launch("--node", "node01", *host.data, *options[2:]).exit_code == 0
    assert host.launch("--node", "node01").exit_code == 0
    assert host.launch("--node", "node02", "--data", host.rows("node02"), "--label", "Class").exit_code == 0


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"path": "x", "label": "y"}', "KeyError"),
        ('{"path": "x", "label": 1, "drop": 2}', "TypeError"),
    ],
)
def test_a_damaged_note_of_where_the_rows_are_is_said_to_be_damaged(
    host: Host, damage: str, said: str
) -> None:
    host.launch("--node", "node01", *host.data)
    (host.directory() / "data.json").write_text(damage)
    result = host.launch("--node", "node01", "--json")
    assert result.exit_code == INVALID_PAYLOAD
    assert told(result)["nodes"][0]["error"]["cause"].endswith(f"data.json is damaged: {said}")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_in_the_usual_place_need_no_option(host: Host, suffix: str) -> None:
    usual = host.state / "executor" / "org1" / "data"
    usual.mkdir(parents=True)
    (usual / f"node01.{suffix}").write_bytes(host.rows("node01").read_bytes())
    result = host.launch("--identity", "node01", "--json")
    # A table of another kind than its name says is refused, which shows that it was found.
    assert result.exit_code == (0 if suffix == "csv" else DATA_UNUSABLE)
    assert not (host.directory() / "data.json").exists()


def test_columns_that_the_process_did_not_agree_on_open_no_task(host: Host) -> None:
    host.rows("node01").write_text(host.rows("node01").read_text().replace("x0", "amount", 1))
    result = host.launch("--node", "node01", *host.data, "--json")
    assert (result.exit_code, told(result)["nodes"][0]["error"]["code"]) == (WRONG_STATE, "SCHEMA_MISMATCH")
    with pytest.raises(StateError, match="TASK_UNKNOWN"):
        host.ledger().execution.get_task(TaskId(host.process, "node01", 0))


def test_a1_an_image_that_is_another_is_refused_on_the_ledger_with_evidence(host: Host) -> None:
    there = host.engine.images.pop(DIGESTS[2])
    pulled = {**there, "Id": DIGESTS[3]}
    host.engine.images[f"{IMAGE}@{DIGESTS[1]}"] = pulled
    result = host.launch("--node", "node01", *host.data, "--json")
    assert result.exit_code == IMAGE_INTEGRITY
    (refusal,) = host.ledger().execution.list_refusals(host.process, "node01")
    assert (refusal.iteration, refusal.code) == (0, "IMAGE_MISMATCH")
    assert (refusal.evidence["expected"], refusal.evidence["found"]) == (DIGESTS[2], DIGESTS[3])


def test_where_a_pull_fails_the_registry_of_the_network_is_asked(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def away(registry: str, network: Any) -> Any:
        asked.append((registry, network.state))
        raise EngineError("IMAGE_UNAVAILABLE", "the registry is away")

    host.engine.images.clear()
    monkeypatch.setattr(ImageRegistry, "of_repository", away)
    result = host.launch("--node", "node01", *host.data, "--json")
    assert told(result)["nodes"][0]["error"]["code"] == "IMAGE_UNAVAILABLE"
    assert asked == [("registry.example:5000", host.state)]


def test_f7_a_node_that_another_executor_works_for_is_left_to_it(host: Host) -> None:
    with NodeStore(host.state, "org1", host.process, "node01").locked():
        result = host.launch("--all-local", *host.data, "--json")
    first, second = told(result)["nodes"]
    assert (result.exit_code, first["error"]["code"], first["rounds"]) == (USAGE, "NODE_BUSY", [])
    assert (second["error"], len(second["rounds"])) == (None, 1)
    text = host.launch("--node", "node02", "--iterations", 5)
    assert "executor: " not in text.stderr
    assert "node02: nothing was left to do" not in text.stdout


def test_a_disk_that_fails_is_the_host_s_fault(host: Host) -> None:
    host.directory().parent.mkdir(parents=True)
    host.directory().write_text("a file where the node's directory should be")
    result = host.launch("--node", "node01", *host.data)
    assert result.exit_code == FAILED
    assert "executor: node01: HOST_FAILED" in result.stderr


def test_stop_kills_the_node_s_container_and_closes_its_task(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learner hangs until it is killed, and it is killed by its labels once a signal was heard."""
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
            return Outcome(137, False, timed_out, "")

    def kill(client: Any, labels: dict[str, str]) -> None:
        assert client is host.engine
        asked.append(labels)
        killed.set()

    asked: list[dict[str, str]] = []
    monkeypatch.setattr(task_run, "Container", Hanging)
    monkeypatch.setattr(nodes, "kill_all", kill)
    result = host.launch("--node", "node01", *host.data, "--json")
    assert (result.exit_code, told(result)["nodes"][0]["error"]["code"]) == (FAILED, "INTERRUPTED")
    store = NodeStore(host.state, "org1", host.process, "node01")
    assert asked[0] == {
        "attestree.network": "net",
        "attestree.role": "learner",
        "attestree.process": host.process,
        "attestree.node": "node01",
        STORE_LABEL: store.instance,
    }
    closed = host.ledger().execution.get_task(TaskId(host.process, "node01", 0)).closed
    assert closed is not None
    assert (closed.code, store.begun()) == ("INTERRUPTED", None)
