"""Trees of neighbours: each is fetched once for all nodes of a host, and no more of them kept than fit."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.federation import LIMITS, estimators

from executor.launch.trees import KnownTrees, offered_estimators
from protocol.errors import StateError
from protocol.identifiers import EstimatorId

OFFERED = {estimator.id: estimator for estimator in estimators("node01", 0)}
IDS = sorted(OFFERED)
SIZE = max(len(estimator.tree.to_bytes()) for estimator in OFFERED.values())


class Channel:
    """A ledger that has these trees, and remembers which it was asked for."""

    def __init__(self) -> None:
        self.execution = self.models = self
        self.gone: set[EstimatorId] = set()
        self.lacks: set[EstimatorId] = set()
        self.models_asked: list[tuple[str, str, str]] = []
        self.asked: list[list[EstimatorId]] = []
        self.pause = threading.Event()
        self.pause.set()

    def estimators(self, process: str, ids: list[EstimatorId]) -> Any:
        self.asked.append(ids)
        assert self.pause.wait(150)
        found = [Shared(id_) for id_ in ids if id_ in OFFERED and id_ not in self.lacks]
        return SimpleNamespace(estimators=found)

    def digests(self, process: str, ids: list[EstimatorId]) -> Any:
        assert process == "p"
        return SimpleNamespace(estimators=[id_ for id_ in ids if id_ in self.gone])

    def trees(self, process: str, node: str, used_by: str) -> Any:
        self.models_asked.append((process, node, used_by))
        return [Shared(id_) for id_ in IDS]


class Shared:
    def __init__(self, id_: EstimatorId) -> None:
        self.id = id_

    def decode(self, limits: object) -> Any:
        assert limits == LIMITS
        return OFFERED[self.id]


def context(process: str = "p", initial: Any = None) -> Any:
    return SimpleNamespace(process=process, limits=LIMITS, parameters=SimpleNamespace(initial_model=initial))


@pytest.fixture
def channel() -> Any:
    return Channel()


def test_what_one_node_fetched_the_next_has(channel: Any) -> None:
    known = KnownTrees()
    wanted = [OFFERED[id_] for id_ in IDS[:3]]
    assert known.offered(channel, context(), IDS[:3]) == wanted
    assert known.offered(channel, context(), IDS[:4][::-1]) == [OFFERED[id_] for id_ in IDS[:4][::-1]]
    assert known.offered(channel, context(), IDS[:3]) == wanted
    assert channel.asked == [IDS[:3], [IDS[3]], []]


def test_d24_the_trees_of_another_process_are_others(channel: Any) -> None:
    known = KnownTrees()
    known.offered(channel, context(), IDS[:1])
    known.offered(channel, context("another"), IDS[:1])
    assert channel.asked == [IDS[:1], IDS[:1]]


def test_nodes_that_ask_at_once_fetch_once(channel: Any) -> None:
    known, found = KnownTrees(), []
    channel.pause.clear()
    threads = [
        threading.Thread(target=lambda: found.append(known.offered(channel, context(), IDS)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    channel.pause.set()
    for thread in threads:
        thread.join()
    assert found == [[OFFERED[id_] for id_ in IDS]] * 3
    assert sorted(map(len, channel.asked)) == [0, 0, len(IDS)]


def test_f9_no_more_is_kept_than_fits_and_the_longest_unused_go_first(channel: Any) -> None:
    known = KnownTrees(max_bytes=2 * SIZE)
    for id_ in (IDS[0], IDS[1], IDS[0], IDS[2], IDS[0]):
        known.offered(channel, context(), [id_])
    assert channel.asked[-1] == []
    known.offered(channel, context(), IDS)
    assert known._bytes <= 2 * SIZE


def test_what_is_not_on_the_ledger_is_said_and_not_remembered(channel: Any) -> None:
    known, lost = KnownTrees(), EstimatorId("node09", 0)
    for _ in range(2):
        with pytest.raises(StateError, match="ESTIMATOR_UNKNOWN"):
            known.offered(channel, context(), [lost])
    assert known.offered(channel, context(), IDS[:1]) == [OFFERED[IDS[0]]]


def test_f9_a_tree_that_comes_again_takes_no_more_room(channel: Any) -> None:
    known = KnownTrees(max_bytes=2 * SIZE)
    for _ in range(5):
        known.add("p", [OFFERED[IDS[0]]])
    assert known.offered(channel, context(), IDS[:1]) == [OFFERED[IDS[0]]]
    assert channel.asked == [[]]


def test_f9_trees_that_just_fit_are_kept(channel: Any) -> None:
    first, second = (OFFERED[id_] for id_ in IDS[:2])
    known = KnownTrees(max_bytes=len(first.tree.to_bytes()) + len(second.tree.to_bytes()))
    known.add("p", [first, second])
    assert known.offered(channel, context(), IDS[:2]) == [first, second]
    assert channel.asked == [[]]
    known.add("p", [OFFERED[IDS[2]]])
    known.offered(channel, context(), [IDS[0]])
    assert channel.asked[-1] == [IDS[0]]


INITIAL = SimpleNamespace(process="before", node="node05")


def test_trees_of_the_initial_model_are_with_the_model_and_asked_for_only_if_some_are_missing(
    channel: Any,
) -> None:
    starting = context(initial=INITIAL)
    assert offered_estimators(channel, starting, IDS[:2]) == [OFFERED[id_] for id_ in IDS[:2]]
    assert channel.models_asked == []
    channel.lacks = {IDS[0]}
    assert offered_estimators(channel, starting, IDS[:2]) == [OFFERED[id_] for id_ in IDS[:2]]
    assert channel.models_asked == [("before", "node05", "p")]
    with pytest.raises(StateError, match="ESTIMATOR_UNKNOWN"):
        offered_estimators(channel, context(), IDS[:2])


def test_trees_that_cannot_be_read_are_named_and_whether_they_ever_were_there(channel: Any) -> None:
    lost = [EstimatorId("node09", number) for number in range(7)]
    names = ", ".join(map(str, lost[:5]))
    with pytest.raises(StateError) as unknown:
        offered_estimators(channel, context(), [IDS[0], *lost])
    assert unknown.value.code == "ESTIMATOR_UNKNOWN"
    assert unknown.value.cause == f"{names} is offered and not on the ledger"
    channel.gone = {lost[-1]}
    with pytest.raises(StateError) as gone:
        offered_estimators(channel, context(), lost)
    assert gone.value.code == "TREES_GONE"
    assert gone.value.cause == f"{names} is offered and no longer kept by the peers"
