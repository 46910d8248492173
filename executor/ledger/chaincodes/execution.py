"""The execution-record chaincode: the evidence of every task."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from executor.ledger.chaincodes.proxy import Proxy, Submitted
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.opening import Opening, TaskId

ANY_ITERATION = -1


class ExecutionRecord(Proxy):
    """What tasks committed to, what they signed, what that put on the ledger."""

    chaincode = "execution-record"

    def get_task(self, task: TaskId) -> dict[str, Any]:
        """Return a task with what it offered (`offered`) and what it came to (`outcome`)."""
        return self._evaluate("GetTask", *_parts(task))

    def list_tasks(self, process: str, node: str = "") -> Iterator[dict[str, Any]]:
        """Iterate over the tasks of a process, or of one node, by node and iteration."""
        return self._items("ListTasks", process, node)

    def list_refusals(self, process: str, node: str = "") -> Iterator[dict[str, Any]]:
        """Iterate over the refused starts of a process, or of one node, with their evidence."""
        return self._items("ListRefusals", process, node)

    def artifacts(self, process: str, iteration: int = ANY_ITERATION) -> Iterator[dict[str, Any]]:
        """Iterate over the results of a process's completed tasks, or of those of one iteration."""
        return self._items("Artifacts", process, iteration)

    def artifacts_of(
        self, process: str, organisation: str, node: str = "", iteration: int = ANY_ITERATION
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the results of one organisation (MSP id), of one of its nodes or tasks."""
        return self._items("ArtifactsOf", process, organisation, node, iteration)

    def slots(self, process: str, node: str) -> Iterator[dict[str, Any]]:
        """Iterate over the slots of a node as they are now: what each sender offered it last."""
        return self._items("Slots", process, node)

    def offers(self, task: TaskId) -> dict[str, Any]:
        """Return what the neighbours offered in exactly this iteration, and who is missing."""
        return self._evaluate("Offers", *_parts(task))

    def standing(self, process: str, node: str) -> dict[str, Any]:
        """Return a node's last completed iteration, state digest and next counter; null before."""
        return self._evaluate("Standing", process, node)

    def last_result(self, process: str, node: str) -> dict[str, Any]:
        """Return the result of a node's last completed task."""
        return self._evaluate("LastResult", process, node)

    def estimator(self, process: str, estimator: EstimatorId) -> dict[str, Any]:
        """Return an estimator with its tree in base64 and its origin."""
        return self._evaluate("Estimator", process, estimator)

    def estimators(self, process: str, ids: Sequence[EstimatorId]) -> dict[str, Any]:
        """Return `estimators` (id, digest, tree in base64), at most 1000, and the `missing` ids."""
        return self._evaluate("Estimators", process, [str(estimator) for estimator in ids])

    def lineage(self, process: str, estimator: EstimatorId) -> dict[str, Any]:
        """Trace an estimator: its origin, every SHARE that offered it, its takers, its models."""
        pages = list(self._pages("Lineage", process, estimator, items="offers"))
        return {**pages[-1], "offers": [offer for page in pages for offer in page["offers"]]}

    def history(self, kind: str, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Iterate over the changes of a task, slot, share, result or head, newest first."""
        return self._items("History", kind, list(parts))

    def open_task(self, task: TaskId, opening: Opening) -> Submitted:
        """Commit to the key, code, parameters and inputs of a task before anything runs."""
        return self._submit("OpenTask", *_parts(task), opening.to_dict())

    def share(self, task: TaskId, share: bytes, signature: bytes) -> Submitted:
        """SHARE: put the node's new estimators on the ledger and overwrite its neighbours' slots."""
        return self._signed("Share", task, share, signature, "share")

    def complete(self, task: TaskId, result: bytes, signature: bytes) -> Submitted:
        """Complete a task by its signed result, and advance the node in the process."""
        return self._signed("Complete", task, result, signature, "result")

    def fail(self, task: TaskId, code: str, reason: str) -> Submitted:
        """Close a task whose round came to nothing."""
        return self._submit("Fail", *_parts(task), code, reason)

    def expire(self, task: TaskId) -> Submitted:
        """Close a task whose time is over."""
        return self._submit("Expire", *_parts(task))

    def refuse(self, task: TaskId, code: str, evidence: Mapping[str, Any]) -> Submitted:
        """Record that the node refused to run a task, and what it found."""
        return self._submit("Refuse", *_parts(task), code, dict(evidence))

    def _signed(self, function: str, task: TaskId, raw: bytes, signature: bytes, name: str) -> Submitted:
        """Send a payload as transient data: it is in the write set anyway, and its digest is signed."""
        digest = Digest.of(raw)
        return self._submit(function, *_parts(task), digest, signature.hex(), transient={name: raw})


def _parts(task: TaskId) -> tuple[str, str, int]:
    return task.process, task.node, task.iteration
