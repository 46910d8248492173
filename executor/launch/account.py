"""What a launch says of its work: to the person who waits or to the service's reader, and to the log."""

from collections.abc import Callable
from typing import Any

from executor.exits import exit_code
from executor.launch.log import Event, LogEntry
from executor.launch.patience import is_lasting
from executor.launch.reasons import closing_words
from executor.launch.task_run import TaskSummary
from protocol.errors import AttestreeError
from protocol.values import dataclass

Keep = Callable[[LogEntry], None]


@dataclass(frozen=True)
class Account:
    """Makes the lines of one process; what is said of it goes where `keep` takes it."""

    organisation: str
    process: str
    keep: Keep

    def step(self, node: str, iteration: int | None, text: str) -> None:
        """Say what a node does now."""
        self._say(Event.NODE_STEP, text, node=node, iteration=iteration)

    def done(self, summary: TaskSummary) -> None:
        """Say that a task is on the ledger."""
        task = summary.task
        seconds = round(summary.seconds, 3)
        self._say(
            Event.TASK_DONE,
            "done",
            node=task.node,
            iteration=task.iteration,
            seconds=seconds,
            block=summary.block,
        )

    def finished(self, node: str, model: str, status: str) -> None:
        """Say that a node has done all of its work."""
        self._say(Event.NODE_FINISHED, f"model {model} is published; the process is {status}", node=node)

    def left(self, node: str, iteration: int) -> None:
        """Say that a node takes no further part, as its organisation wanted."""
        self._say(Event.NODE_LEFT, "takes no part from here on", node=node, iteration=iteration)

    def failed(self, node: str, error: AttestreeError, again_in: float | None = None) -> None:
        """Say that a node failed, by the code and its one sentence: the cause may quote what is private."""
        event = Event.NODE_REFUSED if again_in is None and is_lasting(error) else Event.NODE_FAILED
        if error.code == "INTERRUPTED":
            event = Event.NODE_STOPPED
        _, text = closing_words(error)
        self._say(
            event, text, node=node, code=error.code, exit_code=exit_code(error), again_in=_rounded(again_in)
        )

    def _say(self, event: Event, text: str, **more: Any) -> None:
        self.keep(LogEntry.now(event, self.organisation, text, process=self.process, **more))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
