"""The turns of a service: whom it begins, what it hears, and how it takes in how a launch ended."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.launches import Host, at_host, fresh
from support.memory.services import impatient, of, serve, service_of

from executor.errors import DatasetError, TaskError
from executor.launch import service
from executor.launch.log import Event, LogEntry
from executor.launch.node_report import NodeReport
from executor.launch.patience import Backoff
from executor.launch.service import EVENTS_AT_ONCE, FOREVER, Service
from executor.launch.store import Journal, NodeStore
from executor.launch.watchlist import MOST_ANNOUNCED
from executor.ledger.errors import PhaseError
from executor.ledger.follow import Follower
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import AttestreeError, StateError
from protocol.task.opening import TaskId

UNREADABLE = DatasetError("DATA_FILE", "gone", case="unnamed")
AWAY = PhaseError("LEDGER_TIMEOUT", "no peer answers in time")
Explained = list[tuple[str, str, AttestreeError]]


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    impatient(monkeypatch)
    with at_host(Host(socket_folder, fresh(1)), monkeypatch) as found:
        yield found


@pytest.fixture
def said() -> list[LogEntry]:
    return []


@pytest.fixture
def idle(host: Host, said: list[LogEntry]) -> Service:
    """A service that does nothing by itself."""
    return service_of(host, said.append)


def launching(monkeypatch: pytest.MonkeyPatch, launch: Any) -> None:
    monkeypatch.setattr(service, "launch_node", launch)
    monkeypatch.setattr(Service, "_is_local", lambda _, node: node == "node01")


def test_a_node_is_launched_by_the_service_s_settings_for_its_process(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[Any] = []
    launching(monkeypatch, lambda *given: launched.append(given) or NodeReport("node01", error=UNREADABLE))
    explained: Explained = []
    said = serve(
        host,
        lambda entry: entry.event is Event.NODE_FAILED,
        explain=lambda of, error: explained.append((of.process, of.node, error)),
    )
    caller, client, settings, node, account, stopping = launched[0]
    assert (caller.organisation, client, node) == ("org1", host.engine, "node01")
    assert (settings.process, settings.seconds, settings.iterations) == (host.process, 60.0, None)
    assert (settings.for_silent, settings.waits) == (False, False)
    assert (account.organisation, account.process) == ("org1", host.process)
    assert stopping.is_set()
    assert explained[0] == (host.process, "node01", UNREADABLE)
    (failed,) = [entry for entry in said if entry.event is Event.NODE_FAILED][:1]
    assert (failed.organisation, failed.process, failed.node) == ("org1", host.process, "node01")


def test_events_of_processes_are_followed_from_the_height_at_which_all_were_read(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Following(Follower):
        def __init__(self, *given: Any) -> None:
            asked.append(given)
            super().__init__(*given)

    monkeypatch.setattr(service, "Follower", Following)
    launching(monkeypatch, lambda *_: NodeReport("node01", error=UNREADABLE))
    height = host.federation.blocks
    serve(host, lambda entry: entry.event is Event.NODE_FAILED)
    ((transport, *given),) = asked
    assert given == [None, height, FOREVER, ("orchestration",)]
    assert transport.member is host.federation.auditor1


def test_a_process_that_ends_by_an_event_is_said_to_have_ended(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else tells: nobody polls, and the one node of this host is at work all the time."""
    given_up = threading.Event()
    launching(monkeypatch, lambda *_: given_up.wait(150) and NodeReport("node01"))

    def go_on(entry: LogEntry) -> bool:
        if entry.event is Event.PROCESS_FOUND:
            for admin in (host.federation.admin1, host.federation.admin2):
                admin.submit("orchestration", "Abort", host.process, "enough")
        if entry.event is Event.PROCESS_ENDED:
            given_up.set()
        return entry.event is Event.PROCESS_ENDED

    said = serve(host, go_on)
    assert [entry.text for entry in said if entry.event is Event.PROCESS_ENDED] == ["is aborted"]


