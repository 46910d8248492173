"""The orchestration chaincode: what was agreed, and how far each node is."""

from collections.abc import Iterator, Mapping
from typing import Any

from executor.ledger.chaincodes.proxy import Proxy, Submitted
from protocol.digest import Digest
from protocol.ledger.changes import (
    AbortStatus,
    AbsenceStatus,
    AskRecord,
    AskStatus,
    ChangeRecord,
    ProcessVotes,
)
from protocol.ledger.common import HistoryEntry
from protocol.ledger.processes import (
    AccessTerms,
    ModelContext,
    ProcessBrief,
    ProcessRecord,
    ProcessStatus,
    ProgressRecord,
    TaskContext,
)
from protocol.task.opening import TaskId


class Orchestration(Proxy):
    """Processes, from the proposal to the end."""

    chaincode = "orchestration"

    def get(self, process: str) -> ProcessRecord:
        """Return the record of a process."""
        return self._agreed(ProcessRecord, "Get", process)

    def list(self, status: str = "") -> Iterator[ProcessBrief]:
        """Iterate over all processes by status and id, or over those of one status, in brief."""
        return self._items(ProcessBrief, "List", status)

    def status(self, process: str) -> ProcessStatus:
        """Return where a process stands: acceptances, current iteration, each node's progress."""
        return self._agreed(ProcessStatus, "Status", process)

    def history(self, process: str) -> Iterator[HistoryEntry[ProcessRecord]]:
        """Iterate over the changes of a process, newest first: tx, time and value."""
        return self._history(ProcessRecord, "History", process)

    def progress_history(self, process: str, node: str) -> Iterator[HistoryEntry[ProgressRecord]]:
        """Iterate over how a node advanced in a process, newest first."""
        return self._history(ProgressRecord, "ProgressHistory", process, node)

    def asks(self, process: str) -> Iterator[AskStatus]:
        """Iterate over the changes that are asked for and do not hold."""
        return self._agreed_items(AskStatus, "Asks", process)

    def changes(self, process: str) -> Iterator[ChangeRecord]:
        """Iterate over the changes that hold, in the order in which they came to."""
        return self._agreed_items(ChangeRecord, "Changes", process)

    def votes(self, process: str) -> ProcessVotes:
        """Return the votes to give a process up, and to leave out who is silent."""
        return self._agreed(ProcessVotes, "Votes", process)

    def task_context(self, task: TaskId) -> TaskContext:
        """Return all that a task is checked against; an answer about another task would become that task."""
        found = self._agreed(TaskContext, "TaskContext", task.process, task.node, task.iteration)
        about = (found.process, found.node, found.iteration)
        if about != (task.process, task.node, task.iteration):
            raise self._odd("TaskContext", f"it is about {str(about)[:80]}, not {task}")
        return found

    def model_context(self, process: str) -> ModelContext:
        """Return who takes part in a process and whether it has ended."""
        return self._agreed(ModelContext, "ModelContext", process)

    def access_terms(self, process: str) -> AccessTerms:
        """Return the terms on which models of a process are given away, and who has a say."""
        return self._agreed(AccessTerms, "AccessTerms", process)

    def create(self, specification: Mapping[str, Any]) -> Submitted[ProcessRecord]:
        """Propose a process by its specification (docs/formats/process-v2.md)."""
        return self._submit(ProcessRecord, "Create", dict(specification))

    def accept(self, process: str, digest: Digest | None = None) -> Submitted[ProcessRecord]:
        """Accept a proposed process for the caller's organisation; with a digest, only that specification."""
        return self._submit(ProcessRecord, "Accept", process, "" if digest is None else digest)

    def start(self, process: str) -> Submitted[ProcessRecord]:
        """Start a process that every organisation has accepted."""
        return self._submit(ProcessRecord, "Start", process)

    def complete(self, process: str) -> Submitted[ProcessRecord]:
        """End a process in which every active node has done its last iteration and has its model."""
        return self._submit(ProcessRecord, "Complete", process)

    def abort(self, process: str, reason: str) -> Submitted[AbortStatus]:
        """Vote to give a proposed or running process up, for a reason that is kept."""
        return self._submit(AbortStatus, "Abort", process, reason)

    def leave_out(self, process: str, node: str, reason: str) -> Submitted[AbsenceStatus]:
        """Vote to leave a silent node out."""
        return self._submit(AbsenceStatus, "LeaveOut", process, node, reason)

    def leave_out_organisation(
        self, process: str, organisation: str, reason: str
    ) -> Submitted[AbsenceStatus]:
        """Vote to leave a silent organisation (MSP id) out."""
        return self._submit(AbsenceStatus, "LeaveOutOrganisation", process, organisation, reason)

    def open_step(self, process: str, step: str) -> Submitted[ChangeRecord]:
        """Open the next step, for the coordinator of the process."""
        return self._submit(ChangeRecord, "OpenStep", process, step)

    def replace_coordinator(self, process: str, organisation: str) -> Submitted[AskStatus]:
        """Ask for another organisation (MSP id) to open the steps that are left."""
        return self._submit(AskStatus, "ReplaceCoordinator", process, organisation)

    def agree(self, ask: AskStatus) -> Submitted[AskStatus]:
        """Agree to exactly the change that was read."""
        return self._submit(AskStatus, "Agree", ask.process, ask.asked, ask.number, ask.digest)

    def withdraw(self, process: str, number: int) -> Submitted[AskRecord]:
        """Withdraw a change that the caller's organisation has asked for."""
        return self._submit(AskRecord, "Withdraw", process, number)

    def join(self, process: str, node: str, organisation: str, iteration: int) -> Submitted[AskStatus]:
        """Let a node of an organisation (MSP id) take part from a coming iteration on."""
        return self._submit(AskStatus, "Join", process, node, organisation, iteration)

    def leave(self, process: str, node: str, iteration: int, reason: str = "") -> Submitted[AskStatus]:
        """Take a node out from an iteration it has not completed on."""
        return self._submit(AskStatus, "Leave", process, node, iteration, reason)

    def change_topology(
        self, process: str, iteration: int, topology: Mapping[str, Any]
    ) -> Submitted[AskStatus]:
        """Ask for another topology from a coming iteration on."""
        return self._submit(AskStatus, "ChangeTopology", process, iteration, dict(topology))

    def update_image(self, process: str, iteration: int, version: str) -> Submitted[AskStatus]:
        """Ask for another version of the step's image from a coming iteration on."""
        return self._submit(AskStatus, "UpdateImage", process, iteration, version)
