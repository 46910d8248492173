"""What `status` shows and `watch` keeps up to date: for each node, which iteration and which action.

Pure: a snapshot of the ledger goes in, then one event after the other.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from protocol.agreement.course import ChangeKind
from protocol.agreement.lifecycle import ProcessState
from protocol.ledger.processes import NodeProgress, ProcessStatus
from protocol.ledger.tasks import TaskRecord

ENDED = ("completed", "aborted")

# The state of a task says what its node does next: the ledger hears of FIT when it begins, not when it ends.
ACTIONS = {
    "open": "FIT",
    "shared": "GET",
    "completed": "done",
    "failed": "failed",
    "expired": "expired",
    "refused": "refused",
}
DONE = ("done", "model published")
_STATES = {"ProcessStarted": "running", "ProcessCompleted": "completed", "ProcessAborted": "aborted"}


@dataclass(frozen=True)
class Row:
    """One node: its iteration, what it does there, and a word on it."""

    node: str
    organisation: str
    iteration: int | None
    action: str
    detail: str = ""
    left: bool = False
    """Whether it takes no further part, though it has not done every iteration."""


@dataclass
class Board:
    """One process as it stands."""

    process: str
    status: str
    iterations: int
    missing: list[str]
    rows: dict[str, Row]
    notes: tuple[str, ...] = ()
    looks: Mapping[int, str] = field(default_factory=dict)
    """By iteration in which nothing is learned, the kind of its step."""

    @classmethod
    def of(
        cls, status: ProcessStatus, tasks: Mapping[str, TaskRecord], notes: tuple[str, ...] = ()
    ) -> "Board":
        """Make it from orchestration's Status and the next task of each node that has begun it."""
        looks = {step.first: step.kind.value for step in status.steps if not step.kind.learns}
        rows = {
            entry.node: _row(entry, tasks.get(entry.node), status.status, looks) for entry in status.nodes
        }
        missing = list(status.missing)
        return cls(status.process, status.status.value, status.iterations, missing, rows, notes, looks)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ENDED

    def update(self, status: ProcessStatus) -> None:
        """Take in from the ledger where the process stands, and which nodes have left."""
        self.status = status.status.value
        for entry in status.nodes:
            row = self.rows.get(entry.node) or _row(entry, None, status.status, self.looks)
            gone = _has_left(entry)
            if gone != row.left:
                action = "left" if gone else "waiting"
                row = replace(row, left=gone, action=action, detail="")
            self.rows[entry.node] = row

    def apply(self, name: str, event: Mapping[str, Any]) -> str | None:
        """Take an event of the process in and say it in one line; None for what is shown elsewhere."""
        if name.startswith("Task"):
            return self._task(name, event)
        if name in _STATES:
            self.status = _STATES[name]
            by = f" by {event['organisation']}" if "organisation" in event else ""
            return f"{self.process} is {self.status}{by}"
        if name == "ProcessAccepted":
            self.missing = list(event["missing"])
        if name == "ModelPublished":
            return self._published(event)
        say = _LINES.get(name)
        return None if say is None else say(event)

    def _task(self, name: str, event: Mapping[str, Any]) -> str:
        look = self.looks.get(event["iteration"])
        action = _action(event["state"], look)
        if event["state"] == "completed" and event["iteration"] < self.iterations - 1:
            action = "between iterations"
        node, before = event["node"], self.rows.get(event["node"])
        left = before is not None and before.left
        row = Row(node, event["organisation"], event["iteration"], action, _detail(event), left)
        self.rows[node] = row
        verb = {"TaskOpened": "FIT begins", "TaskShared": "SHARE", "TaskCompleted": "GET and CROP done"}
        if look is not None:
            verb = {"TaskOpened": f"{look} begins", "TaskCompleted": f"{look} done"}
        said = verb.get(name, row.action)
        detail = f": {row.detail}" if row.detail else ""
        return f"{row.node} iteration {row.iteration} {said}{detail}"

    def _published(self, event: Mapping[str, Any]) -> str:
        node = event["node"]
        row = self.rows.get(node, Row(node, event["organisation"], None, "done"))
        self.rows[node] = replace(row, action="model published", detail=f"{event['estimators']} trees")
        return f"{node} published its model of {event['estimators']} trees, {event['digest']}"


def _accepted(event: Mapping[str, Any]) -> str:
    missing = event["missing"]
    waiting = f"; waiting for {', '.join(missing)}" if missing else "; all have"
    return f"{event['organisation']} accepted{waiting}"


def _changed(event: Mapping[str, Any]) -> str:
    if event["kind"] == ChangeKind.OPEN_STEP:
        return f"{event['organisation']} opened the step that begins with iteration {event['iteration']}"
    verb = "agreed to" if event["organisation"] != event["asked"] else "asked for"
    holds = ", which holds" if event["holds"] else ""
    return f"{event['kind']} from iteration {event['iteration']} {verb} by {event['organisation']}{holds}"


def _voted(event: Mapping[str, Any]) -> str:
    about = "" if event["vote"] == "abort" else f" {event['about']}"
    tally = f"{event['voted']} of {event['needed']} votes"
    return f"{event['organisation']} votes: {event['vote']}{about}, {tally}"


def _withdrawn(event: Mapping[str, Any]) -> str:
    return f"{event['organisation']} no longer asks for its change {event['number']}"


_LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "ProcessAccepted": _accepted,
    "ProcessChanged": _changed,
    "ProcessVoted": _voted,
    "ChangeWithdrawn": _withdrawn,
}


def _action(state: str, look: str | None) -> str:
    return look if look is not None and state == "open" else ACTIONS[state]


def _row(entry: NodeProgress, task: TaskRecord | None, status: ProcessState, looks: Mapping[int, str]) -> Row:
    node, organisation = entry.node, entry.organisation
    if task is not None:
        action = _action(task.state, looks.get(task.iteration))
        return Row(node, organisation, task.iteration, action, _attempt(task.attempt))
    if entry.next is None:
        gone = _has_left(entry)
        return Row(node, organisation, entry.completed, "left" if gone else "done", left=gone)
    return Row(node, organisation, entry.next, "" if status is ProcessState.ABORTED else "waiting")


def _has_left(entry: NodeProgress) -> bool:
    return entry.left is not None and entry.next is None


def _detail(event: Mapping[str, Any]) -> str:
    if "offered" in event:
        return f"{event['offered']} offered, {event['created']} of them new"
    return str(event["code"]) if event.get("code") else _attempt(event.get("attempt", 1))


def _attempt(number: int) -> str:
    return f"attempt {number}" if number > 1 else ""


def headline(board: Board) -> str:
    """Say in one line where the process stands."""
    if board.status == "proposed":
        waiting = ", ".join(board.missing)
        return f"{board.process}: proposed, " + (
            f"to be accepted by {waiting}" if waiting else "accepted by all, not started"
        )
    span = f"iterations 0 to {board.iterations - 1}"
    return f"{board.process}: {board.status}, {span}, {finished(board.rows.values())}"


def finished(rows: Iterable[Row]) -> str:
    """Say how many nodes have done all of their work, and name those that left before they had."""
    found = list(rows)
    left = sorted(row.node for row in found if row.left)
    done = sum(row.action in DONE and not row.left for row in found)
    return f"{done} of {len(found)} nodes done" + (f", {', '.join(left)} left" if left else "")
