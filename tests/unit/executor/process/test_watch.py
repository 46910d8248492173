"""Watching a process over a ledger in memory that announces what the test says."""

import json
import queue
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from executor.errors import DeadlineError, TaskError
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.transport import ChaincodeEvent, ChainInfo, Receipt
from executor.process.watch import watch
from executor.stop import StopSignals
from protocol.agreement.lifecycle import ProcessState
from protocol.ledger.changes import AbortStatus, ProcessVotes
from protocol.ledger.processes import NodeProgress, ProcessStatus

WAIT = 150
STATUS = ProcessStatus(
    process="p",
    status=ProcessState.RUNNING,
    consortium=("Org1MSP",),
    present=("Org1MSP",),
    accepted=("Org1MSP",),
    missing=(),
    iteration=None,
    iterations=1,
    nodes=(NodeProgress("node01", "Org1MSP", completed=None, next=None, left=None, updated=None),),
)


_ENDS = {"ProcessCompleted": "completed", "ProcessAborted": "aborted"}


class Announcing:
    """A transport whose events are given beforehand; each stream stays open until it is closed."""

    def __init__(self, status: ProcessStatus, *events: tuple[str, str, dict[str, Any]]) -> None:
        self.status = status
        self.given = events
        self.known: Sequence[str] = [
            _ENDS[name] for _, name, payload in events if payload["process"] == "p" and name in _ENDS
        ]
        """What the ledger says each time after the first."""
        self.streams: list[Stream] = []

    def evaluate(self, chaincode: str, function: str, *_: object) -> bytes:
        assert chaincode == "orchestration"
        if function in ("Asks", "Changes"):
            return b'{"items":[],"bookmark":""}'
        if function == "Votes":
            abort = AbortStatus(self.status.process, self.status.status, {}, 1)
            return json.dumps(ProcessVotes(abort, ()).to_dict()).encode()
        assert function == "Status"
        found = self.status.to_dict()
        if self.streams:
            found["status"], *self.known = self.known or [found["status"]]
        return json.dumps(found).encode()

    evaluate_agreed = evaluate

    def submit(self, *_: object, **__: object) -> Receipt:
        raise AssertionError("watching writes nothing")

    def chain_info(self) -> ChainInfo:
        return ChainInfo(7, b"")

    def block(self, number: int) -> bytes:
        raise AssertionError(number)

    def events(self, chaincode: str, start: int, seconds: float) -> Iterator[ChaincodeEvent]:
        assert start == 7
        made = [
            ChaincodeEvent(start + i, f"tx{i}", name, json.dumps(payload).encode())
            for i, (of, name, payload) in enumerate(self.given)
            if of == chaincode
        ]
        self.streams.append(Stream(made))
        return self.streams[-1]

    def close(self) -> None:
        pass


class Leaving(Announcing):
    """The node leaves as soon as somebody follows."""

    def evaluate(self, chaincode: str, function: str, *given: object) -> bytes:
        if self.streams:
            self.status = replace(STATUS, nodes=(replace(STATUS.nodes[0], left=0),))
        return super().evaluate(chaincode, function, *given)

    evaluate_agreed = evaluate


class Stream(Iterator[ChaincodeEvent]):
    def __init__(self, events: list[ChaincodeEvent]) -> None:
        self.waiting: queue.SimpleQueue[ChaincodeEvent | None] = queue.SimpleQueue()
        for event in events:
            self.waiting.put(event)

    def __next__(self) -> ChaincodeEvent:
        found = self.waiting.get()
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        self.waiting.put(None)


