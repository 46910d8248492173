"""The life cycles of tasks, processes and images, each as one table of (transition, from, to).

What is not in a table cannot happen. The tables say nothing about who may ask for a transition; that is for
the chaincode that holds the record.
"""

from enum import StrEnum
from typing import Generic, TypeVar

from protocol.errors import LifecycleError
from protocol.values import dataclass


class TaskState(StrEnum):
    """Where a node's work in one iteration stands."""

    ABSENT = "absent"
    OPEN = "open"
    SHARED = "shared"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    REFUSED = "refused"


class TaskTransition(StrEnum):
    """What can happen to a task."""

    OPEN = "open"
    SHARE = "share"
    COMPLETE = "complete"
    FAIL = "fail"
    EXPIRE = "expire"
    REFUSE = "refuse"


class ProcessState(StrEnum):
    """Where an agreed federation run stands."""

    ABSENT = "absent"
    PROPOSED = "proposed"
    RUNNING = "running"
    COMPLETED = "completed"
    ABORTED = "aborted"


class ProcessTransition(StrEnum):
    """What can happen to a process."""

    PROPOSE = "propose"
    ACCEPT = "accept"
    START = "start"
    JOIN = "join"
    LEAVE = "leave"
    LEAVE_OUT = "leave-out"
    CHANGE_TOPOLOGY = "change-topology"
    UPDATE_IMAGE = "update-image"
    REPLACE_COORDINATOR = "replace-coordinator"
    OPEN_STEP = "open-step"
    COMPLETE = "complete"
    ABORT = "abort"


class ImageState(StrEnum):
    """Whether an image version may be proposed."""

    ABSENT = "absent"
    REGISTERED = "registered"
    RETIRED = "retired"


class ImageTransition(StrEnum):
    """What can happen to an image version."""

    REGISTER = "register"
    RETIRE = "retire"


T = TypeVar("T", bound=StrEnum)
S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Lifecycle(Generic[T, S]):
    """A table of transitions and the two questions asked of it."""

    subject: str
    transitions: type[T]
    states: type[S]
    table: tuple[tuple[T, S, S], ...]

    def after(self, transition: T, state: S) -> S:
        """Return the state that follows, or raise `LifecycleError`."""
        for row_transition, before, following in self.table:
            if row_transition is transition and before is state:
                return following
        raise LifecycleError(
            "LIFECYCLE_TRANSITION",
            f"a {self.subject} that is {_name(state)} has no transition {_name(transition)}",
        )

    def state(self, text: str) -> S:
        """Read a state from a record."""
        try:
            return self.states(text)
        except ValueError as error:
            raise LifecycleError(
                "LIFECYCLE_STATE", f"{str(text)[:40]!r} is no state of a {self.subject}"
            ) from error

    def is_final(self, state: S) -> bool:
        """Whether nothing can follow the state."""
        return not any(before is state for _, before, _ in self.table)


def _name(value: object) -> str:
    return str(value)[:40]


_T, _S = TaskTransition, TaskState
TASK = Lifecycle(
    "task",
    TaskTransition,
    TaskState,
    (
        (_T.OPEN, _S.ABSENT, _S.OPEN),
        # A new launch opens the iteration again, with a new key; the old key is worthless from then on.
        (_T.OPEN, _S.FAILED, _S.OPEN),
        (_T.OPEN, _S.EXPIRED, _S.OPEN),
        (_T.OPEN, _S.REFUSED, _S.OPEN),
        (_T.SHARE, _S.OPEN, _S.SHARED),
        (_T.COMPLETE, _S.SHARED, _S.COMPLETED),
        # A single step has no neighbours to share with.
        (_T.COMPLETE, _S.OPEN, _S.COMPLETED),
        (_T.FAIL, _S.OPEN, _S.FAILED),
        (_T.FAIL, _S.SHARED, _S.FAILED),
        (_T.EXPIRE, _S.OPEN, _S.EXPIRED),
        (_T.EXPIRE, _S.SHARED, _S.EXPIRED),
        # The image is checked before the task is opened, and once more before its container starts.
        (_T.REFUSE, _S.ABSENT, _S.REFUSED),
        (_T.REFUSE, _S.OPEN, _S.REFUSED),
        (_T.REFUSE, _S.FAILED, _S.REFUSED),
        (_T.REFUSE, _S.EXPIRED, _S.REFUSED),
        (_T.REFUSE, _S.REFUSED, _S.REFUSED),
    ),
)

_PT, _PS = ProcessTransition, ProcessState
PROCESS = Lifecycle(
    "process",
    ProcessTransition,
    ProcessState,
    (
        (_PT.PROPOSE, _PS.ABSENT, _PS.PROPOSED),
        (_PT.ACCEPT, _PS.PROPOSED, _PS.PROPOSED),
        (_PT.START, _PS.PROPOSED, _PS.RUNNING),
        (_PT.JOIN, _PS.RUNNING, _PS.RUNNING),
        (_PT.LEAVE, _PS.RUNNING, _PS.RUNNING),
        (_PT.LEAVE_OUT, _PS.RUNNING, _PS.RUNNING),
        (_PT.CHANGE_TOPOLOGY, _PS.RUNNING, _PS.RUNNING),
        (_PT.UPDATE_IMAGE, _PS.RUNNING, _PS.RUNNING),
        (_PT.REPLACE_COORDINATOR, _PS.RUNNING, _PS.RUNNING),
        (_PT.OPEN_STEP, _PS.RUNNING, _PS.RUNNING),
        (_PT.COMPLETE, _PS.RUNNING, _PS.COMPLETED),
        (_PT.ABORT, _PS.PROPOSED, _PS.ABORTED),
        (_PT.ABORT, _PS.RUNNING, _PS.ABORTED),
    ),
)

IMAGE = Lifecycle(
    "image version",
    ImageTransition,
    ImageState,
    (
        (ImageTransition.REGISTER, ImageState.ABSENT, ImageState.REGISTERED),
        (ImageTransition.RETIRE, ImageState.REGISTERED, ImageState.RETIRED),
    ),
)
