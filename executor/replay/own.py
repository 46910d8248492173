"""The inputs of a task as its owner has them: from the node's directory, its data file and the ledger."""

from executor.caller import Caller
from executor.data.source import read_file
from executor.launch.plan import initial_state
from executor.launch.source import DataSource, source_of
from executor.launch.store import NodeStore
from executor.launch.trees import offered_estimators
from executor.ledger.chaincodes.proxies import Ledger
from executor.replay.evidence import SUFFIXES, Evidence
from executor.replay.recorded import Recorded
from protocol.errors import StateError
from protocol.trees.share import Share


def own_evidence(caller: Caller, ledger: Ledger, recorded: Recorded, given: DataSource | None) -> Evidence:
    """Gather what the task began with; the node's directory is read and not changed."""
    task = recorded.id
    store = NodeStore(caller.network.state, caller.organisation, task.process, task.node)
    if not (store.directory / "salt").exists():
        raise StateError("REPLAY_DATA", f"{caller.organisation} has run no task of {task.node} on this host")
    places = caller.network.state / "executor" / caller.organisation / "data"
    source = source_of(given, store, places, task.node)
    dataset = source.load(task.node)
    named = sorted({id_ for offer in recorded.offers for id_ in offer.ids})
    trees = offered_estimators(ledger, recorded.context, named)
    return Evidence(
        task,
        store.salt(),
        source.label,
        source.drop,
        SUFFIXES[1] if dataset.path.suffix.lower() in (".parquet", ".pq") else SUFFIXES[0],
        read_file(dataset.path),
        _state(store, ledger, recorded),
        Share(tuple(trees)).to_bytes(),
    )


def _state(store: NodeStore, ledger: Ledger, recorded: Recorded) -> bytes | None:
    if recorded.opening.state is not None:
        return store.state(recorded.opening.state)
    model = recorded.context.parameters.initial_model
    return None if model is None else initial_state(recorded.context, ledger, model).to_bytes()