COMPLETED = ("orchestration", "ProcessCompleted", {"process": "p"})
ABORTED = ("orchestration", "ProcessAborted", {"process": "p", "organisation": "Org1MSP"})
CHANGED = {"asked": "Org1MSP", "number": 0, "kind": "leave", "iteration": 0, "holds": True}
LEFT = ("orchestration", "ProcessChanged", {"process": "p", "organisation": "Org1MSP", **CHANGED})
ANOTHER = ("orchestration", "ProcessAborted", {"process": "q", "organisation": "Org1MSP"})


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    watch(Ledger(Announcing(STATUS, ANOTHER, COMPLETED)), "p", WAIT, StopSignals(), as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["Snapshot", "ProcessCompleted", "End"]
    snapshot = lines[0]
    assert snapshot.pop("votes")["absences"] == []
    assert snapshot == {"event": "Snapshot", **STATUS.to_dict(), "tasks": [], "asks": [], "changes": []}
    assert lines[1]["transaction"] == "tx1"
    assert lines[2]["status"] == "completed"


def test_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    watch(Ledger(Announcing(STATUS, COMPLETED)), "p", WAIT, StopSignals(), as_json=False)
    out = capsys.readouterr().out
    assert "p is completed\np: completed, iterations 0 to 0, 1 of 1 nodes done\n" in out


def test_a_table_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name, value in {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}.items():
        monkeypatch.setenv(name, value)
    watch(Ledger(Announcing(STATUS, COMPLETED)), "p", WAIT, StopSignals(), as_json=False)
    out = capsys.readouterr().out
    assert "p: completed, iterations 0 to 0, 1 of 1 nodes done" in out
    assert "node01" in out


def test_the_last_line_names_a_node_that_left_while_it_was_watched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    transport = Leaving(STATUS, LEFT, COMPLETED)
    transport.known = ["running", "completed"]
    watch(Ledger(transport), "p", WAIT, StopSignals(), as_json=False)
    assert "p: completed, iterations 0 to 0, 0 of 1 nodes done, node01 left" in capsys.readouterr().out


def test_an_aborted_process_ends_with_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TaskError, match="PROCESS_ABORTED"):
        watch(Ledger(Announcing(STATUS, ABORTED)), "p", WAIT, StopSignals(), as_json=False)
    assert "p is aborted by Org1MSP" in capsys.readouterr().out


def test_h1_an_end_that_only_one_peer_announces_is_not_believed() -> None:
    """The process was given up; whoever sends the events would have it completed."""
    transport = Announcing(STATUS, COMPLETED, ABORTED)
    transport.known = ["running", "aborted"]
    with pytest.raises(TaskError, match="PROCESS_ABORTED"):
        watch(Ledger(transport), "p", WAIT, StopSignals(), as_json=False)


@pytest.mark.parametrize("as_json", [True, False])
def test_h1_events_that_a_peer_made_up_do_not_end_the_watch(as_json: bool) -> None:
    made_up = [
        (chaincode, name, {"process": "p"})
        for chaincode, name in (
            ("execution-record", "TaskOpened"),
            ("model", "ModelPublished"),
            ("orchestration", "ProcessAccepted"),
            ("orchestration", "ProcessChanged"),
        )
    ]
    watch(Ledger(Announcing(STATUS, *made_up, COMPLETED)), "p", WAIT, StopSignals(), as_json=as_json)


def test_h1_an_end_that_nobody_announces_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.process.watch.HEARTBEAT", 0.01)
    transport = Announcing(STATUS)
    transport.known = ["running", "completed"]
    watch(Ledger(transport), "p", WAIT, StopSignals(), as_json=False)


def test_a_process_that_has_ended_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    watch(
        Ledger(Announcing(replace(STATUS, status=ProcessState.COMPLETED))),
        "p",
        None,
        StopSignals(),
        as_json=False,
    )
    assert "p: completed" in capsys.readouterr().out


def test_the_time_is_over_before_the_process(capsys: pytest.CaptureFixture[str]) -> None:
    transport = Announcing(STATUS, ANOTHER)
    with pytest.raises(DeadlineError, match="WAIT_TIMEOUT"):
        watch(Ledger(transport), "p", 0.2, StopSignals(), as_json=False)
    assert "another" not in capsys.readouterr().out
