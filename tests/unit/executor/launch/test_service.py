"""The service on the channel in memory: what it finds, tries again and leaves alone, and how it ends."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.memory.launches import IMAGE, Host, OneByOne, at_host, fresh, specification_of
from support.memory.scenario import DIGESTS
from support.memory.services import all_of, impatient, of, serve

from executor.caller import Caller
from executor.errors import DatasetError
from executor.launch import node_tasks, patience, service
from executor.launch.agenda import Assignment
from executor.launch.log import Event, LogEntry
from executor.launch.news import News
from executor.launch.node_report import NodeReport
from executor.launch.service import Service
from executor.launch.store import NodeStore
from executor.ledger.errors import PhaseError


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    impatient(monkeypatch)
    with at_host(Host(socket_folder, fresh(1)), monkeypatch) as found:
        yield found


def test_a_process_that_starts_later_is_found_and_worked_for(host: Host) -> None:
    host.lay_out("node01", "node02")
    first = all_of(Event.NODE_FINISHED, (host.process, "node01"), (host.process, "node02"))
    second = all_of(Event.NODE_FINISHED, ("second", "node01"), ("second", "node02"))
    agreed: list[str] = []

    def go_on(entry: LogEntry) -> bool:
        if first(entry) and not agreed:
            with OneByOne.lock:
                agreed.append(host.agree({**specification_of(1), "process": "second"}))
        return second(entry)

    said = serve(host, go_on, places=1)
    processes = sorted([host.process, "second"])
    both = [(process, node, None) for process in processes for node in ("node01", "node02")]
    assert of(said, Event.NODE_FINISHED) == of(said, Event.TASK_DONE) == both
    assert [name for name, *_ in of(said, Event.PROCESS_FOUND)] == processes
    for process in processes:
        assert host.ledger().models.get(process, "node02").node == "node02"
        assert NodeStore(host.state, "org1", process, "node01").has_finished


def test_a_node_that_fails_is_tried_again_and_keeps_nobody_from_going_on(host: Host) -> None:
    host.lay_out("node01")
    other = all_of(Event.NODE_FINISHED, (host.process, "node01"))
    itself = all_of(Event.NODE_FAILED, (host.process, "node02"))
    both = all_of(Event.NODE_FINISHED, (host.process, "node01"), (host.process, "node02"))

    def go_on(entry: LogEntry) -> bool:
        if other(entry) & itself(entry):
            host.lay_out("node02")
        return both(entry)

    said = serve(host, go_on)
    failed = [entry for entry in said if entry.event is Event.NODE_FAILED]
    assert {(entry.node, entry.code, entry.exit_code) for entry in failed} == {("node02", "DATA_FILE", 40)}
    assert all(entry.again_in is not None for entry in failed)
    # A file's name is the operator's own.
    assert not [entry for entry in said if str(host.state) in entry.to_line()]


def test_a_node_that_came_further_before_it_failed_is_tried_again_soon(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three failures in a row, the fourth after a task was done; the waits double but for that."""
    monkeypatch.setattr(patience, "FIRST", 0.2)
    monkeypatch.setattr(Service, "_is_local", lambda _, node: node == "node01")
    done: Any = [[], [], [], ["a task"]]

    def fail(*given: Any) -> NodeReport:
        return NodeReport(given[3], done.pop(0), error=DatasetError("DATA_FILE", "gone", case="unnamed"))

    monkeypatch.setattr(service, "launch_node", fail)
    said = serve(host, lambda _: not done)
    waits = [entry.again_in for entry in said if entry.event is Event.NODE_FAILED]
    third, fourth = (wait or 0.0 for wait in waits[2:])
    assert third >= 0.4
    assert 0 < fourth <= 0.2


