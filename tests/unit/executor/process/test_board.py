"""What status and watch show: a snapshot, then one event after the other."""

from dataclasses import replace
from typing import Any

import pytest

from executor.process.agreements import ask_text, subject_text
from executor.process.board import Board, headline
from executor.process.output import board_text, steps_lines
from protocol.agreement.course import ChangeKind
from protocol.agreement.lifecycle import ProcessState, TaskState
from protocol.agreement.parameters import MAX_NODES
from protocol.agreement.step_kind import StepKind
from protocol.digest import Digest
from protocol.ledger.changes import AskStatus
from protocol.ledger.processes import NodeProgress, ProcessStatus, StepPlace
from protocol.ledger.tasks import TaskRecord

NODES = {"node01": "Org1MSP", "node06": "Org2MSP", "node11": "Org3MSP"}


WAITING = NodeProgress("", "", completed=None, next=0, left=None, updated=None)


def status(
    state: ProcessState = ProcessState.RUNNING, missing: tuple[str, ...] = (), **nodes: NodeProgress
) -> ProcessStatus:
    """Three nodes that have yet to begin, or stand as a test says."""
    return ProcessStatus(
        process="p",
        status=state,
        consortium=tuple(NODES.values()),
        present=tuple(NODES.values()),
        accepted=tuple(name for name in NODES.values() if name not in missing),
        missing=missing,
        iteration=0,
        iterations=3,
        nodes=tuple(
            replace(nodes.get(node, WAITING), node=node, organisation=owner) for node, owner in NODES.items()
        ),
    )


def task(node: str, state: TaskState, attempt: int = 1) -> TaskRecord:
    return TaskRecord("p", node, 0, NODES[node], state, attempt)


def event(node: str, state: str, iteration: int = 0, **more: Any) -> dict[str, Any]:
    """What the execution record announces of a task."""
    named = {"process": "p", "node": node, "iteration": iteration}
    return {**named, "organisation": NODES[node], "attempt": 1, "state": state, **more}


def test_a_snapshot_shows_each_node() -> None:
    found = status(
        node06=replace(WAITING, completed=2, next=None),
        node11=replace(WAITING, completed=0, next=None, left=1),
    )
    board = Board.of(found, {"node01": task("node01", TaskState.SHARED, attempt=2)})
    shown = {row.node: (row.iteration, row.action, row.detail) for row in board.rows.values()}
    assert shown == {
        "node01": (0, "GET", "attempt 2"),
        "node06": (2, "done", ""),
        "node11": (0, "left", ""),
    }
    assert headline(board) == "p: running, iterations 0 to 2, 1 of 3 nodes done, node11 left"


def test_a_node_that_leaves_and_comes_back_is_named_apart_meanwhile() -> None:
    board = Board.of(status(), {})
    board.apply("TaskOpened", event("node11", "open"))
    gone = replace(WAITING, next=None, left=0)
    board.update(status(node01=replace(WAITING, completed=2, next=None), node11=gone))
    assert board.rows["node11"].action == "left"
    board.apply("TaskFailed", event("node11", "failed", code="NODE_INACTIVE"))
    board.apply("TaskCompleted", event("node01", "completed", 2, result="", ensemble_digest=""))
    assert headline(board) == "p: running, iterations 0 to 2, 1 of 3 nodes done, node11 left"
    board.update(status(node11=replace(WAITING, next=1)))
    assert headline(board) == "p: running, iterations 0 to 2, 1 of 3 nodes done"
    assert board.rows["node11"].action == "waiting"


def test_the_actions_of_a_round_follow_its_events() -> None:
    board = Board.of(status(), {})
    assert board.rows["node01"].action == "waiting"
    assert board.apply("TaskOpened", event("node01", "open")) == "node01 iteration 0 FIT begins"
    assert board.rows["node01"].action == "FIT"
    shared = event("node01", "shared", offered=10, created=4)
    assert board.apply("TaskShared", shared) == "node01 iteration 0 SHARE: 10 offered, 4 of them new"
    assert board.rows["node01"].action == "GET"
    done = event("node01", "completed", result="sha256:0", ensemble_digest="sha256:1")
    assert board.apply("TaskCompleted", done) == "node01 iteration 0 GET and CROP done"
    assert board.rows["node01"].action == "between iterations"
    board.apply("TaskCompleted", done | {"iteration": 2})
    assert board.rows["node01"].action == "done"
    assert headline(board) == "p: running, iterations 0 to 2, 1 of 3 nodes done"


@pytest.mark.parametrize(
    ("name", "state"), [("TaskFailed", "failed"), ("TaskExpired", "expired"), ("TaskRefused", "refused")]
)
def test_a_task_that_came_to_nothing_shows_its_code(name: str, state: str) -> None:
    board = Board.of(status(), {})
    assert board.apply(name, event("node06", state, code="IMAGE_MISMATCH")) == (
        f"node06 iteration 0 {state}: IMAGE_MISMATCH"
    )
    assert (board.rows["node06"].action, board.rows["node06"].detail) == (state, "IMAGE_MISMATCH")


