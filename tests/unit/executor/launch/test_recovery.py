"""What a start does about a task that an earlier executor began, here or elsewhere, and did not end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from executor.launch.reasons import SENTENCES
from executor.launch.recovery import check_free, recover
from executor.launch.session import STORE_LABEL, NodeSession
from executor.launch.store import Journal, NodeStore
from protocol.errors import LifecycleError, StateError
from protocol.task.opening import TaskId

NODE = "node01"


class Left:
    """A ledger with a task under way by a key, and an engine with a container of an earlier executor."""

    def __init__(self, *keys: str | None, refuses: Exception | None = None) -> None:
        self.keys, self.refuses = list(keys), refuses
        self.execution = self.api = self
        self.closed: list[Any] = []

    def get_task(self, task: TaskId) -> Any:
        assert task == TaskId("p", NODE, 3)
        key = self.keys.pop(0) if len(self.keys) > 1 else self.keys[0]
        if key == "unknown":
            raise StateError("TASK_UNKNOWN", "no such task")
        return SimpleNamespace(is_under_way=key is not None, opening=SimpleNamespace(public_key=key))

    def fail(self, *said: Any) -> None:
        self.closed.append(said)
        if self.refuses is not None:
            raise self.refuses

    def expire(self, *said: Any) -> None:
        self.fail(*said)

    def containers(self, **_: Any) -> list[dict[str, str]]:
        return [{"Id": "c1"}]

    def remove_container(self, identity: str, **_: Any) -> None:
        assert identity == "c1"


def started(folder: Path, left: Left, store: str = "here") -> NodeSession:
    kept = NodeStore(folder, "org1", "p", NODE)
    labels = {"attestree.network": "net", STORE_LABEL: "here"}
    with kept.locked():
        kept.begin(Journal(3, "key", "c", store))
    channel: Any = left
    return NodeSession("p", NODE, channel, channel, kept, labels, 1.0)


def recovered(session: NodeSession) -> list[str]:
    said: list[str] = []
    recover(session, said.append)
    assert said.pop(0) == "removed container c1, which an earlier executor left"
    return said


def test_a_start_closes_its_own_task_and_no_other(tmp_path: Path) -> None:
    left = Left("key")
    begun = started(tmp_path, left)
    assert recovered(begun) == ["closing iteration 3, which an earlier executor began"]
    assert left.closed == [(TaskId("p", NODE, 3), "EXECUTOR_LOST", SENTENCES["EXECUTOR_LOST"])]
    assert recovered(begun) == []
    for number, key in enumerate(("another", None, "unknown")):
        left = Left(key)
        (tmp_path / str(number)).mkdir()
        begun = started(tmp_path / str(number), left)
        assert (recovered(begun), left.closed, begun.store.begun()) == ([], [], None)


def test_a_task_that_ended_while_it_was_closed_needs_nothing(tmp_path: Path) -> None:
    refused = LifecycleError("LIFECYCLE_TRANSITION", "it is completed")
    begun = started(tmp_path, Left("key", None, refuses=refused))
    recovered(begun)
    assert begun.store.begun() is None
    (tmp_path / "again").mkdir()
    odd = started(tmp_path / "again", Left("key", refuses=refused))
    with pytest.raises(LifecycleError):
        recover(odd, lambda _: None)
    assert odd.store.begun() is not None


def test_f7_what_a_copy_of_the_directory_began_is_left_to_the_other(tmp_path: Path) -> None:
    left = Left("key")
    begun = started(tmp_path, left, store="elsewhere")
    assert recovered(begun) == ["iteration 3 was begun with another copy of this node's directory"]
    assert (left.closed, begun.store.begun()) == ([], None)


def test_a_task_of_another_host_is_busy_until_its_time_is_over(tmp_path: Path) -> None:
    task = TaskId("p", NODE, 3)
    over = Left("another")
    check_free(started(tmp_path, over), task)
    assert over.closed == [(task,)]
    busy = Left("another", refuses=StateError("TASK_NOT_EXPIRED", "not yet"))
    with pytest.raises(StateError) as refused:
        check_free(started(tmp_path, busy), task)
    assert refused.value.code == "TASK_BUSY"
    assert refused.value.cause == f"task {task} is under way with a key that is not of this host"
    odd = Left("another", refuses=StateError("PROCESS_NOT_RUNNING", "over"))
    with pytest.raises(StateError, match="PROCESS_NOT_RUNNING"):
        check_free(started(tmp_path, odd), task)
    free = Left("unknown")
    check_free(started(tmp_path, free), task)
    assert free.closed == []


def test_b9_a_task_that_a_killed_executor_had_sent_and_that_came_late_is_closed(tmp_path: Path) -> None:
    """It was on its way to the ledger when the next start looked: nobody waits until its time is over."""
    task, left = TaskId("p", NODE, 3), Left("unknown", "key", "key")
    late = started(tmp_path, left)
    assert (recovered(late), left.closed) == ([], [])
    check_free(late, task)
    assert left.closed == [(task, "EXECUTOR_LOST", SENTENCES["EXECUTOR_LOST"])]


def test_b9_a_start_that_was_killed_too_passes_on_whose_task_may_come_late(tmp_path: Path) -> None:
    left = Left("first")
    again = started(tmp_path, left)
    again.store.begin(Journal(3, "second", "c", "here", "first"))
    assert recovered(again) == ["closing iteration 3, which an earlier executor began"]
    assert again.lost_keys == ["second", "first"]