def test_while_the_ledger_is_away_the_service_rests_and_then_says_that_it_answers(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    launching(monkeypatch, lambda *_: NodeReport("node01", error=UNREADABLE))
    usual, tries = service.Agenda.look, iter([AWAY, AWAY])
    rested: list[float] = []

    def look(*given: Any) -> Any:
        for error in tries:
            raise error
        return usual(*given)

    monkeypatch.setattr(service.Agenda, "look", look)
    monkeypatch.setattr(service.Service, "_rest", lambda _, seconds: rested.append(seconds))
    failed = Backoff.failed
    monkeypatch.setattr(Backoff, "failed", lambda backoff: failed(backoff) * 0 + 3.14159)
    said = serve(host, lambda entry: entry.event is Event.NODE_FAILED)
    lost = [entry for entry in said if entry.event is Event.LEDGER_LOST]
    assert [(entry.code, entry.exit_code, entry.text) for entry in lost] == [
        ("LEDGER_TIMEOUT", 20, "the ledger does not answer")
    ] * 2
    assert [entry.again_in for entry in lost] == rested == [3.1, 3.1]
    assert [entry.text for entry in said if entry.event is Event.LEDGER_FOUND] == ["the ledger answers again"]
    assert of(said, Event.PROCESS_FAILED) == []


def test_a_rest_is_as_long_as_it_is_to_be_unless_the_service_is_stopped(
    idle: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, waits = [100.0], list[float]()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(service, "PULSE", 0.5)
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(idle, "_stopping", SimpleNamespace(wait=wait))
    idle._rest(1.25)
    assert waits == [0.5, 0.5, 0.25]
    idle.stop.asked = True
    idle._rest(1.25)
    assert len(waits) == 3


class Events:
    """A peer that announces processes, as many as it likes."""

    def __init__(self, *names: str, without_end: bool = False) -> None:
        self.names, self.without_end = list(names), without_end
        self.waits: list[float] = []

    def next(self, seconds: float) -> Any:
        self.waits.append(seconds)
        if not self.names and not self.without_end:
            return None
        return SimpleNamespace(payload={"process": self.names.pop(0) if self.names else "p"})


def test_an_event_is_waited_for_and_those_after_it_are_not(idle: Service) -> None:
    follower: Any = Events("p", "q")
    idle._hear(follower)
    assert follower.waits == [service.PULSE, 0.0, 0.0]
    assert idle._watchlist.take(0.0) == ["p", "q"]
    idle._watchlist.add(["left"])
    hurried: Any = Events()
    idle._hear(hurried)
    assert hurried.waits == [0.0]


def test_h1_events_without_end_keep_nothing_else_from_its_turn(idle: Service) -> None:
    follower: Any = Events(without_end=True)
    idle._hear(follower)
    assert len(follower.waits) == EVENTS_AT_ONCE >= MOST_ANNOUNCED


def ended(report: NodeReport | Exception) -> "Future[NodeReport]":
    made: Future[NodeReport] = Future()
    if isinstance(report, NodeReport):
        made.set_result(report)
    else:
        made.set_exception(report)
    return made


def noted(idle: Service, host: Host, report: NodeReport | Exception) -> None:
    """Have a launch of the first node end."""
    idle._look(host.ledger("auditor"), host.process)
    (assignment,) = [each for each in idle._agenda.due(1e12) if each.node == "node01"]
    idle._agenda.begun(assignment)
    future = ended(report)
    idle._at_work[future] = assignment
    idle._note(future)
    assert idle._at_work == {}


def test_how_a_launch_ended_is_told_whole_and_its_process_looked_at_again(
    idle: Service, host: Host, said: list[LogEntry]
) -> None:
    explained: Explained = []
    idle.explain = lambda of, error: explained.append((of.process, of.node, error))
    noted(idle, host, NodeReport("node01", error=UNREADABLE, beside=[AWAY]))
    assert explained == [(host.process, "node01", UNREADABLE), (host.process, "node01", AWAY)]
    failed = [entry for entry in said if entry.event is Event.NODE_FAILED]
    assert [(entry.process, entry.node, entry.code) for entry in failed] == [
        (host.process, "node01", "DATA_FILE"),
        (host.process, "node01", "LEDGER_TIMEOUT"),
    ]
    assert all(entry.again_in is not None for entry in failed)
    assert idle._watchlist.take(0.0) == [host.process]


def test_what_a_stopped_service_leaves_is_not_said_to_be_tried_again(
    idle: Service, host: Host, said: list[LogEntry]
) -> None:
    idle.stop.asked = True
    noted(idle, host, NodeReport("node01", error=UNREADABLE))
    assert [entry.again_in for entry in said if entry.event is Event.NODE_FAILED] == [None]


def test_a_launch_that_was_refused_for_good_is_not_due_until_the_ledger_changes(
    idle: Service, host: Host, said: list[LogEntry]
) -> None:
    context = host.ledger("auditor").orchestration.task_context(TaskId(host.process, "node01", 0))
    lasting = TaskError("LEARNER_NO_RESULT", "the learner ended well and gave no result", tail="")
    noted(idle, host, NodeReport("node01", error=lasting, context=context))
    assert [entry.again_in for entry in said if entry.event is Event.NODE_REFUSED] == [None]
    assert [each.node for each in idle._agenda.due(1e12)] == ["node02"]


def test_a_defect_is_told_by_its_kind_and_place(
    idle: Service, host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    explained: Explained = []
    idle.explain = lambda of, error: explained.append((of.process, of.node, error))
    try:
        raise KeyError("a row's own words")
    except KeyError as error:
        noted(idle, host, error)
    ((_, node, fault),) = explained
    assert (node, fault.code, fault.cause) == ("node01", "EXECUTOR_FAULT", "KeyError")
    shown = capsys.readouterr().err
    assert "test_a_defect_is_told_by_its_kind_and_place" in shown
    assert shown.endswith("KeyError\n")


def test_an_end_kills_the_learners_until_the_last_launch_has_ended(
    idle: Service, host: Host, said: list[LogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    idle._look(host.ledger("auditor"), host.process)
    killed: list[Any] = []
    stopped = TaskError("INTERRUPTED", "the operator stopped the executor")
    for assignment in idle._agenda.due(1e12):
        idle._agenda.begun(assignment)
        idle._at_work[Future()] = assignment

    def kill(*given: Any) -> None:
        killed.append(given)
        if len(killed) == 3:
            for future, (_, node) in idle._at_work.items():
                future.set_result(NodeReport(node, error=stopped))

    monkeypatch.setattr(service, "kill_learner", kill)
    idle.stop.asked = True
    idle._end()
    assert [given[2:] for given in killed] == [(host.process, "node01"), (host.process, "node02")] * 2
    assert killed[0][:2] == (idle.caller, idle.client)
    assert idle._stopping.is_set()
    assert [(entry.event, entry.text) for entry in said if entry.event is Event.SERVICE_STOPPING] == [
        (Event.SERVICE_STOPPING, "ends 2 launches")
    ]
    assert of(said, Event.NODE_STOPPED) == [
        (host.process, node, "INTERRUPTED") for node in ("node01", "node02")
    ]


# --- what an earlier executor left ---


def store_in(host: Host, process: str, node: str, *, remains: bool = False, finished: bool = False) -> None:
    store = NodeStore(host.state, "org1", process, node)
    with store.locked():
        if remains:
            store.begin(Journal(0, "ed25519:00", "c"))
        if finished:
            store.finished()


def adopted(
    idle: Service, monkeypatch: pytest.MonkeyPatch, **statuses: ProcessState
) -> list[tuple[str, str]]:
    """Adopt what is left, on a ledger on which processes stand like this; returns who is due then."""

    def look(_ledger: Any, process: str) -> Any:
        name = process.replace("-", "_")
        return SimpleNamespace(status=statuses[name]) if name in statuses else None

    monkeypatch.setattr(idle, "_look", look)
    nothing: Any = None
    idle._adopt(nothing)
    return [tuple(each) for each in idle._agenda.due(0.0)]


def test_only_what_may_be_left_to_do_in_a_process_that_has_ended_is_adopted(
    idle: Service, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_in(host, "completed", "node01")
    store_in(host, "completed", "node02", finished=True)
    store_in(host, "completed", "node07")  # of another host
    store_in(host, "aborted", "node01")
    store_in(host, "aborted", "node02", remains=True)
    store_in(host, "ended-late", "node01", remains=True, finished=True)
    store_in(host, "unknown", "node01", remains=True)
    found = adopted(
        idle,
        monkeypatch,
        completed=ProcessState.COMPLETED,
        aborted=ProcessState.ABORTED,
        ended_late=ProcessState.ABORTED,
    )
    assert found == [("aborted", "node02"), ("completed", "node01"), ("ended-late", "node01")]


def test_a_stopped_service_adopts_nothing(idle: Service, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    store_in(host, "completed", "node01")
    idle.stop.asked = True
    assert adopted(idle, monkeypatch, completed=ProcessState.COMPLETED) == []


def test_what_runs_anyway_is_not_adopted_and_so_not_worked_for_twice(
    idle: Service, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle._look(host.ledger("auditor"), host.process)
    store_in(host, host.process, "node02", remains=True)
    due = [tuple(each) for each in idle._agenda.due(0.0)]
    assert adopted(idle, monkeypatch) == due


def test_only_processes_that_run_are_asked_for(idle: Service, host: Host) -> None:
    ledger: Any = host.ledger("auditor")
    idle._poll(ledger)
    listed = [arguments for _, _, function, arguments, *_ in ledger.transport.sent if function == "List"]
    assert {arguments[0] for arguments in listed} == {"running"}
    assert idle._agenda.processes == {host.process}
    idle._poll(ledger)
    again = [function for _, _, function, *_ in ledger.transport.sent if function == "List"]
    assert len(again) == len(listed)


def test_a_process_that_cannot_be_read_is_said_and_another_refusal_of_it_raised_if_nobody_answers(
    idle: Service, said: list[LogEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[AttestreeError] = [StateError("PROCESS_NOT_RUNNING", "it is odd"), AWAY]

    def look(*_: Any) -> Any:
        raise errors[0]

    monkeypatch.setattr(service.Agenda, "look", look)
    nothing: Any = None
    assert idle._look(nothing, "p") is None
    assert [(entry.event, entry.process, entry.code) for entry in said] == [
        (Event.PROCESS_FAILED, "p", "PROCESS_NOT_RUNNING")
    ]
    assert json.loads(said[0].to_line())["organisation"] == "org1"
    errors.pop(0)
    with pytest.raises(PhaseError, match="LEDGER_TIMEOUT"):
        idle._look(nothing, "p")


def test_a_flood_of_others_running_processes_is_not_read_one_by_one(idle: Service) -> None:
    """Whoever starts processes of its own by the hundred costs a service a list, and no more."""

    def listed(status: str) -> list[Any]:
        assert status == "running"
        names = [(f"flood-{number}", ("Org3MSP",)) for number in range(500)]
        return [
            SimpleNamespace(process=process, organisations=organisations)
            for process, organisations in [*names, ("ours", ("Org1MSP", "Org2MSP"))]
        ]

    read: list[str] = []
    ledger: Any = SimpleNamespace(orchestration=SimpleNamespace(list=listed))
    idle._look = lambda _, process: read.append(process)  # type: ignore[assignment,return-value]
    idle._poll(ledger)
    assert read == ["ours"]
