"""FIT once, compare many times: FIT does not depend on what the neighbours send, so all topologies share it.

Work is spread over processes; what comes back is the trees' canonical bytes, the same for any number of
processes.
"""

from collections.abc import Callable, Iterable, Sequence

from joblib import Parallel, delayed

from learning import attacks
from learning.attacks import Attack
from learning.fit import FitTask, fit
from learning.rows import Rows
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.kinds import read

Progress = Callable[[int, int], None]
Job = tuple[Rows, FitTask, Attack | None]


class FitCache:
    """Estimators by all they depend on: the rows' digest, the task and, if hostile, the attack."""

    def __init__(self) -> None:
        self._fitted: dict[tuple[bytes, FitTask, Attack | None], tuple[Estimator, ...]] = {}

    def fit(self, rows: Rows, task: FitTask, attack: Attack | None = None) -> tuple[Estimator, ...]:
        """Return the task's estimators, training them if they are not known yet."""
        key = (rows.digest, task, attack)
        if key not in self._fitted:
            self._fitted[key] = _fit(rows, task, attack)
        return self._fitted[key]

    def prepare(self, jobs: Iterable[Job], n_jobs: int = 1, progress: Progress | None = None) -> None:
        """Train everything that is missing, several processes at a time, reporting (done, total)."""
        missing = {(rows.digest, task, attack): rows for rows, task, attack in jobs}
        missing = {key: rows for key, rows in missing.items() if key not in self._fitted}
        if n_jobs == 1:
            for done, ((_, task, attack), rows) in enumerate(missing.items(), 1):
                self.fit(rows, task, attack)
                _report(progress, done, len(missing))
            return
        work = Parallel(n_jobs=n_jobs, return_as="generator")
        results = work(delayed(_fit_bytes)(rows, task, attack) for (_, task, attack), rows in missing.items())
        for done, (key, trees) in enumerate(zip(missing, results, strict=True), 1):
            self._fitted[key] = _estimators(key[1], trees)
            _report(progress, done, len(missing))

    def __len__(self) -> int:
        return len(self._fitted)


def _fit(rows: Rows, task: FitTask, attack: Attack | None) -> tuple[Estimator, ...]:
    return fit(rows, task) if attack is None else attacks.fit(attack, rows, task)


def _fit_bytes(rows: Rows, task: FitTask, attack: Attack | None) -> list[bytes]:
    return [estimator.tree.to_bytes() for estimator in _fit(rows, task, attack)]


def _estimators(task: FitTask, trees: Sequence[bytes]) -> tuple[Estimator, ...]:
    return tuple(
        Estimator(EstimatorId(task.node, task.first_counter + i), read(raw, task.limits))
        for i, raw in enumerate(trees)
    )


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
