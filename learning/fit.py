"""FIT: train new estimators on a node's own rows. The only place where estimators come into being.

Every estimator has its own seed, derived from the process seed, the node, the iteration and its counter, so
an auditor replays any one of them.
"""

from learning.errors import ParameterError
from learning.fit_options import FitOptions
from learning.kinds import KINDS
from learning.rows import Rows
from learning.seeds import derive
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass

__all__ = ["FitOptions", "FitTask", "fit"]


@dataclass(frozen=True)
class FitTask:
    """Which estimators to train: everything they depend on except the rows."""

    node: str
    iteration: int
    first_counter: int
    n_new: int
    seed: int
    options: FitOptions
    limits: TreeLimits


def fit(rows: Rows, task: FitTask) -> tuple[Estimator, ...]:
    """Train n_new estimators with consecutive counters."""
    if rows.n_features != task.limits.n_features:
        raise ParameterError(f"rows have {rows.n_features} features, the process {task.limits.n_features}")
    kind = KINDS[task.options.estimator_kind]
    estimators = []
    for counter in range(task.first_counter, task.first_counter + task.n_new):
        seed = derive(task.seed, task.node, task.iteration, f"fit:{counter}")
        fitted = kind.fit(rows, seed, task.options, task.limits)
        estimators.append(Estimator(EstimatorId(task.node, counter), fitted))
    return tuple(estimators)
