"""What follows a node's last iteration: its model is published, and the last node ends the process."""

from collections.abc import Callable
from typing import Self

from executor.launch.session import NodeSession
from executor.process.completion import publish_missing
from protocol.agreement.lifecycle import ProcessState
from protocol.digest import Digest
from protocol.errors import AttestreeError, LifecycleError, StateError
from protocol.ledger.processes import TaskContext
from protocol.task.opening import TaskId
from protocol.task.state import StateRecord
from protocol.trees.share import Share
from protocol.values import dataclass


@dataclass(frozen=True)
class LastTask:
    """A node's last task: what it was checked against, and the state that it left."""

    context: TaskContext
    state: Digest

    @classmethod
    def read(cls, session: NodeSession) -> Self:
        """Read it from the ledger."""
        process, node = session.process, session.node
        result = session.ledger.execution.last_result(process, node)
        context = session.ledger.orchestration.task_context(TaskId(process, node, result.iteration))
        return cls(context, result.state)


def finish(
    session: NodeSession,
    tell: Callable[[str], None],
    last: LastTask | None = None,
    *,
    for_silent: bool = False,
) -> dict[str, str] | None:
    """Publish the node's model and try to complete the process; both may have been done before.

    A node that left before the last iteration has no model to publish while the process runs. With
    `for_silent`, models of others who did not publish theirs are published for them. What this launch has not
    done itself is read from the ledger.
    """
    try:
        digest = publish_model(session, tell, last or LastTask.read(session))
    except StateError as error:
        # Who has just completed the last task has a model: whoever says otherwise is behind, or lies.
        if last is not None or error.code not in ("MODEL_UNFINISHED", "TASK_UNKNOWN"):
            raise
        return None
    return {"model": str(digest), "process": complete_process(session, tell, for_silent=for_silent)}


def publish_model(session: NodeSession, tell: Callable[[str], None], last: LastTask) -> Digest:
    """Publish the ensemble of the last completed task, with those of its trees that nobody has seen."""
    ledger, process, node = session.ledger, session.process, session.node
    context = last.context
    state = StateRecord.from_bytes(session.store.state(last.state), context.limits)
    ids = [estimator.id for estimator in state.ensemble]
    unseen = set(ledger.execution.digests(process, ids).missing)
    trees = Share(tuple(estimator for estimator in state.ensemble if estimator.id in unseen))
    metrics = {"estimators": len(ids), "origins": len({estimator_id.creator for estimator_id in ids})}
    try:
        tell(f"publishing the model, {len(ids)} estimators")
        ledger.models.publish(
            process,
            node,
            ids,
            state.ensemble_digest,
            metrics,
            trees.to_bytes() if unseen else None,
            context.audience,
        )
    except StateError as error:
        if error.code != "MODEL_EXISTS":
            raise
    return state.ensemble_digest


def complete_process(session: NodeSession, tell: Callable[[str], None], *, for_silent: bool = False) -> str:
    """End the process if every active node is done and has its model; returns its status.

    While others have something to do it would be refused, so nobody is asked to. The last one to publish
    finds all others done: they had completed their tasks before.
    """
    orchestration, process = session.ledger.orchestration, session.process
    status = orchestration.status(process)
    if not for_silent and (status.status is not ProcessState.RUNNING or status.iteration is not None):
        return status.status.value
    try:
        if for_silent and (silent := publish_missing(session.ledger, process)):
            tell(f"published the models of {', '.join(silent)} for them")
        orchestration.complete(process)
        tell(f"process {process} is completed")
    except (StateError, LifecycleError) as error:
        if error.code not in ("PROCESS_UNFINISHED", "PROCESS_UNPUBLISHED", "LIFECYCLE_TRANSITION"):
            raise
    except AttestreeError as error:
        # Two nodes that are done in the same moment both try, and one of them is enough.
        if error.code != "LEDGER_CONFLICT":
            raise
    return orchestration.status(process).status.value
