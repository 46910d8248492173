"""What the task starts from: the node's rows and the state its last task left, both mounted read-only."""

from pathlib import Path

from learner.outcome import Exit, StopError, ends_with, need
from learner.task import Task
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.rows import Rows
from protocol.digest import Digest
from protocol.task.state import StateRecord
from protocol.task.table import Table


def read_rows(path: Path, task: Task) -> Rows:
    """Read the private rows; they have the features of the process."""
    with ends_with(Exit.ROWS):
        table = Table.from_bytes(path.read_bytes())
        need(
            table.n_features == task.limits.n_features,
            Exit.ROWS,
            f"the rows have {table.n_features} features, the process has {task.limits.n_features}",
        )
        return Rows.of(table.X, table.y)


def read_state(path: Path, task: Task) -> NodeState:
    """Read the state that the task commits to, or begin: from the initial model, or from nothing."""
    state = _read_state(path, task)
    need(
        bool(state.ensemble.estimators) or not task.agreed.needs_estimators,
        Exit.STATE,
        f"ENSEMBLE_EMPTY: {state.node} has no estimators, and step {task.agreed.step} makes none",
    )
    return state


def _read_state(path: Path, task: Task) -> NodeState:
    with ends_with(Exit.STATE):
        raw = path.read_bytes() if path.exists() else None
        if raw is None:
            need(task.opening.state is None, Exit.STATE, "the task commits to a state and there is none")
            need(
                task.agreed.initial_model is None,
                Exit.STATE,
                "the process starts from a model that is not here",
            )
            return NodeState(task.id.node, task.seed, task.id.iteration)
        record = StateRecord.from_bytes(raw, task.limits)
        _check_place(record, task)
        if task.opening.state is None:
            _check_initial(record, task)
        else:
            _check_digest(raw, task.opening.state)
    return NodeState(
        record.node,
        task.seed,
        task.id.iteration,
        Ensemble(record.ensemble),
        record.created,
        first=record.first,
    )


def _check_place(record: StateRecord, task: Task) -> None:
    need(
        (record.process, record.node) == (task.id.process, task.id.node),
        Exit.STATE,
        f"the state is that of {record.node} in {record.process}",
    )
    # A node that left and joined again goes on from an earlier state, never from a later one.
    need(
        record.iteration <= task.id.iteration,
        Exit.STATE,
        f"the state is for iteration {record.iteration}, the task is iteration {task.id.iteration}",
    )


def _check_digest(raw: bytes, expected: Digest) -> None:
    found = Digest.of(raw)
    need(found == expected, Exit.STATE, f"the state has digest {found}, and the task commits to {expected}")


def _check_initial(record: StateRecord, task: Task) -> None:
    """Return if the state is the one a node begins with from the model that the process names."""
    model = task.agreed.initial_model
    if model is None:
        raise StopError(Exit.STATE, "there is a state, and the task commits to none")
    found = record.ensemble_digest
    need(
        found == model.digest,
        Exit.STATE,
        f"the initial model has digest {found}, and the process names {model.digest}",
    )
    need(
        record == StateRecord.initial(task.id, task.seed, record.ensemble),
        Exit.STATE,
        "the state is not the one that a node begins with from the initial model",
    )
