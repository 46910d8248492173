"""How a task ends: with its time accounted for, or closed on the ledger with the cause, whatever failed."""

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.federation import Federation
from support.memory.launches import LearnerContainer
from support.memory.learners import specification
from support.memory.tasks import NODE, closed, planned, session_in

from executor.errors import IntegrityError, TaskError
from executor.launch import task_run
from executor.launch.broker import BrokerServer
from executor.launch.parts import Part, PartTimes
from executor.launch.reasons import SENTENCES
from executor.launch.recovery import recover
from executor.launch.session import STORE_LABEL, NodeSession
from executor.launch.store import Journal, NodeStore
from executor.launch.task_run import container_name, run_task
from executor.ledger.errors import PhaseError
from executor.sandbox.container import Outcome
from protocol.broker.exit_codes import LearnerExit
from protocol.errors import AttestreeError
from protocol.task.opening import TaskId

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/srv/bank/run")
AWAY = PhaseError("LEDGER_UNREACHABLE", "no peer answers")


@pytest.fixture(scope="module")
def restored() -> Any:
    return Federation(specification(synchronous=False, iterations=2)).snapshot()  # type: ignore[no-untyped-call]


@pytest.fixture
def session(socket_folder: Path, restored: Any, monkeypatch: pytest.MonkeyPatch) -> NodeSession:
    monkeypatch.setattr(task_run, "Container", LearnerContainer)
    return session_in(socket_folder / "s", restored())


