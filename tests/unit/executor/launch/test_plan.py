"""What a node will run is what the ledger says of the task that was asked for, and of no other."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.memory.federation import Federation, prepared
from support.memory.story import MemberTransport

from executor.errors import IntegrityError
from executor.exits import IMAGE_INTEGRITY, exit_code
from executor.image.comparison import evidence_of
from executor.launch.plan import find_next_task, make_plan
from executor.launch.session import NodeSession
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.task.opening import TaskId

OTHER = Digest.of(b"another image")


class LyingPeer(MemberTransport):
    """The peer of the node's own organisation, which alters the answers of one function."""

    def __init__(self, member: Any, function: str = "", alter: Callable[[Any], Any] | None = None) -> None:
        super().__init__(member)
        self.function, self.alter = function, alter

    def evaluate(self, chaincode: str, function: str, *arguments: Any) -> bytes:
        raw = super().evaluate(chaincode, function, *arguments)
        if self.alter is None or f"{chaincode} {function}" != self.function:
            return raw
        return json.dumps(self.alter(json.loads(raw))).encode()


@pytest.fixture
def federation() -> Any:
    return prepared(Federation)()


def session(federation: Any, *lie: Any, node: str = "node01") -> NodeSession:
    """A session whose engine and directory are not there: nothing may ask for them."""
    transport = LyingPeer(federation.nodes[node], *lie)
    nothing: Any = None
    return NodeSession(federation.process, node, Ledger(transport), nothing, nothing, {}, 1.0)


def test_the_next_task_is_what_the_ledger_has(federation: Any) -> None:
    first = find_next_task(session(federation))
    assert first is not None
    assert first.id == TaskId(federation.process, "node01", 0)
    assert first.image.image_id == first.context.image.image_id
    assert first.state is None
    federation.play(0)
    second = find_next_task(session(federation))
    assert second is not None
    assert (second.id.iteration, second.state) == (1, federation.players["node01"].state)
    federation.play(1)
    assert find_next_task(session(federation)) is None


def test_a_node_that_takes_no_part_has_no_task(federation: Any) -> None:
    with pytest.raises(StateError, match="NODE_UNKNOWN"):
        find_next_task(session(federation, node="node06"))


@pytest.mark.parametrize("change", [{"process": "another"}, {"node": "node02"}, {"iteration": 1}])
def test_a_peer_that_answers_about_another_task_is_refused(federation: Any, change: dict[str, Any]) -> None:
    lying = session(federation, "orchestration TaskContext", lambda found: found | change)
    with pytest.raises(PhaseError, match="LEDGER_ANSWER") as raised:
        find_next_task(lying)
    assert str(next(iter(change.values()))) in raised.value.cause


@pytest.mark.parametrize("field", ["image_id", "manifest_digest"])
def test_a1_a_peer_that_names_another_image_than_the_task_commits_to_is_refused(
    federation: Any, field: str
) -> None:
    def alter(found: Any) -> Any:
        return found | {"image": found["image"] | {field: str(OTHER)}}

    lying = session(federation, "image Get", alter)
    task = find_next_task(lying)
    assert task is not None
    nothing: Any = None
    with pytest.raises(IntegrityError, match="IMAGE_MISMATCH") as raised:
        make_plan(task, lying, nothing, nothing)
    assert exit_code(raised.value) == IMAGE_INTEGRITY
    assert raised.value.evidence == {
        **evidence_of(task.image),
        "found": str(OTHER),
        "expected": str(getattr(task.context.image, field)),
    }
