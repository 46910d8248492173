"""Whole tasks on the channel in memory: the session of a node whose engine has no containers, and a plan."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from executor.data import Dataset
from executor.launch.plan import TaskPlan, find_next_task
from executor.launch.session import STORE_LABEL, NodeSession
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.proxies import Ledger
from protocol import canonical
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.task.opening import TaskId
from support.memory.learners import N_FEATURES, table_of
from support.memory.story import MemberTransport

NODE = "node01"


def session_in(folder: Path, federation: Any) -> NodeSession:
    """Hold the node with a state folder of its own."""
    folder.mkdir(exist_ok=True)
    store = NodeStore(folder, "org1", federation.process, NODE)
    api = SimpleNamespace(containers=lambda **_: [])
    with store.locked():
        labels = {"attestree.network": "net", STORE_LABEL: store.instance}
    ledger = Ledger(MemberTransport(federation.nodes[NODE]))
    client: Any = SimpleNamespace(api=api)
    return NodeSession(federation.process, NODE, ledger, client, store, labels, 60.0)


def planned(session: NodeSession, folder: Path) -> TaskPlan:
    """Plan the node's next task, with rows of its own."""
    path = folder / "rows.csv"
    path.write_bytes(b"the rows, as they were read")
    schema = FeatureSchema(tuple(f"x{i}" for i in range(N_FEATURES)), "Class")
    dataset = Dataset(table_of(0), schema, Digest.of(path.read_bytes()), path)
    task = find_next_task(session)
    assert task is not None
    record: Any = {"network": "none"}
    profile: Any = SimpleNamespace(digest=canonical.digest(record), to_record=lambda: record)
    state = None if task.state is None else session.store.state(task.state)
    return TaskPlan(task, dataset, bytes(32), state, profile)


def closed(session: NodeSession) -> Any:
    """How the node's first task was closed, if it was."""
    return session.ledger.execution.get_task(TaskId(session.process, NODE, 0)).closed
