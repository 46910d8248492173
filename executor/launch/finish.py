"""What follows a node's last iteration: its model is published, and the last node ends the process."""

from collections.abc import Callable

from executor.launch.desk import CHUNK
from executor.launch.plan import Bench
from protocol.digest import Digest
from protocol.errors import AttestreeError, LifecycleError, StateError
from protocol.identifiers import EstimatorId
from protocol.task.opening import TaskId
from protocol.task.state import StateRecord
from protocol.trees.limits import TreeLimits
from protocol.trees.share import Share


def finish(bench: Bench, process: str, node: str, tell: Callable[[str], None]) -> dict[str, str] | None:
    """Publish the node's model and try to complete the process; both may have been done before.

    A node that left before the last iteration has no model to publish while the process runs.
    """
    try:
        digest = publish(bench, process, node, tell)
    except StateError as error:
        if error.code not in ("MODEL_UNFINISHED", "TASK_UNKNOWN"):
            raise
        return None
    return {"model": str(digest), "process": complete(bench, process, tell)}


def publish(bench: Bench, process: str, node: str, tell: Callable[[str], None]) -> Digest:
    """Publish the ensemble of the last completed round, with those of its trees that nobody has seen."""
    result = bench.ledger.execution.last_result(process, node)
    context = bench.ledger.orchestration.task_context(TaskId(process, node, result["iteration"]))
    raw = bench.store.state(Digest.parse(result["state"]))
    state = StateRecord.from_bytes(raw, TreeLimits(**context["limits"]))
    ids = [estimator.id for estimator in state.ensemble]
    unseen = set(_never_shared(bench, process, ids))
    trees = Share(tuple(estimator for estimator in state.ensemble if estimator.id in unseen))
    metrics = {"estimators": len(ids), "origins": len({estimator_id.creator for estimator_id in ids})}
    try:
        tell(f"publishing the model, {len(ids)} estimators")
        bench.ledger.models.publish(
            process, node, ids, state.ensemble_digest, metrics, trees.to_bytes() if unseen else None
        )
    except StateError as error:
        if error.code != "MODEL_EXISTS":
            raise
    return state.ensemble_digest


def complete(bench: Bench, process: str, tell: Callable[[str], None]) -> str:
    """End the process if every active node is done; returns its status."""
    try:
        bench.ledger.orchestration.complete(process)
        tell(f"process {process} is completed")
    except (StateError, LifecycleError) as error:
        if error.code not in ("PROCESS_UNFINISHED", "LIFECYCLE_TRANSITION"):
            raise
    except AttestreeError as error:
        # Two nodes that are done in the same moment both try, and one of them is enough.
        if error.code != "LEDGER_CONFLICT":
            raise
    return str(bench.ledger.orchestration.status(process)["status"])


def _never_shared(bench: Bench, process: str, ids: list[EstimatorId]) -> list[EstimatorId]:
    missing: list[str] = []
    for first in range(0, len(ids), CHUNK):
        missing += bench.ledger.execution.estimators(process, ids[first : first + CHUNK])["missing"]
    return [EstimatorId.parse(text) for text in missing]
