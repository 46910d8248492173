"""A container is made while its task is opened and removed while its node goes on, and never runs early."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.memory.federation import Federation
from support.memory.launches import Host, LearnerContainer, at_host, fresh
from support.memory.learners import specification
from support.memory.tasks import NODE, planned, session_in

from executor.errors import EngineError, IntegrityError, TaskError
from executor.exits import ENGINE_UNREACHABLE
from executor.launch import task_run
from executor.launch.containers import ContainerRemoval
from executor.launch.recovery import recover
from executor.launch.session import NodeSession
from executor.launch.task_run import run_task
from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.ledger.errors import PhaseError
from protocol.errors import AttestreeError, StateError
from protocol.task.opening import TaskId

WAIT = 150
AWAY = PhaseError("LEDGER_UNREACHABLE", "no peer answers")
STUCK = EngineError("ENGINE_FAILED", "the engine could not remove the container")


class Watched(LearnerContainer):
    """Writes down what becomes of it, and waits where a test wants it to."""

    events: list[str]
    created: threading.Event
    may_be_created: threading.Event
    may_be_removed: threading.Event

    @classmethod
    def create(cls, *given: Any) -> Any:
        assert cls.may_be_created.wait(WAIT)
        made = super().create(*given)
        cls.events.append("created")
        cls.created.set()
        return made

    def start(self, key: bytearray) -> None:
        self.events.append("started")
        super().start(key)

    def remove(self) -> None:
        assert self.may_be_removed.wait(WAIT)
        super().remove()
        self.events.append("removed")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    """Have every container watched; nothing keeps it waiting yet."""
    Watched.events, Watched.created = [], threading.Event()
    Watched.may_be_created, Watched.may_be_removed = threading.Event(), threading.Event()
    Watched.may_be_created.set()
    Watched.may_be_removed.set()
    monkeypatch.setattr(task_run, "Container", Watched)
    return Watched


@pytest.fixture
def session(socket_folder: Path) -> Iterator[NodeSession]:
    found = session_in(socket_folder / "s", Federation(specification(synchronous=False, iterations=2)))
    yield found
    Watched.may_be_removed.set()
    found.removal.close(found.beside.append)


def opening(monkeypatch: pytest.MonkeyPatch, before: Any = None, error: AttestreeError | None = None) -> None:
    """Have the task opened after `before`, or not at all."""
    honest = ExecutionRecord.open_task

    def open_task(*given: Any) -> Any:
        if before is not None:
            before()
        if error is not None:
            raise error
        opened = honest(*given)
        Watched.events.append("open")
        return opened

    monkeypatch.setattr(ExecutionRecord, "open_task", open_task)


def task_of(session: NodeSession, iteration: int = 0) -> TaskId:
    return TaskId(session.process, NODE, iteration)


def test_a_container_is_created_while_its_task_is_being_opened(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    def until_created() -> None:
        assert watched.created.wait(WAIT)  # for ever, if nobody creates it before the task is open

    opening(monkeypatch, until_created)
    run_task(planned(session, tmp_path), session, lambda _: None)
    session.removal.finish()
    assert watched.events == ["created", "open", "started", "removed"]


def test_b1_no_code_runs_before_the_commitment_is_on_the_ledger(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    def not_yet() -> None:
        assert watched.created.wait(WAIT)
        assert watched.events == ["created"]
        with pytest.raises(StateError, match="TASK_UNKNOWN"):
            session.ledger.execution.get_task(task_of(session))

    opening(monkeypatch, not_yet)
    honest = Watched.start

    def start(container: Watched, key: bytearray) -> None:
        assert session.ledger.execution.get_task(task_of(session)).is_under_way
        honest(container, key)

    monkeypatch.setattr(Watched, "start", start)
    run_task(planned(session, tmp_path), session, lambda _: None)
    assert watched.events[:3] == ["created", "open", "started"]


@pytest.mark.parametrize("is_late", [False, True], ids=["created first", "created afterwards"])
def test_a_task_that_cannot_be_opened_leaves_no_container_and_runs_none(
    session: NodeSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    watched: type[Watched],
    is_late: bool,
) -> None:
    if is_late:
        watched.may_be_created.clear()

    def before() -> None:
        if is_late:
            threading.Timer(0.1, watched.may_be_created.set).start()
        else:
            assert watched.created.wait(WAIT)

    opening(monkeypatch, before, AWAY)
    with pytest.raises(PhaseError) as failed:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert failed.value is AWAY
    assert watched.events == ["created", "removed"]
    assert session.beside == []
    assert session.store.begun() is not None  # the transaction may have come through: the next start asks
    assert not (session.store.directory / "run").exists()


def test_a1_another_image_s_container_is_a_refusal_also_where_the_task_was_not_opened(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    other = IntegrityError("IMAGE_MISMATCH", "it runs another", {"found": "x"})

    def create(*_: object) -> None:
        raise other

    monkeypatch.setattr(watched, "create", create)
    opening(monkeypatch, error=AWAY)
    with pytest.raises(PhaseError) as failed:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert failed.value is AWAY
    assert session.beside == [other]
    (refusal,) = session.ledger.execution.list_refusals(session.process, NODE)
    assert refusal.code == "IMAGE_MISMATCH"


def test_a_full_disk_is_told_beside_a_task_that_could_not_be_opened(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    def create(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watched, "create", create)
    opening(monkeypatch, error=AWAY)
    with pytest.raises(PhaseError):
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert [error.code for error in session.beside] == ["HOST_FAILED"]


def test_f15_the_journal_knows_the_container_before_there_is_one(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    """Whoever is killed between creation and commitment leaves nothing that the next start does not find."""

    class KilledError(BaseException):
        """Ends an executor as a signal would: nothing of ours catches it."""

    known: list[Any] = []
    honest = watched.create

    def create(*given: Any) -> Any:
        known.append((session.store.begun(), given[3:]))
        return honest(*given)

    def die() -> None:
        assert watched.created.wait(WAIT)
        raise KilledError

    monkeypatch.setattr(watched, "create", create)
    opening(monkeypatch, die)
    with pytest.raises(KilledError):
        run_task(planned(session, tmp_path), session, lambda _: None)
    ((journal, (labels, name)),) = known
    assert (journal.container, journal.iteration) == (name, 0)
    assert labels == session.labels
    recover(session, lambda _: None)
    assert session.store.begun() is None


def test_a_node_goes_on_while_its_container_is_removed_and_the_journal_remembers_it(
    session: NodeSession, tmp_path: Path, watched: type[Watched]
) -> None:
    watched.may_be_removed.clear()
    run_task(planned(session, tmp_path), session, lambda _: None)
    assert session.store.begun() is not None
    assert "removed" not in watched.events
    second = planned(session, tmp_path)
    assert second.task.id.iteration == 1
    threading.Timer(0.1, watched.may_be_removed.set).start()
    run_task(second, session, lambda _: None)
    session.removal.finish()
    # The first is gone before there is anything of the second.
    assert watched.events == ["created", "started", "removed"] * 2
    assert session.store.begun() is None


def test_the_next_task_does_not_begin_where_the_container_before_could_not_be_removed(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    def stuck(_: object) -> None:
        raise STUCK

    with monkeypatch.context() as patched:
        patched.setattr(watched, "remove", stuck)
        run_task(planned(session, tmp_path), session, lambda _: None)
        with pytest.raises(EngineError) as failed:
            run_task(planned(session, tmp_path), session, lambda _: None)
    assert failed.value is STUCK
    assert watched.events == ["created", "started"]
    journal = session.store.begun()
    assert journal is not None
    assert journal.iteration == 0


@pytest.mark.parametrize("error", [STUCK, OSError(28, "No space left on device")], ids=str)
def test_a_removal_that_fails_at_the_end_of_a_session_is_told(error: Exception) -> None:
    removal, told = ContainerRemoval(), list[AttestreeError]()

    def fail() -> None:
        raise error

    removal.begin(fail)
    removal.close(told.append)
    assert [each.code for each in told] == ["HOST_FAILED" if isinstance(error, OSError) else STUCK.code]
    removal.close(told.append)
    assert len(told) == 1


def test_a_launch_ends_when_its_container_is_gone_and_says_so_if_it_is_not(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as host:
        monkeypatch.setattr(task_run, "Container", watched)
        watched.may_be_removed.clear()
        threading.Timer(0.3, watched.may_be_removed.set).start()
        assert host.launch("--node", "node01", *host.data).exit_code == 0
        assert watched.events[-1] == "removed"
        assert not (host.directory() / "journal.json").exists()

        def stuck(_: object) -> None:
            raise STUCK

        monkeypatch.setattr(watched, "remove", stuck)
        ran = host.launch("--node", "node01")
        assert ran.exit_code == ENGINE_UNREACHABLE
        assert STUCK.cause in ran.stderr
        assert (host.directory() / "journal.json").exists()


def test_a_stop_while_the_task_is_being_opened_closes_it(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: type[Watched]
) -> None:
    opening(monkeypatch, session.stopping.set)
    monkeypatch.setattr(watched, "kill", lambda _: None, raising=False)
    monkeypatch.setattr(LearnerContainer, "_run", lambda *_: None)
    with pytest.raises(TaskError, match="INTERRUPTED"):
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert watched.events[-1] == "removed"
    closed = session.ledger.execution.get_task(task_of(session)).closed
    assert closed is not None
    assert closed.code == "INTERRUPTED"
