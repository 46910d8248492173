"""What the nodes of an organisation have to do now: as the ledger says, and as their last tries came out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from executor.launch.patience import Backoff, is_lasting
from executor.ledger.chaincodes.proxies import Ledger
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import AttestreeError, StateError
from protocol.ledger.processes import ProcessStatus, TaskContext
from protocol.task.opening import TaskId


class Assignment(NamedTuple):
    """One node of one process."""

    process: str
    node: str


class Mark(NamedTuple):
    """What of the ledger decides whether a node has something to do."""

    next: int | None
    """Its next iteration; None when it has done all of its own, or left."""
    all_done: bool
    """Whether every node is like that: whoever notices may end the process."""


@dataclass
class Standing:
    """Where one node stands, for the service."""

    mark: Mark = Mark(None, all_done=False)  # noqa: RUF009 - immutable
    settled: Mark | None = None
    """The mark at which nothing was left to do."""
    refused: TaskContext | None = None
    """The task that is not tried again while the ledger says the same of it."""
    not_before: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)
    at_work: bool = False

    def is_due(self, now: float) -> bool:
        """Whether to work for it now; a process in which all is done is asked to end until it has."""
        is_settled = self.settled == self.mark and not self.mark.all_done
        idle = self.at_work or self.refused is not None or is_settled
        return not idle and now >= self.not_before

    @property
    def is_overdue(self) -> bool:
        """Whether all is done, and an earlier try to end the process did not: somebody's model is missing."""
        return self.mark.all_done and self.settled == self.mark


class Agenda:
    """All nodes of the organisation that are on this host and in a running process."""

    def __init__(self, organisation: str, is_local: Callable[[str], bool]) -> None:
        """Take the organisation as the channel names it, and how to know its nodes on this host."""
        self._organisation = organisation
        self._is_local = is_local
        self._standings: dict[Assignment, Standing] = {}

    @property
    def processes(self) -> set[str]:
        """The processes that there is something to do for, or was."""
        return {assignment.process for assignment in self._standings}

    def look(self, ledger: Ledger, process: str) -> ProcessStatus | None:
        """Read where a process stands; returns its status, or None if there is no such process."""
        try:
            status = ledger.orchestration.status(process)
        except StateError as error:
            if error.code != "PROCESS_UNKNOWN":
                raise
            self._forget(process)
            return None
        if status.status is not ProcessState.RUNNING:
            self._forget(process)
            return status
        for entry in status.nodes:
            if entry.organisation == self._organisation and self._is_local(entry.node):
                mark = Mark(entry.next, status.iteration is None)
                self._mark(ledger, Assignment(process, entry.node), mark)
        return status

    def adopt(self, assignment: Assignment) -> None:
        """Have a node worked for once, whose process has ended: an earlier executor left something."""
        self._standings.setdefault(assignment, Standing())

    def due(self, now: float) -> list[Assignment]:
        """Return for whom to work now, in the order of their names."""
        return sorted(each for each, standing in self._standings.items() if standing.is_due(now))

    def begun(self, assignment: Assignment) -> bool:
        """Note that somebody works for a node; returns whether others were silent too long."""
        standing = self._standings[assignment]
        standing.at_work = True
        return standing.is_overdue

    def done(self, assignment: Assignment, now: float, progress: bool) -> None:
        """Note that nothing is left to do for a node, until the ledger says something else of it."""
        standing = self._ended(assignment, progress)
        standing.settled = Mark(None, standing.mark.all_done)
        standing.not_before = now + standing.backoff.failed()

    def failed(
        self,
        assignment: Assignment,
        error: AttestreeError,
        context: TaskContext | None,
        now: float,
        progress: bool,
    ) -> float | None:
        """Note a failure; returns in how many seconds it is tried again, None when the ledger has to change.

        `context` is what the ledger had said of the task; `progress`, whether others were done before it.
        """
        standing = self._ended(assignment, progress)
        if context is not None and is_lasting(error):
            standing.refused = context
            return None
        wait = standing.backoff.failed()
        standing.not_before = now + wait
        return wait

    def _ended(self, assignment: Assignment, progress: bool) -> Standing:
        standing = self._standings[assignment]
        standing.at_work = False
        if progress:
            standing.backoff.succeeded()
        return standing

    def _mark(self, ledger: Ledger, assignment: Assignment, mark: Mark) -> None:
        standing = self._standings.setdefault(assignment, Standing())
        standing.mark = mark
        if standing.refused is not None and self._has_changed(ledger, assignment, standing):
            standing.refused = None
            standing.backoff.succeeded()

    def _has_changed(self, ledger: Ledger, assignment: Assignment, standing: Standing) -> bool:
        upcoming = standing.mark.next
        if upcoming is None:
            return True
        found = ledger.orchestration.task_context(TaskId(*assignment, upcoming))
        return found != standing.refused

    def _forget(self, process: str) -> None:
        """Leave out what has ended, but for those who are still at work there."""
        self._standings = {
            assignment: standing
            for assignment, standing in self._standings.items()
            if assignment.process != process or standing.at_work
        }