def test_a1_a_tampered_image_is_refused_once_until_the_ledger_says_something_else(host: Host) -> None:
    host.lay_out("node01", "node02")
    there = host.engine.images.pop(DIGESTS[2])
    host.engine.images[f"{IMAGE}@{DIGESTS[1]}"] = {**there, "Id": DIGESTS[3]}
    refused = all_of(Event.NODE_REFUSED, (host.process, "node01"), (host.process, "node02"))
    finished = all_of(Event.NODE_FINISHED, (host.process, "node01"))
    left: list[str] = []

    def go_on(entry: LogEntry) -> bool:
        if refused(entry) and not left:
            host.engine.images = {DIGESTS[2]: there}
            with OneByOne.lock:
                host.federation.admin1.submit("orchestration", "Leave", host.process, "node02", 0, "")
            left.append("node02")
        return finished(entry)

    said = serve(host, go_on)
    assert of(said, Event.NODE_REFUSED) == [
        (host.process, node, "IMAGE_MISMATCH") for node in ("node01", "node02")
    ]
    assert [entry.again_in for entry in said if entry.event is Event.NODE_REFUSED] == [None, None]
    assert len(list(host.ledger().execution.list_refusals(host.process, "node01"))) == 1


def test_a_node_is_left_alone_until_the_coordinator_opens_its_step(host: Host) -> None:
    """Nothing is tried again meanwhile, and nothing is written; the opening itself is what wakes it."""
    host.lay_out("node01", "node02")
    host.federation.process = host.agree(
        {**specification_of(1), "process": "central", "coordinator": "Org2MSP"}
    )
    waiting = all_of(Event.NODE_REFUSED, ("central", "node01"), ("central", "node02"))
    finished = all_of(Event.NODE_FINISHED, ("central", "node01"), ("central", "node02"))
    opened: list[str] = []

    def go_on(entry: LogEntry) -> bool:
        if waiting(entry) and not opened:
            with OneByOne.lock:
                host.federation.admin2.submit("orchestration", "OpenStep", "central", "train")
            opened.append("train")
        return finished(entry)

    said = serve(host, go_on)
    assert of(said, Event.NODE_REFUSED) == [
        ("central", node, "STEP_UNOPENED") for node in ("node01", "node02")
    ]
    assert not list(host.ledger().execution.list_refusals("central"))


def test_what_an_earlier_executor_left_in_a_process_that_was_given_up_is_cleaned(host: Host) -> None:
    (host.directory() / "run").mkdir(parents=True)
    for admin in (host.federation.admin1, host.federation.admin2):
        admin.submit("orchestration", "Abort", host.process, "enough")
    said = serve(host, lambda entry: entry.event is Event.NODE_REFUSED)
    assert of(said, Event.PROCESS_FOUND) == []
    (refused,) = [entry for entry in said if entry.event is Event.NODE_REFUSED]
    assert (refused.code, refused.again_in) == ("PROCESS_NOT_RUNNING", None)
    assert not (host.directory() / "run").exists()


def leave(host: Host, *nodes: str) -> None:
    for node in nodes:
        admin = host.federation.admin1 if node in ("node01", "node02") else host.federation.admin2
        admin.submit("orchestration", "Leave", host.process, node, 0, "")


