"""The decision threshold that suits a node, found on its own rows and with nothing leaving it."""

import numpy as np

from executor.experiment.metrics import Levels, Weighting
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.robust import vote_weights
from learning.rows import Rows

ENOUGH_ANOMALIES = 8
OTHERWISE = 0.5


def home_threshold(node: str, ensemble: Ensemble, parameters: Parameters, rows: Rows) -> float:
    """The threshold of best F1 on the node's rows by foreign trees alone, which never saw these rows.

    It lies midway between the lowest score still called anomalous and the next lower one. With fewer than
    eight anomalies, or without foreign trees, there is too little to tune on.
    """
    foreign = [estimator for estimator in ensemble if estimator.id.creator != node]
    if int(rows.y.sum()) < ENOUGH_ANOMALIES or not foreign:
        return OTHERWISE
    weights = vote_weights(foreign, parameters.vote_cap)
    levels = Levels(Predictor.of([estimator.tree for estimator in foreign], weights).scores(rows.X))
    true, false = levels.counts(Weighting.once(rows.y))
    f1 = (2 * true / (true + false + true[-1]))[:, 0]
    best = int(np.argmax(f1))
    lower = levels.values[best + 1] if best + 1 < len(levels.values) else 0.0
    return float((levels.values[best] + lower) / 2)
