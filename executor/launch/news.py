"""What a service has said of processes and nodes, so that it says each thing once."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from executor.exits import exit_code
from executor.launch.agenda import Assignment
from executor.launch.log import Event
from executor.launch.node_report import NodeReport
from executor.launch.watchlist import MOST_ANNOUNCED, POLL
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import AttestreeError
from protocol.ledger.processes import ProcessStatus

Part = tuple[int | None, dict[str, str] | None]
"""From which iteration a node is gone, and what it published."""


@dataclass
class News:
    """Says what is new."""

    say: Callable[..., None]
    _running: set[str] = field(default_factory=set, init=False)
    _unread: dict[str, str] = field(default_factory=dict, init=False)
    _parts: dict[Assignment, Part] = field(default_factory=dict, init=False)

    def is_running(self, process: str) -> bool:
        """Whether a process was said to run, and not yet to have ended."""
        return process in self._running

    def read(self, process: str, status: ProcessStatus | None, *, is_ours: bool) -> None:
        """Say once that there is a process to work for, and once how it ended."""
        self._unread.pop(process, None)
        runs = status is not None and status.status is ProcessState.RUNNING
        if runs and is_ours and process not in self._running:
            self._running.add(process)
            self.say(Event.PROCESS_FOUND, "runs", process=process)
        elif not runs and process in self._running:
            self._running.discard(process)
            self._parts = {of: part for of, part in self._parts.items() if of.process != process}
            ended = "unknown" if status is None else status.status.value
            self.say(Event.PROCESS_ENDED, f"is {ended}", process=process)

    def unread(self, process: str, error: AttestreeError) -> None:
        """Say that a process cannot be read, unless the same was said of it; its name may be made up."""
        if self._unread.get(process) == error.code or len(self._unread) >= MOST_ANNOUNCED:
            return
        self._unread[process] = error.code
        told = {"code": error.code, "exit_code": exit_code(error), "again_in": POLL}
        self.say(Event.PROCESS_FAILED, "cannot be read", process=process, **told)

    def of(self, assignment: Assignment, report: NodeReport) -> NodeReport:
        """Return a report without what is no news: a node that is done is asked about until its process ends.

        Of a process that is over it was said when it ran that the node had left.
        """
        part = (report.left if self.is_running(assignment.process) else None, report.finished)
        if self._parts.get(assignment) == part:
            return replace(report, left=None, finished=None)
        self._parts[assignment] = part
        return replace(report, left=part[0])
