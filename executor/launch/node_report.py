"""What a launch came to for one node, as people and `--json` are told."""

from dataclasses import dataclass, field
from typing import Any

from executor.launch.parts import PartTimes
from executor.launch.task_run import TaskSummary
from protocol.errors import AttestreeError
from protocol.ledger.processes import TaskContext


@dataclass
class NodeReport:
    """What a launch came to for one node."""

    node: str
    tasks: list[TaskSummary] = field(default_factory=list)
    finished: dict[str, str] | None = None
    left: int | None = None
    """The iteration from which the node is gone, as its own organisation wanted."""
    error: AttestreeError | None = None
    context: TaskContext | None = None
    """What the ledger said of the last task that was tried."""
    beside: list[AttestreeError] = field(default_factory=list)
    """What failed besides: that the error could not be recorded, for example."""
    parts: PartTimes = field(default_factory=PartTimes)
    """Where the time went, that of the tasks included."""
    process: str = ""

    @property
    def failures(self) -> list[AttestreeError]:
        """All that failed, the node's error first."""
        return [*([] if self.error is None else [self.error]), *self.beside]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `--json` prints it."""
        tasks = [summary.to_dict() for summary in self.tasks]
        failed = None if self.error is None else _told(self.error)
        found = {
            "process": self.process,
            "node": self.node,
            "rounds": tasks,
            "finished": self.finished,
            "left": self.left,
        }
        beside = [_told(error) for error in self.beside]
        return {**found, "error": failed, "beside": beside, "parts": self.parts.to_dict()}


def _told(error: AttestreeError) -> dict[str, str]:
    return {"code": error.code, "cause": error.cause, "remedy": error.remedy}
