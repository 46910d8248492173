"""GET in a synchronous process: every neighbour is waited for, as long as there is something to wait for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from executor.errors import DeadlineError
from executor.launch.relay import TaskRelay
from executor.ledger.transport import ChaincodeEvent
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.tasks import Offers
from protocol.task.opening import TaskId
from protocol.task.result import Offer
from protocol.trees.share import Share

TASK = TaskId("p", "node01", 3)
OFFERS = tuple(Offer(sender, 3, Digest.of(sender.encode()), ()) for sender in ("node04", "node02"))


class SlowNeighbours:
    """A ledger on which one neighbour after the other shares, each announced by an event."""

    def __init__(self, *missing: tuple[str, ...], running: bool = True) -> None:
        self.missing, self.running = list(missing), running
        self.execution = self.orchestration = self.transport = self
        self.asked: list[TaskId] = []
        self.shared = threading.Semaphore(0)

    def offers(self, task: TaskId) -> Offers:
        self.asked.append(task)
        self.shared.release()
        missing = self.missing.pop(0) if len(self.missing) > 1 else self.missing[0]
        return Offers("p", "node01", 3, OFFERS, missing)

    def task_context(self, task: TaskId) -> Any:
        assert task == TASK
        return SimpleNamespace(check_running=self.check_running)

    def check_running(self) -> None:
        if not self.running:
            raise StateError("PROCESS_NOT_RUNNING", "the process was aborted")

    def chain_info(self) -> Any:
        return SimpleNamespace(height=7)

    def events(self, chaincode: str, start: int, _: float) -> Iterator[ChaincodeEvent]:
        assert start >= 7
        while chaincode == "execution-record" and self.shared.acquire(timeout=0.05):
            start += 1
            yield ChaincodeEvent(start, f"tx{start}", "TaskShared", b'{"process": "p"}')

    def estimators(self, process: str, ids: list[Any]) -> Any:
        assert (process, ids) == ("p", [])
        return SimpleNamespace(estimators=())


def relay(ledger: SlowNeighbours, seconds: float = 60.0) -> tuple[TaskRelay, list[str]]:
    said: list[str] = []
    parameters = SimpleNamespace(initial_model=None)
    context = SimpleNamespace(
        process="p", synchronous=True, parameters=parameters, neighbours=("node02", "node04")
    )
    plan: Any = SimpleNamespace(task=SimpleNamespace(id=TASK), context=context)
    nothing: Any = None
    made: Any = ledger
    return TaskRelay(plan, nothing, made, nothing, seconds, said.append), said


def test_get_waits_until_nobody_is_missing_and_says_for_whom_once() -> None:
    ledger = SlowNeighbours(("node02", "node04"), ("node02", "node04"), ("node04",), ())
    get, said = relay(ledger)
    answer = get.slots()
    assert answer.offers == OFFERS[::-1]
    assert answer.bundle == Share(()).to_bytes()
    assert said == ["waiting for node02, node04", "waiting for node04", "GET, 0 estimators from 2 neighbours"]
    assert ledger.asked == [TASK] * 4


def test_get_does_not_wait_for_neighbours_of_a_process_that_has_ended() -> None:
    get, _ = relay(SlowNeighbours(("node02",), running=False))
    with pytest.raises(StateError, match="PROCESS_NOT_RUNNING"):
        get.slots()


def test_get_gives_up_when_its_time_is_over() -> None:
    get, _ = relay(SlowNeighbours(("node02",)), 0.05)
    with pytest.raises(DeadlineError, match=r"WAIT_TIMEOUT: waited 0\.05 s for the neighbours in process p"):
        get.slots()


def test_get_waits_for_nobody_once_the_learner_is_gone() -> None:
    get, _ = relay(SlowNeighbours(("node02",)))
    threading.Thread(target=get.stop).start()
    with pytest.raises(ConnectionAbortedError):
        get.slots()


def test_the_place_is_lent_while_neighbours_are_waited_for_and_only_then() -> None:
    lent: list[str] = []

    @contextmanager
    def lending() -> Iterator[None]:
        lent.append("lent")
        yield
        lent.append("back")

    for missing in (((),), (("node02", "node04"), ("node04",), ())):
        made, _ = relay(SlowNeighbours(*missing))
        made.lent = lending
        made.slots()
    assert lent == ["lent", "back"]
