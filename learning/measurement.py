"""What a node says of its rows and of its ensemble in steps that do not learn, and no more than that.

Of its rows, in how many columns all values keep to the range agreed on; of its ensemble, the paper's three
metrics on rows that it has not learned from, rounded.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learning import actions
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from learning.rows import Rows
from protocol.agreement.step_kind import Range
from protocol.task.output import DECIMALS, Figures, MetricsOutput


def columns_holding(rows: Rows, ranges: Sequence[Range]) -> int:
    """Count the columns without a value outside their range; a missing value is in any range.

    Compared in the precision of the rows: who agreed on 0.1 as the greatest value means the float32 of it.
    """
    with np.errstate(over="ignore"):
        return sum(
            agreed is None or not ((column < np.float32(agreed[0])) | (column > np.float32(agreed[1]))).any()
            for column, agreed in zip(rows.X.T, ranges, strict=True)
        )


def metrics(node: str, ensemble: Ensemble, parameters: Parameters, rows: Rows | None) -> MetricsOutput:
    """Measure a node's ensemble and its own trees in it, if the rows are of both classes."""
    if rows is None or len(np.unique(rows.y)) < 2:
        return MetricsOutput(None, None)
    own = Ensemble(tuple(estimator for estimator in ensemble if estimator.id.creator == node))
    return MetricsOutput(
        _figures(node, ensemble, parameters, rows),
        _figures(node, own, parameters, rows) if len(own) else None,
    )


def _figures(node: str, ensemble: Ensemble, parameters: Parameters, rows: Rows) -> Figures:
    predictor = actions.predictor(node, ensemble, parameters)
    alarms = predictor.predict(rows, parameters.threshold, parameters.vote) == 1
    return figures(rows.y == 1, alarms)


def figures(anomalous: NDArray[np.bool_], alarms: NDArray[np.bool_]) -> Figures:
    """Return balanced accuracy, precision and recall of rows of both classes; no alarm has precision 0."""
    hits, found = int((anomalous & alarms).sum()), int(alarms.sum())
    positives, negatives = int(anomalous.sum()), int((~anomalous).sum())
    recall, specificity = hits / positives, 1 - (found - hits) / negatives
    precision = hits / found if found else 0.0
    return Figures(*(round(value, DECIMALS) for value in ((recall + specificity) / 2, precision, recall)))