def test_a_node_that_joined_gets_its_row() -> None:
    board = Board.of(status(), {})
    joined = event("node01", "open", 1) | {"node": "node16", "organisation": "Org4MSP"}
    board.apply("TaskOpened", joined)
    assert sorted(board.rows) == ["node01", "node06", "node11", "node16"]


def test_the_life_of_a_process() -> None:
    board = Board.of(status(ProcessState.PROPOSED, ("Org1MSP", "Org2MSP")), {})
    assert headline(board) == "p: proposed, to be accepted by Org1MSP, Org2MSP"
    accepted = {"process": "p", "organisation": "Org1MSP", "missing": ["Org2MSP"]}
    assert board.apply("ProcessAccepted", accepted) == "Org1MSP accepted; waiting for Org2MSP"
    board.apply("ProcessAccepted", accepted | {"organisation": "Org2MSP", "missing": []})
    assert headline(board) == "p: proposed, accepted by all, not started"
    assert board.apply("ProcessStarted", {"process": "p"}) == "p is running"
    assert not board.ended
    changed = {"kind": "topology", "iteration": 1, "asked": "Org1MSP", "number": 1}
    asked = changed | {"holds": False, "organisation": "Org1MSP"}
    assert board.apply("ProcessChanged", asked) == "topology from iteration 1 asked for by Org1MSP"
    agreed = changed | {"holds": True, "organisation": "Org2MSP"}
    holds = "topology from iteration 1 agreed to by Org2MSP, which holds"
    assert board.apply("ProcessChanged", agreed) == holds
    withdrawn = {"organisation": "Org1MSP", "number": 1}
    assert board.apply("ChangeWithdrawn", withdrawn) == "Org1MSP no longer asks for its change 1"
    vote = {"vote": "leave-out", "about": "node06", "organisation": "Org1MSP", "voted": 1, "needed": 2}
    assert board.apply("ProcessVoted", vote) == "Org1MSP votes: leave-out node06, 1 of 2 votes"
    aborting = vote | {"vote": "abort", "about": "p"}
    assert board.apply("ProcessVoted", aborting) == "Org1MSP votes: abort, 1 of 2 votes"
    assert board.apply("ProcessAborted", {"organisation": "Org3MSP"}) == "p is aborted by Org3MSP"
    assert board.ended


def test_completion_ends_it_and_models_are_shown() -> None:
    board = Board.of(status(), {})
    published = {"process": "p", "node": "node01", "organisation": "Org1MSP", "digest": "d", "estimators": 50}
    assert board.apply("ModelPublished", published) == "node01 published its model of 50 trees, d"
    assert board.rows["node01"].action == "model published"
    assert board.apply("ProcessCompleted", {"process": "p"}) == "p is completed"
    assert board.ended


def test_events_of_a_later_version_are_passed_over() -> None:
    board = Board.of(status(), {})
    assert board.apply("ProcessRenamed", {"process": "p"}) is None


OPENED = {"process": "p", "node": "node01", "iteration": 0, "organisation": "Org1MSP", "state": "open"}
NAMES = [name for name in OPENED if name != "process"]


def without(left: str) -> dict[str, Any]:
    return {name: value for name, value in OPENED.items() if name != left}


MADE_UP: list[tuple[str, Any]] = [
    ("TaskOpened", {"process": "p"}),
    *(("TaskOpened", without(name)) for name in NAMES),
    *(("TaskOpened", OPENED | {name: [{}]}) for name in NAMES),
    ("TaskOpened", OPENED | {"iteration": "0"}),
    ("TaskOpened", OPENED | {"iteration": True}),
    ("TaskOpened", OPENED | {"attempt": "2"}),
    ("TaskOpened", OPENED | {"state": "dancing"}),
    ("TaskOpened", OPENED | {"node": "../node01"}),
    ("TaskShared", OPENED | {"state": "shared"}),
    ("TaskFailed", OPENED | {"state": "failed"}),
    ("TaskFailed", OPENED | {"state": "failed", "code": None}),
    ("ModelPublished", {"node": "node01"}),
    ("ModelPublished", {"node": {}, "organisation": "Org1MSP", "estimators": 1, "digest": "d"}),
    ("ProcessAccepted", {}),
    ("ProcessAccepted", {"organisation": "Org1MSP", "missing": None}),
    ("ProcessAccepted", {"organisation": "Org1MSP", "missing": [1]}),
    ("ProcessChanged", {}),
    ("ProcessChanged", {"kind": "open-step", "iteration": []}),
    ("ProcessVoted", {"vote": "abort"}),
    ("ChangeWithdrawn", {"number": 1}),
    ("ProcessAborted", {"organisation": 1}),
]


