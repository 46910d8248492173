"""What a node will run is what the ledger says of the task that was asked for, and of no other."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.memory.federation import Federation, prepared
from support.memory.story import MemberTransport

from executor.errors import IntegrityError
from executor.exits import IMAGE_INTEGRITY, exit_code
from executor.image.comparison import evidence_of
from executor.launch.plan import find_following_task, find_next_task, initial_state, make_plan
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
    stranger = session(federation, node="node06")
    with pytest.raises(StateError, match="NODE_UNKNOWN"):
        find_next_task(stranger)


def asked(session: NodeSession, function: str) -> list[tuple[str, ...]]:
    """What the node's peer was asked, of one function."""
    transport: Any = session.ledger.transport
    return [
        arguments for _, chaincode, name, arguments, *_ in transport.sent if f"{chaincode} {name}" == function
    ]


def test_an_image_is_read_again_only_if_the_next_task_has_another(federation: Any) -> None:
    held = session(federation)
    first = find_next_task(held)
    assert first is not None
    assert len(asked(held, "image Get")) == 1
    federation.play(0)
    marked = replace(first, image=replace(first.image, version="0.0.1"))
    second = find_next_task(held, marked)
    assert second is not None
    assert (second.id.iteration, second.image) == (1, marked.image)
    assert second.state == federation.players["node01"].state
    assert len(asked(held, "image Get")) == 1
    older = replace(
        marked, context=replace(first.context, image=replace(first.context.image, image_id=OTHER))
    )
    again = find_next_task(held, older)
    assert again is not None
    assert (again.image, again.state) == (first.image, second.state)
    assert asked(held, "image Get")[1:] == [(first.image.name, first.image.version)]


READS = ("execution-record Standing", "orchestration TaskContext", "image Get")


def reads(session: NodeSession) -> list[int]:
    return [len(asked(session, function)) for function in READS]


def test_what_a_node_s_own_result_has_just_proved_is_not_read_again(federation: Any) -> None:
    held = session(federation)
    first = find_next_task(held)
    assert first is not None
    federation.play(0)
    before = reads(held)
    second = find_following_task(held, first, federation.players["node01"].state)
    assert [after - then for after, then in zip(reads(held), before, strict=True)] == [0, 1, 0]
    assert second is not None
    assert second == find_next_task(held, first)
    federation.play(1)
    before = reads(held)
    assert find_following_task(held, second, federation.players["node01"].state) is None
    assert reads(held) == before


def test_a_node_that_left_after_its_task_is_read_in_full(federation: Any) -> None:
    held = session(federation)
    first = find_next_task(held)
    assert first is not None
    federation.play(0)
    federation.admin1.submit("orchestration", "Leave", federation.process, "node01", 1, "")
    assert find_following_task(held, first, federation.players["node01"].state) is None
    assert len(asked(held, "execution-record Standing")) == 2


def test_peers_that_do_not_know_of_the_result_yet_are_asked_in_full(federation: Any) -> None:
    """They say that the task is still the next one; it is for them to refuse another."""
    held = session(federation)
    first = find_next_task(held)
    assert first is not None
    again = find_following_task(held, first, OTHER)
    assert again is not None
    assert (again.id.iteration, again.state) == (0, None)


def test_the_trees_of_an_initial_model_are_asked_for_as_the_process_that_starts_from_it(
    federation: Any,
) -> None:
    for iteration in (0, 1):
        federation.play(iteration)
    federation.publish_all()
    model = federation.process
    federation.start_from("node02", "second")
    held = session(federation)
    context = held.ledger.orchestration.task_context(TaskId("second", "node01", 0))
    initial = context.parameters.initial_model
    assert initial is not None
    state = initial_state(context, held.ledger, initial)
    assert {(*arguments[:2], arguments[-1]) for arguments in asked(held, "model Trees")} == {
        (model, "node02", "second")
    }
    assert (state.process, state.node, state.iteration) == ("second", "node01", 0)
    assert state.seed == context.parameters.agreed.seed
    published = held.ledger.models.get(model, "node02")
    assert state.ensemble_digest == published.digest


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