def task_of(session: NodeSession) -> TaskId:
    return TaskId(session.process, NODE, 0)


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have the container fail to be made."""

    def create(*_: object) -> None:
        raise error

    monkeypatch.setattr(LearnerContainer, "create", create)


def test_g9_a_full_disk_is_the_host_s_fault_and_its_path_stays_here(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(store: NodeStore, _: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(store.directory))

    monkeypatch.setattr(NodeStore, "keep_state", full)
    with pytest.raises(TaskError, match="HOST_FAILED") as failed:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert str(session.store.directory) in failed.value.cause
    assert (closed(session).code, closed(session).reason) == ("HOST_FAILED", SENTENCES["HOST_FAILED"])
    assert session.store.begun() is None


ENDS = {
    "LEARNER_MEMORY": Outcome(137, True, False, "MemoryError"),
    "LEARNER_NO_RESULT": Outcome(0, False, False, "nothing to do"),
    "LEARNER_FAILED": Outcome(67, False, False, "a bad tree"),
    "LEARNER_TIMEOUT": Outcome(137, False, True, "still at work"),
}


@pytest.mark.parametrize("code", ENDS)
def test_f12_a_container_that_ends_without_a_result_closes_its_task_with_the_cause(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    class Ending(LearnerContainer):
        def start(self, key: bytearray) -> None:
            self.thread = threading.Thread(target=key.clear)
            self.thread.start()

        def wait_for_end(self, seconds: float) -> bool:
            assert seconds == 60.0
            return ENDS[code].timed_out

        def outcome(self, *, timed_out: bool) -> Outcome:
            assert timed_out is ENDS[code].timed_out
            return ENDS[code]

    monkeypatch.setattr(task_run, "Container", Ending)
    with pytest.raises(AttestreeError) as failed:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert (failed.value.code, closed(session).code) == (code, code)
    assert closed(session).reason == SENTENCES[code]
    told = f"{failed.value.cause} {failed.value.remedy}"
    if code == "LEARNER_TIMEOUT":
        assert "after 60 s" in told
    else:
        assert f"Its last lines:\n{ENDS[code].log_tail}" in told
    if code == "LEARNER_FAILED":
        assert f"67: {LearnerExit.meaning_of(67)}" in told


def test_g9_a_disk_that_fails_before_the_container_runs_closes_the_task_too(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, FULL)
    with pytest.raises(TaskError, match="HOST_FAILED") as failed:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert failed.value.__cause__ is FULL
    assert (closed(session).code, closed(session).reason) == ("HOST_FAILED", SENTENCES["HOST_FAILED"])
    assert (session.store.begun(), session.beside) == (None, [])


def test_a1_a_container_that_is_not_what_was_asked_for_is_refused_with_evidence(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = IntegrityError("IMAGE_MISMATCH", "it runs another", {"found": "x\x1b", "expected": "y"})
    failing(monkeypatch, found)
    with pytest.raises(IntegrityError) as failed:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert failed.value is found
    (refusal,) = session.ledger.execution.list_refusals(session.process, NODE)
    assert (refusal.iteration, refusal.code) == (0, "IMAGE_MISMATCH")
    assert refusal.evidence == {"found": "x ", "expected": "y"}
    assert session.store.begun() is None


@pytest.mark.parametrize("error", [FULL, AWAY, IntegrityError("IMAGE_MISMATCH", "another", {})], ids=str)
def test_a_task_that_cannot_be_closed_stays_written_down_for_the_next_start(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def away(*_: object) -> None:
        raise AWAY

    failing(monkeypatch, error)
    with monkeypatch.context() as cut_off:
        cut_off.setattr(type(session.ledger.execution), "fail", away)
        cut_off.setattr(type(session.ledger.execution), "refuse", away)
        with pytest.raises(AttestreeError):
            run_task(planned(session, tmp_path), session, lambda _: None)
    assert session.beside == [AWAY]
    task = session.ledger.execution.get_task(task_of(session))
    assert task.opening is not None
    labels = session.labels
    name = container_name(labels, task_of(session))
    assert session.store.begun() == Journal(0, str(task.opening.public_key), name, labels[STORE_LABEL])
    said: list[str] = []
    recover(session, said.append)
    assert said == ["closing iteration 0, which an earlier executor began"]
    assert (closed(session).code, closed(session).reason) == ("EXECUTOR_LOST", SENTENCES["EXECUTOR_LOST"])
    assert session.store.begun() is None


# --- what the container gets, and where the time goes ---


class Timed(BrokerServer):
    """A broker whose learner asked first at 120, or earlier, and last heard an answer at 140."""

    asked = 120.0

    def close(self) -> None:
        super().close()
        if self.first_question is not None:
            self.first_question, self.last_answer, self.learner_seconds = self.asked, 140.0, 7.5


def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task begins at 100; it is open at 110, its container started by 113 and ended by 150."""
    times = iter([100.0, 110.0, 113.0, 150.0, 160.0])
    monkeypatch.setattr(task_run, "time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr(task_run, "BrokerServer", Timed)


def spent(parts: PartTimes) -> tuple[float, ...]:
    return parts[Part.CONTAINER], parts[Part.IMPORTS], parts[Part.LEARNING]


def test_the_time_of_a_task_is_told_by_part(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch)
    parts = PartTimes()
    summary = run_task(planned(session, tmp_path), session, lambda _: None, parts)
    assert summary.parts is parts
    assert spent(parts) == pytest.approx((13.0, 7.0, 7.5), abs=0.1)
    assert parts[Part.COMMITS] > 0
    assert summary.seconds == 60.0


def test_a_learner_that_asks_before_it_is_said_to_run_is_not_counted_twice(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch)
    monkeypatch.setattr(Timed, "asked", 112.0)
    parts = PartTimes()
    run_task(planned(session, tmp_path), session, lambda _: None, parts)
    assert spent(parts) == pytest.approx((12.0, 0.0, 7.5), abs=0.1)


def test_a_learner_that_never_asked_was_starting_all_the_time(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(LearnerContainer):
        def start(self, key: bytearray) -> None:
            self.thread = threading.Thread(target=key.clear)
            self.thread.start()

    clock(monkeypatch)
    monkeypatch.setattr(task_run, "Container", Silent)
    parts = PartTimes()
    with pytest.raises(TaskError, match="LEARNER_NO_RESULT"):
        run_task(planned(session, tmp_path), session, lambda _: None, parts)
    assert spent(parts) == pytest.approx((3.0, 37.0, 0.0), abs=0.1)


def test_the_container_is_made_as_planned_and_ends_with_the_task_s_time(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    waited: list[float] = []

    class Recorded(LearnerContainer):
        @classmethod
        def create(cls, *given: Any) -> Any:
            made.append(given)
            folder = given[2].rows.parent
            assert (folder.stat().st_mode & 0o777, given[2].rows.stat().st_mode & 0o777) == (0o700, 0o444)
            return super().create(*given)

        def wait_for_end(self, seconds: float) -> bool:
            waited.append(seconds)
            return super().wait_for_end(seconds)

    monkeypatch.setattr(task_run, "Container", Recorded)
    plan = planned(session, tmp_path)
    run_task(plan, replace(session, seconds=1e9), lambda _: None)
    ((client, profile, mounts, labels, name),) = made
    assert (client, profile, labels) == (session.client, plan.profile, session.labels)
    assert name == container_name(session.labels, task_of(session))
    run = session.store.directory / "run"
    assert (mounts.rows, mounts.state, mounts.socket) == (run / "rows", None, run / "broker.sock")
    assert waited == [float(plan.context.task_seconds)]
    run_task(planned(session, tmp_path), session, lambda _: None)
    assert made[1][2].state == run / "state"


def test_a_container_that_started_after_the_stop_is_killed(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = threading.Event()

    class Late(LearnerContainer):
        def start(self, key: bytearray) -> None:
            key[:] = bytes(len(key))
            session.stopping.set()
            self.thread = threading.Thread(target=killed.wait)
            self.thread.start()

        def kill(self) -> None:
            killed.set()

        def outcome(self, *, timed_out: bool) -> Outcome:
            return Outcome(137, False, timed_out, "")

    monkeypatch.setattr(task_run, "Container", Late)
    with pytest.raises(TaskError, match="INTERRUPTED"):
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert closed(session).code == "INTERRUPTED"
