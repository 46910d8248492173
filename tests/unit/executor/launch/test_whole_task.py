"""A whole task on the channel in memory: the real relay, broker, store and learner, without an engine."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.federation import Federation
from support.memory.launches import LearnerContainer
from support.memory.learners import specification
from support.memory.tasks import NODE, closed, planned, session_in

from executor.launch import task_run
from executor.launch.plan import find_next_task
from executor.launch.publish import LastTask, complete_process, finish, publish_model
from executor.launch.reasons import OTHERWISE
from executor.launch.recovery import check_free, recover
from executor.launch.session import NodeSession
from executor.launch.task_run import run_task
from executor.model.content import fetch
from learner import run as steps
from protocol.agreement.lifecycle import ProcessState
from protocol.digest import Digest
from protocol.errors import AttestreeError, RecordError, StateError, error_from
from protocol.identifiers import EstimatorId
from protocol.task.opening import TaskId
from protocol.task.state import StateRecord
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

SPLIT = Tree.from_arrays([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0.0, 1.0])


class LearnerKilledError(BaseException):
    """Ends an executor as a signal would: nothing of ours catches it."""


@pytest.fixture
def federation() -> Any:
    """A federation whose nodes wait for nobody."""
    return Federation(specification(synchronous=False, iterations=2))


@pytest.fixture(autouse=True)
def without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_run, "Container", LearnerContainer)


@pytest.fixture
def session(socket_folder: Path, federation: Any) -> NodeSession:
    return session_in(socket_folder / "s", federation)


def test_two_tasks_run_to_their_completion(session: NodeSession, tmp_path: Path) -> None:
    for iteration in range(2):
        said: list[str] = []
        summary = run_task(planned(session, tmp_path), session, said.append)
        assert summary.task.iteration == iteration
        assert [line.rstrip("0123456789 bytes") for line in said] == [
            "opening the task",
            "FIT",
            "SHARE,",
            "GET, 0 estimators from 0 neighbour",
            "completing with an ensemble of",
        ]
        assert said[-1].endswith(f" {len(summary.result.ensemble)}")
        session.removal.finish()
        assert session.store.begun() is None
        assert not (session.store.directory / "run").exists()
    assert find_next_task(session) is None
    assert session.beside == []


def test_h1_a_published_model_is_what_the_last_task_signed(session: NodeSession, tmp_path: Path) -> None:
    for _ in range(2):
        summary = run_task(planned(session, tmp_path), session, lambda _: None)
    said: list[str] = []
    assert publish_model(session, said.append, LastTask.read(session)) == summary.result.ensemble_digest
    trees = summary.result.ensemble
    assert said == [f"publishing the model, {len(trees)} estimators"]
    transport: Any = session.ledger.transport
    ((arguments, transient),) = [
        (arguments, transient)
        for _, _, function, arguments, transient, _ in transport.sent
        if function == "Publish"
    ]
    origins = len({tree.creator for tree in trees})
    assert json.loads(arguments[4]) == {"estimators": len(trees), "origins": origins}
    assert transient is not None
    assert (
        publish_model(session, lambda _: None, LastTask.read(session)) == summary.result.ensemble_digest
    )  # it is there already
    model = fetch(session.ledger, session.process, NODE)
    assert model.ensemble.ids == summary.result.ensemble
    assert (model.terms.iteration, model.terms.result) == (1, summary.result.digest)
    task = session.ledger.execution.get_task(summary.task)
    assert task.opening is not None
    assert model.terms.parameters_digest == task.opening.parameter_hash


@pytest.fixture
def short_lived(socket_folder: Path) -> tuple[Any, NodeSession]:
    """A confidential process of one iteration, and the session of a node in it."""
    made = specification(synchronous=False, iterations=1) | {"confidential": True}
    federation = Federation(made)
    return federation, session_in(socket_folder / "t", federation)


def expire(federation: Any) -> None:
    """Do what a peer does when the life of private data is over: the state no longer has it."""
    for place in [place for place in federation.state if "$trees-" in place[0]]:
        del federation.state[place]


def test_a_launch_after_the_trees_lives_says_that_they_are_gone(
    short_lived: tuple[Any, NodeSession], tmp_path: Path
) -> None:
    federation, session = short_lived
    for node in federation.context(NODE, 0)["neighbours"]:
        federation.players[node].open(0)
        federation.players[node].share([Estimator(EstimatorId(node, 0), SPLIT)])
    expire(federation)
    with pytest.raises(StateError, match="TREES_GONE") as gone:
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert "is offered and no longer kept" in gone.value.cause
    assert closed(session).code == "TREES_GONE"


def test_a_model_is_published_after_the_trees_lives(
    short_lived: tuple[Any, NodeSession], tmp_path: Path
) -> None:
    federation, session = short_lived
    summary = run_task(planned(session, tmp_path), session, lambda _: None)
    expire(federation)
    assert publish_model(session, lambda _: None, LastTask.read(session)) == summary.result.ensemble_digest


def test_h1_peers_that_do_not_know_of_a_last_task_do_not_cost_a_node_its_model(
    session: NodeSession, tmp_path: Path
) -> None:
    """The first of two tasks stands for a last one of which the peers that answer have not heard."""
    run_task(planned(session, tmp_path), session, lambda _: None)
    assert finish(session, lambda _: None) is None
    with pytest.raises(StateError, match="MODEL_UNFINISHED"):
        finish(session, lambda _: None, LastTask.read(session))


Alter = Callable[[Any], Any]
STRANDING: dict[str, Alter] = {
    "process": lambda state: replace(state, process="another"),
    "node": lambda state: replace(state, node="node02", created=(), ensemble=()),
    "iteration": lambda state: replace(state, iteration=1000),
    "counter": lambda state: replace(state, created=(*state.created, Digest.of(b"never"))),
}


@pytest.mark.parametrize(
    "code", ["PROCESS_UNFINISHED", "PROCESS_UNPUBLISHED", "LIFECYCLE_TRANSITION", "LEDGER_CONFLICT"]
)
def test_a_node_that_is_done_before_the_others_or_with_them_leaves_the_end_to_them(code: str) -> None:
    assert complete_process(refusing(error_from(code, "not now", "")), lambda _: None) == "running"


@pytest.mark.parametrize("code", ["PROCESS_UNKNOWN", "LEDGER_UNREACHABLE", "ACCESS_ROLE"])
def test_what_else_keeps_a_process_from_its_end_is_told(code: str) -> None:
    with pytest.raises(AttestreeError, match=code):
        complete_process(refusing(error_from(code, "never", "")), lambda _: None)


def test_nobody_is_asked_to_end_a_process_in_which_others_have_something_to_do() -> None:
    unasked = error_from("PROCESS_UNKNOWN", "it was asked", "")
    assert complete_process(refusing(unasked, iteration=1), lambda _: None) == "running"


def test_the_last_node_says_that_the_process_is_completed() -> None:
    said: list[str] = []
    assert complete_process(refusing(None), said.append) == "running"
    assert said == ["process p is completed"]


def refusing(error: AttestreeError | None, iteration: int | None = None) -> Any:
    """A session in process p, all done or in an iteration, whose ledger refuses to complete it."""

    def complete(process: str) -> None:
        assert process == "p"
        if error is not None:
            raise error

    status = SimpleNamespace(status=ProcessState.RUNNING, iteration=iteration)
    orchestration = SimpleNamespace(complete=complete, status={"p": status}.__getitem__)
    return SimpleNamespace(process="p", ledger=SimpleNamespace(orchestration=orchestration))


@pytest.mark.parametrize("what", STRANDING)
def test_f7_a_state_that_would_strand_the_node_is_not_taken(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Signed as it should be, by an image that is bad or broken."""
    honest = steps._result

    def stranding(task: Any, *given: Any) -> Any:
        result, raw = honest(task, *given)
        state = STRANDING[what](StateRecord.from_bytes(raw, task.limits))
        result = replace(result, state=state.digest, ensemble_digest=state.ensemble_digest)
        return result, state.to_bytes()

    monkeypatch.setattr(steps, "_result", stranding)
    with pytest.raises(RecordError):
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert (closed(session).code, closed(session).reason) == ("RECORD_VALUE", OTHERWISE)
    assert list((session.store.directory / "states").iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr(task_run, "Container", LearnerContainer)
    assert run_task(planned(session, tmp_path), session, lambda _: None).task.iteration == 0


@pytest.mark.parametrize("field", ["state", "ensemble_digest"])
def test_f7_a_result_that_names_another_state_than_it_hands_in_is_not_taken(
    session: NodeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    honest = steps._result

    def misnaming(*given: Any) -> Any:
        result, raw = honest(*given)
        return replace(result, **{field: Digest.of(b"another")}), raw

    monkeypatch.setattr(steps, "_result", misnaming)
    with pytest.raises(RecordError):
        run_task(planned(session, tmp_path), session, lambda _: None)
    assert closed(session).code == "RECORD_VALUE"
    assert list((session.store.directory / "states").iterdir()) == []


def test_f7_an_executor_with_a_copied_directory_closes_nothing_of_the_first(
    session: NodeSession,
    federation: Any,
    socket_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(*_: object) -> None:
        raise LearnerKilledError

    with monkeypatch.context() as patched:
        patched.setattr(LearnerContainer, "create", die)
        with pytest.raises(LearnerKilledError):
            run_task(planned(session, tmp_path), session, lambda _: None)
    shutil.copytree(socket_folder / "s", tmp_path / "copy")
    second = session_in(tmp_path / "copy", federation)
    assert second.store.begun() is not None
    recover(second, lambda _: None)
    task = TaskId(session.process, NODE, 0)
    assert session.ledger.execution.get_task(task).is_under_way
    with pytest.raises(StateError, match="TASK_BUSY"):
        check_free(second, task)
    recover(session, lambda _: None)
    assert closed(session).code == "EXECUTOR_LOST"
    check_free(second, task)


def test_f7_a_task_that_another_executor_has_begun_meanwhile_is_not_opened_and_says_so(
    session: NodeSession,
    federation: Any,
    socket_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node's later tasks are opened without a look at who is at work: the ledger refuses them."""
    run_task(planned(session, tmp_path), session, lambda _: None)
    session.removal.finish()
    shutil.copytree(socket_folder / "s", tmp_path / "copy")
    second, plan = session_in(tmp_path / "copy", federation), planned(session, tmp_path)

    def die(*_: object) -> None:
        raise LearnerKilledError

    with monkeypatch.context() as patched:
        patched.setattr(LearnerContainer, "create", die)
        with pytest.raises(LearnerKilledError):
            run_task(planned(second, tmp_path), second, lambda _: None)
    with pytest.raises(StateError, match="TASK_BUSY"):
        run_task(plan, session, lambda _: None)
    assert session.ledger.execution.get_task(TaskId(session.process, NODE, 1)).is_under_way
