"""The bound that a federation may not reach for: one forest trained on everybody's rows."""

from dataclasses import replace

import numpy as np

from executor.experiment.batch import Advance
from executor.experiment.metrics import Scores, measure
from executor.experiment.split import Split
from learning.fit import FitOptions, FitTask
from learning.fit_cache import FitCache
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.rows import Rows

TREES, PER_JOB = 50, 5


def pooled_forest(
    split: Split, kind: str, threshold: float, advance: Advance, *, jobs: int, seed: int = 0
) -> Scores:
    """Train a forest of one kind on all training rows and measure it on the joint test set."""
    rows = Rows.of(
        np.concatenate([node.X for node in split.nodes]), np.concatenate([node.y for node in split.nodes])
    )
    limits = Parameters().limits(rows.n_features)
    first = FitTask("pooled", 0, 0, PER_JOB, seed, FitOptions(kind=kind), limits)
    tasks = [replace(first, iteration=i, first_counter=i * PER_JOB) for i in range(TREES // PER_JOB)]
    cache = FitCache()
    cache.prepare(
        [(rows, task, None) for task in tasks], jobs, lambda _done, _total: advance("pooled forest")
    )
    trees = [estimator.tree for task in tasks for estimator in cache.fit(rows, task)]
    return measure(split.y_test, Predictor.of(trees).scores(split.X_test), threshold)