def test_h10_the_model_of_a_member_that_vanished_is_published_and_the_process_ends(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(host, "node03", "node04")
    with monkeypatch.context() as vanishing:
        vanishing.setattr(node_tasks, "finish", lambda *_, **__: None)
        assert host.launch("--node", "node02", *host.data).exit_code == 0
    shutil.rmtree(host.state / "organisations" / "org1" / "users" / "node02")
    host.lay_out("node01")
    said = serve(host, lambda entry: entry.event is Event.PROCESS_ENDED)
    assert [entry.text for entry in said if entry.event is Event.PROCESS_ENDED] == ["is completed"]
    assert host.ledger().models.get(host.process, "node02").missing != ()
    # It is asked about until the process has ended, and what is said of it is news each time.
    finished = [entry.text for entry in said if entry.event is Event.NODE_FINISHED]
    assert len(finished) == len(set(finished)) > 0


def test_a_node_that_left_before_its_first_result_is_done_when_its_process_is_over(host: Host) -> None:
    leave(host, "node01", "node03", "node04")
    assert "takes no part" in host.launch("--node", "node01").stdout
    store = NodeStore(host.state, "org1", host.process, "node01")
    assert not store.has_finished
    assert host.launch("--node", "node02", *host.data).exit_code == 0
    assert "takes no part" in host.launch("--node", "node01").stdout
    assert store.has_finished


def test_g9_a_directory_of_another_user_s_ends_no_service(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.lay_out("node01", "node02")
    foreign = NodeStore(host.state, "org1", "an-old-one", "node01")
    foreign.directory.mkdir(parents=True)
    usual = Path.exists

    def exists(path: Path) -> bool:
        if path.parent == foreign.directory:
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path)

    monkeypatch.setattr(Path, "exists", exists)
    said = serve(host, all_of(Event.NODE_FINISHED, (host.process, "node01")))
    assert not [entry for entry in said if entry.process == "an-old-one"]


def test_a_node_that_left_is_told_of_once_and_not_when_its_process_is_over(host: Host) -> None:
    said: list[Event] = []
    news = News(lambda event, *_, **__: said.append(event))
    left, assignment = NodeReport("node01", left=0), Assignment(host.process, "node01")
    assert news.of(assignment, left).left is None
    running = host.ledger("auditor").orchestration.status(host.process)
    news.read(host.process, running, is_ours=True)
    assert [news.of(assignment, left).left for _ in range(2)] == [0, None]
    news.read(host.process, None, is_ours=True)
    assert news.of(assignment, left).left is None
    assert said == [Event.PROCESS_FOUND, Event.PROCESS_ENDED]


def test_a_ledger_that_is_away_for_a_while_is_waited_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.lay_out("node01", "node02")
    usual, tries = Caller.ledger, iter([PhaseError("LEDGER_UNREACHABLE", "no peer answers")])

    def away(caller: Caller) -> Any:
        for error in tries:
            raise error
        return usual(caller)

    monkeypatch.setattr(Caller, "ledger", away)
    said = serve(host, all_of(Event.NODE_FINISHED, (host.process, "node01")))
    assert [entry.code for entry in said if entry.event is Event.LEDGER_LOST] == ["LEDGER_UNREACHABLE"]
    assert Event.LEDGER_FOUND in {entry.event for entry in said}


def test_h1_a_process_that_peers_disagree_about_keeps_no_other_from_going_on(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.lay_out("node01", "node02")
    host.agree({**specification_of(1), "process": "a-disputed-one"})
    honest = OneByOne.evaluate_agreed

    def disputed(transport: OneByOne, chaincode: str, function: str, *arguments: Any) -> Any:
        if arguments[:1] == ("a-disputed-one",):
            raise PhaseError("PEERS_DISAGREE", "each says something else")
        return honest(transport, chaincode, function, *arguments)

    monkeypatch.setattr(OneByOne, "evaluate_agreed", disputed)
    said = serve(host, all_of(Event.NODE_FINISHED, (host.process, "node01")))
    assert of(said, Event.PROCESS_FAILED) == [("a-disputed-one", None, "PEERS_DISAGREE")]
    assert {name for name, *_ in of(said, Event.PROCESS_FOUND)} == {host.process}
    assert of(said, Event.LEDGER_LOST) == []


def test_a_defect_ends_one_launch_and_not_the_service(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host.lay_out("node01", "node02")
    first = iter([RuntimeError("a row's own words")])

    def flawed(*_: Any) -> bool:
        for defect in first:
            raise defect
        return False

    monkeypatch.setattr(node_tasks, "check_free", flawed)
    both = all_of(Event.NODE_FINISHED, (host.process, "node01"), (host.process, "node02"))
    said = serve(host, both)
    assert [code for *_, code in of(said, Event.NODE_FAILED)] == ["EXECUTOR_FAULT"]
    shown = capsys.readouterr().err
    assert "in flawed" in shown
    assert "RuntimeError" in shown
    assert "a row's own words" not in shown
