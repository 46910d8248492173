"""What `status` shows and `watch` keeps up to date: for each node, which iteration and which action.

Pure: a snapshot of the ledger goes in, then one event after the other.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from protocol.agreement.course import ChangeKind
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.parameters import MAX_NODES
from protocol.errors import IdentifierError
from protocol.identifiers import parse_node
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

_TASK = {"node": str, "organisation": str, "iteration": int, "state": str}
_CLOSED = {**_TASK, "code": str}
_FORMS: dict[str, Mapping[str, type]] = {
    "TaskOpened": _TASK,
    "TaskShared": {**_TASK, "offered": int, "created": int},
    "TaskCompleted": _TASK,
    "TaskFailed": _CLOSED,
    "TaskExpired": _CLOSED,
    "TaskRefused": _CLOSED,
    "ProcessStarted": {},
    "ProcessCompleted": {},
    "ProcessAborted": {"organisation": str},
    "ProcessAccepted": {"organisation": str, "missing": list},
    "ProcessChanged": {"kind": str, "iteration": int, "organisation": str, "asked": str, "holds": bool},
    "ProcessVoted": {"vote": str, "about": str, "organisation": str, "voted": int, "needed": int},
    "ChangeWithdrawn": {"organisation": str, "number": int},
    "ModelPublished": {"node": str, "organisation": str, "estimators": int, "digest": str},
}
"""By event that is shown, the fields that it is shown by."""


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
        """Take an event of the process in and say it in one line; None for what is shown elsewhere.

        One without the form of its name is passed over: it is a peer's word, which may have made it up.
        """
        if not self._is_one(name, event):
            return None
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

    def _is_one(self, name: str, event: Mapping[str, Any]) -> bool:
        """Whether an event has the fields of its name, and is of a node that the process may have."""
        form = _FORMS.get(name)
        if form is None or any(type(event.get(field)) is not kind for field, kind in form.items()):
            return False
        if "missing" in form and any(type(item) is not str for item in event["missing"]):
            return False
        if "state" in form and (event["state"] not in ACTIONS or type(event.get("attempt", 1)) is not int):
            return False
        if "node" not in form or event["node"] in self.rows:
            return True
        return _is_name(event["node"]) and len(self.rows) < MAX_NODES

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


def _is_name(node: str) -> bool:
    try:
        parse_node(node)
    except IdentifierError:
        return False
    return True


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
    if event["state"] == "shared":
        return f"{event.get('offered', 0)} offered, {event.get('created', 0)} of them new"
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
