"""The orchestration chaincode: what was agreed, and how far each node is."""

from collections.abc import Iterator, Mapping
from typing import Any

from executor.ledger.chaincodes.proxy import Proxy, Submitted
from protocol.digest import Digest
from protocol.task.opening import TaskId


class Orchestration(Proxy):
    """Processes, from the proposal to the end."""

    chaincode = "orchestration"

    def get(self, process: str) -> dict[str, Any]:
        """Return the record of a process."""
        return self._evaluate("Get", process)

    def list(self, status: str = "") -> Iterator[dict[str, Any]]:
        """Iterate over all processes by id, or over those of one status, in brief."""
        return self._items("List", status)

    def status(self, process: str) -> dict[str, Any]:
        """Return where a process stands: acceptances, current iteration, each node's progress."""
        return self._evaluate("Status", process)

    def history(self, process: str) -> Iterator[dict[str, Any]]:
        """Iterate over the changes of a process, newest first: tx, time and value."""
        return self._items("History", process)

    def task_context(self, task: TaskId) -> dict[str, Any]:
        """Return all that a task is checked against."""
        return self._evaluate("TaskContext", task.process, task.node, task.iteration)

    def model_context(self, process: str) -> dict[str, Any]:
        """Return who takes part in a process and whether it has ended."""
        return self._evaluate("ModelContext", process)

    def create(self, specification: Mapping[str, Any]) -> Submitted:
        """Propose a process by its specification (docs/formats/process-v1.md)."""
        return self._submit("Create", dict(specification))

    def accept(self, process: str, digest: Digest | None = None) -> Submitted:
        """Accept a proposed process for the caller's organisation; with a digest, only that specification."""
        return self._submit("Accept", process, "" if digest is None else digest)

    def start(self, process: str) -> Submitted:
        """Start a process that every organisation has accepted."""
        return self._submit("Start", process)

    def complete(self, process: str) -> Submitted:
        """End a process in which every active node has done its last iteration."""
        return self._submit("Complete", process)

    def abort(self, process: str, reason: str) -> Submitted:
        """Give a proposed or running process up, for a reason that is kept."""
        return self._submit("Abort", process, reason)

    def join(self, process: str, node: str, organisation: str, iteration: int) -> Submitted:
        """Let a node of an organisation (MSP id) take part from a coming iteration on."""
        return self._submit("Join", process, node, organisation, iteration)

    def leave(self, process: str, node: str, iteration: int, reason: str = "") -> Submitted:
        """Take a node out from an iteration it has not completed on."""
        return self._submit("Leave", process, node, iteration, reason)

    def change_topology(self, process: str, iteration: int, topology: Mapping[str, Any]) -> Submitted:
        """Ask for, or agree to, another topology from a coming iteration on."""
        return self._submit("ChangeTopology", process, iteration, dict(topology))

    def update_image(self, process: str, iteration: int, version: str) -> Submitted:
        """Ask for, or agree to, another version of the step's image from a coming iteration on."""
        return self._submit("UpdateImage", process, iteration, version)
