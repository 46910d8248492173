"""What every task of a node works with: the ledger as the node, the engine, and the node's directory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from docker import DockerClient

from executor.caller import Caller
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger


@dataclass(frozen=True)
class NodeSession:
    """One node of one process, held by this executor."""

    process: str
    node: str
    ledger: Ledger
    client: DockerClient
    store: NodeStore
    labels: dict[str, str]
    seconds: float
    """How long a task may take."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the operator wants the executor to end."""


@contextmanager
def session_of(  # noqa: PLR0917
    caller: Caller, client: DockerClient, process: str, node: str, seconds: float, stopping: threading.Event
) -> Iterator[NodeSession]:
    """Hold the node on this host and the ledger as the node."""
    store = NodeStore(caller.network.state, caller.organisation, process, node)
    labels = labels_of(caller, process, node)
    with store.locked(), replace(caller, identity=node).ledger() as ledger:
        yield NodeSession(process, node, ledger, client, store, labels, seconds, stopping)


def labels_of(caller: Caller, process: str, node: str) -> dict[str, str]:
    """Return the labels by which a later start finds the containers of a node."""
    return {
        "attestree.network": caller.network.project,
        "attestree.role": "learner",
        "attestree.process": process,
        "attestree.node": node,
    }
