"""Models of nodes that are done and silent: any member publishes them, so that the process can end."""

from executor.ledger.chaincodes.proxies import Ledger
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import StateError


def publish_missing(ledger: Ledger, process: str) -> list[str]:
    """Publish the models that a process in which all work is done lacks; returns whose they are."""
    status = ledger.orchestration.status(process)
    if status.status is not ProcessState.RUNNING or status.iteration is not None:
        return []
    last = status.iterations - 1
    finished = [entry.node for entry in status.nodes if entry.completed == last]
    without = ledger.models.unpublished(process, finished).nodes
    return [node for node in without if _published(ledger, process, node)]


def _published(ledger: Ledger, process: str, node: str) -> bool:
    """Publish a node's model; False if somebody else has meanwhile."""
    try:
        ledger.models.publish_for(process, node)
    except StateError as error:
        if error.code != "MODEL_EXISTS":
            raise
        return False
    return True