@pytest.mark.parametrize(("name", "payload"), MADE_UP)
def test_h1_an_event_that_lacks_its_form_is_passed_over(name: str, payload: dict[str, Any]) -> None:
    """One peer's word, which may say anything: the board stays as it is, and can be shown."""
    board, usual = Board.of(status(), {}), Board.of(status(), {})
    assert board.apply(name, payload) is None
    assert board == usual
    assert board_text(board)
    assert headline(board)


def test_a_challenge_of_a_task_is_not_a_step_of_it() -> None:
    board = Board.of(status(), {})
    challenged = {name: OPENED[name] for name in ("process", "node", "iteration", "organisation")}
    assert board.apply("TaskChallenged", challenged | {"challenged": "Org1MSP"}) is None


def test_h1_a_peer_adds_no_more_nodes_than_a_process_may_have() -> None:
    board = Board.of(status(), {})
    for number in range(MAX_NODES + 5):
        board.apply("TaskOpened", OPENED | {"node": f"made-up-{number}"})
    assert len(board.rows) == MAX_NODES
    assert board.apply("TaskOpened", OPENED) == "node01 iteration 0 FIT begins"


def test_the_table_and_the_changes_as_text() -> None:
    ask = AskStatus(
        process="p",
        asked="Org1MSP",
        number=1,
        kind=ChangeKind.TOPOLOGY,
        iteration=2,
        subject={"kind": "full"},
        digest=Digest.of(b""),
        agreed=("Org1MSP",),
        missing=("Org2MSP",),
        needed=2,
        change=None,
    )
    line = "Org1MSP asks for topology full from iteration 2 (number 1): 1 of 2 agree, waiting for Org2MSP"
    assert ask_text(ask) == line
    assert ask_text(replace(ask, change=0, missing=())).endswith("(number 1): holds")
    late = ask_text(replace(ask, change=0))
    assert late.endswith("holds; Org2MSP run nothing with it until they agree")
    text = board_text(Board.of(status(), {"node01": task("node01", TaskState.OPEN)}, (line,)))
    assert text.endswith(line)
    assert "| node01 | Org1MSP" in text
    assert "| 0         | FIT " in text


@pytest.mark.parametrize(
    ("kind", "subject", "text"),
    [
        (ChangeKind.JOIN, {"node": "node07", "organisation": "Org2MSP"}, "node07 of Org2MSP"),
        (ChangeKind.LEAVE, {"node": "node07", "reason": "tired"}, "node07"),
        (ChangeKind.IMAGE, {"version": "1.2", "image_id": "sha256:1"}, "1.2 (sha256:1)"),
        (ChangeKind.LEAVE_OUT, {"organisation": "A", "nodes": {"n2": 1, "n1": 0}, "whole": False}, "n1, n2"),
        (ChangeKind.LEAVE_OUT, {"organisation": "A", "nodes": {"n1": 0}, "whole": True}, "A"),
        (ChangeKind.TOPOLOGY, {"kind": "explicit", "edges": [["a", "b"], ["b", "c"]]}, "explicit a:b b:c"),
    ],
)
def test_what_a_change_is_about(kind: ChangeKind, subject: dict[str, Any], text: str) -> None:
    assert subject_text(kind, subject) == text


def test_steps_that_do_not_learn_are_called_by_their_kind() -> None:
    begun = {"node01": task("node01", TaskState.OPEN)}
    steps = [(StepKind.PREPARE, 0), (StepKind.ITERATIVE, 1), (StepKind.EVALUATE, 2)]
    places = tuple(StepPlace(kind.value, kind, first, 1, opened=True) for kind, first in steps)
    board = Board.of(replace(status(), steps=places), begun)
    assert board.rows["node01"].action == "prepare"
    assert board.apply("TaskCompleted", event("node01", "completed")) == "node01 iteration 0 prepare done"
    assert board.apply("TaskOpened", event("node01", "open", 1)) == "node01 iteration 1 FIT begins"
    assert board.apply("TaskOpened", event("node01", "open", 2)) == "node01 iteration 2 evaluate begins"
    assert board.rows["node01"].action == "evaluate"


def test_a_step_that_the_coordinator_opened_is_said_to_be_open() -> None:
    named = {"process": "p", "asked": "Org1MSP", "organisation": "Org1MSP", "number": 0}
    said = Board.of(status(), {}).apply(
        "ProcessChanged", {**named, "kind": "open-step", "iteration": 1, "holds": True}
    )
    assert said == "Org1MSP opened the step that begins with iteration 1"


def test_status_says_what_the_coordinator_has_yet_to_open() -> None:
    steps = tuple(
        StepPlace(name, StepKind.SINGLE, first, 1, opened=first == 0)
        for first, name in enumerate(("a", "b", "c"))
    )
    central = replace(status(), steps=steps, coordinator="Org2MSP")
    assert list(steps_lines(central)) == ["Org2MSP coordinates and has yet to open b, c"]
    opened = replace(central, steps=tuple(replace(step, opened=True) for step in steps))
    assert list(steps_lines(opened)) == ["Org2MSP coordinates and has opened every step"]
    assert list(steps_lines(status())) == []
