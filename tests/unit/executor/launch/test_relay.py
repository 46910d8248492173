"""GET in a synchronous process: every neighbour is waited for, as long as there is something to wait for."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

import pytest

from executor.errors import DeadlineError
from executor.launch import neighbours
from executor.launch.relay import TaskRelay
from executor.ledger import follow
from executor.ledger.follow import Announcement
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
    """A ledger on which one neighbour after the other shares; what is announced is sent by a test."""

    def __init__(
        self, *missing: tuple[str, ...], running: bool = True, said: Sequence[tuple[str, str, int]] = ()
    ) -> None:
        self.missing, self.running, self.said = list(missing), running, said
        self.execution = self.orchestration = self.transport = self
        self.asked: list[TaskId] = []

    def offers(self, task: TaskId) -> Offers:
        self.asked.append(task)
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

    def events(self, chaincode: str, start: int, _: float) -> "Said":
        return Said(self._said_by(chaincode, start))

    def _said_by(self, chaincode: str, start: int) -> Iterator[ChaincodeEvent]:
        for place, (name, node, iteration) in enumerate(self.said, start):
            payload = json.dumps({"process": "p", "node": node, "iteration": iteration}).encode()
            if chaincode == ("execution-record" if name.startswith("Task") else "orchestration"):
                yield ChaincodeEvent(place, f"tx{place}", name, payload)

    def estimators(self, process: str, ids: list[Any]) -> Any:
        assert (process, ids) == ("p", [])
        return SimpleNamespace(estimators=())


class Said:
    """A stream that stays open after its last event, until whoever reads it closes it."""

    def __init__(self, events: Iterator[ChaincodeEvent]) -> None:
        self.events, self.closed = events, threading.Event()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ChaincodeEvent:
        found = next(self.events, None)
        if found is None:
            self.closed.wait()
            raise StopIteration
        return found

    def close(self) -> None:
        self.closed.set()


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


SHARED = (("TaskShared", "node02", 3), ("TaskShared", "node04", 3))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked but because of what was announced."""
    monkeypatch.setattr(neighbours, "NOW_AND_THEN", 3600.0)
    monkeypatch.setattr(follow, "HEARTBEAT", 3600.0)


def test_get_waits_until_nobody_is_missing_and_says_for_whom_once() -> None:
    """Peers that are behind the one that announced the shares are asked again."""
    ledger = SlowNeighbours(("node02", "node04"), ("node02", "node04"), ("node04",), (), said=SHARED)
    get, said = relay(ledger)
    answer = get.slots()
    assert answer.offers == OFFERS[::-1]
    assert answer.bundle == Share(()).to_bytes()
    assert said == ["waiting for node02, node04", "waiting for node04", "GET, 0 estimators from 2 neighbours"]
    assert ledger.asked == [TASK] * 4


def test_get_does_not_ask_again_at_the_events_of_others() -> None:
    """What strangers, other iterations and other events say is not worth a question."""
    others = (("TaskOpened", "node02", 3), ("TaskShared", "node02", 2), ("TaskShared", "node09", 3))
    ledger = SlowNeighbours(("node02",), (), said=(*others, *others, SHARED[0]))
    get, _ = relay(ledger)
    assert get.slots().offers == OFFERS[::-1]
    assert len(ledger.asked) == 2


def test_c11_get_asks_again_when_the_process_changes_since_a_neighbour_may_have_left() -> None:
    ledger = SlowNeighbours(("node02",), (), said=(("ProcessChanged", "node02", 3),))
    get, _ = relay(ledger)
    get.slots()
    assert len(ledger.asked) == 2


def test_h1_a_peer_that_announces_nothing_delays_get_and_does_not_stop_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "NOW_AND_THEN", 0.01)
    ledger = SlowNeighbours(("node02",), ("node02",), ())
    get, _ = relay(ledger)
    get.slots()
    assert len(ledger.asked) == 3


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
        ledger = SlowNeighbours(*missing, said=SHARED)
        made, _ = relay(ledger)
        made.lent = lending
        made.slots()
    assert lent == ["lent", "back"]


def waiting() -> neighbours.NeighbourWait:
    nothing: Any = None
    return neighbours.NeighbourWait(nothing, TASK, lambda _: None, nothing)


def test_peers_that_have_not_heard_of_what_was_announced_are_asked_again_later_each_time() -> None:
    wait = waiting()
    assert [wait._again() for _ in range(6)] == [0.05, 0.1, 0.2, 0.5, 0.5, 0.5]
    wait._say(frozenset({"node02"}))
    assert wait._again() == 3600.0
    assert wait._wakes(announced("TaskShared", node="node02", iteration=3))
    assert wait._again() == 0.5


def announced(name: str, chaincode: str = "execution-record", **said: Any) -> Announcement:
    return Announcement(chaincode, ChaincodeEvent(1, "tx", name, b""), {"process": "p", **said})


def test_a_question_is_worth_it_once_all_that_were_missing_are_announced() -> None:
    wait = waiting()
    wait._say(frozenset({"node02", "node04"}))
    assert not wait._wakes(announced("TaskShared", node="node02", iteration=3))
    assert not wait._wakes(announced("TaskCompleted", node="node04", iteration=3))
    assert not wait._wakes(announced("TaskShared", node="node04", iteration=2))
    assert not wait._wakes(announced("TaskShared"))
    assert wait._wakes(announced("ProcessChanged", "orchestration"))
    assert wait._wakes(announced("TaskShared", node="node04", iteration=3))
