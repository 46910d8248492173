"""What every task of a node works with: the ledger as the node, the engine, and the node's directory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace

from docker import DockerClient

from executor.caller import Caller
from executor.errors import TaskError
from executor.launch.containers import ContainerRemoval
from executor.launch.places import Places
from executor.launch.store import NodeStore
from executor.launch.trees import KnownTrees
from executor.ledger.chaincodes.proxies import Ledger
from executor.network import Network
from protocol.errors import AttestreeError
from protocol.values import dataclass

STORE_LABEL = "attestree.store"
"""Names the directory whose lock the executor held that made the container."""


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
    network: Network | None = None
    """Whose registry is known by its certificate; None where no registry is asked."""
    beside: list[AttestreeError] = field(default_factory=list)
    """What failed while something graver was recorded: told with it, and never instead of it."""
    places: Places = field(default_factory=Places)
    """Where tasks work; one that waits for its neighbours lends its own."""
    trees: KnownTrees = field(default_factory=KnownTrees)
    """What of the neighbours' trees is known to this executor."""
    lost_keys: list[str] = field(default_factory=list)
    """Of earlier starts whose tasks were not on the ledger when this one looked; they may yet be opened."""
    removal: ContainerRemoval = field(default_factory=ContainerRemoval)
    """Removes the container of the task before while the node goes on."""

    def interrupted(self) -> TaskError | None:
        """Say that the operator wants the executor to end, if that is so."""
        if not self.stopping.is_set():
            return None
        return TaskError("INTERRUPTED", "the operator stopped the executor")

    def check_going_on(self) -> None:
        """Return unless the operator wants the executor to end."""
        if (stopped := self.interrupted()) is not None:
            raise stopped


@contextmanager
def session_of(  # noqa: PLR0917
    caller: Caller,
    client: DockerClient,
    process: str,
    node: str,
    seconds: float,
    stopping: threading.Event,
    places: Places,
    trees: KnownTrees,
) -> Iterator[NodeSession]:
    """Hold the node on this host and the ledger as the node."""
    store = NodeStore(caller.network.state, caller.organisation, process, node)
    with store.locked(), replace(caller, identity=node).ledger() as ledger:
        labels = own_labels(caller, store)
        session = NodeSession(
            process,
            node,
            ledger,
            client,
            store,
            labels,
            seconds,
            stopping,
            caller.network,
            places=places,
            trees=trees,
        )
        try:
            yield session
        finally:
            session.removal.close(session.beside.append)


def own_labels(caller: Caller, store: NodeStore) -> dict[str, str]:
    """Return the labels of the containers that were made with this very directory, which is locked."""
    return {**labels_of(caller, store.process, store.node), STORE_LABEL: store.instance}


def labels_of(caller: Caller, process: str, node: str) -> dict[str, str]:
    """Return the labels of all containers of a node, whichever executor made them."""
    return {
        "attestree.network": caller.network.project,
        "attestree.role": "learner",
        "attestree.process": process,
        "attestree.node": node,
    }
