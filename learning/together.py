"""Foreign trees tried together: which of them a node gives up, because of what they agree on.

A score above the threshold is a mean of what the node's own trees say and of what foreign ones say, so one of
the two means is above it as well. Rows that foreign trees alone would call anomalous are therefore all that
they can add to what the node calls anomalous by itself, however many organisations agree, and these are what
is counted here, on the node's normal rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from learning.ensemble import Ensemble
from learning.parameters import Parameters
from learning.reach import OwnFit
from learning.robust import Alarms
from learning.rows import Rows
from protocol.defence import vote_weights
from protocol.identifiers import EstimatorId


def given_up(
    node: str, ensemble: Ensemble, parameters: Parameters, rows: Rows, own: OwnFit
) -> set[EstimatorId]:
    """Return the foreign estimators without which the others alarm no more than they may together.

    They go one by one: the one that says most of the rows that are too many, and of equals the last by id.
    """
    check = parameters.home_check
    if check is None or check.together is None:
        return set()
    alarms = {
        estimator.id: check.alarms(estimator.tree, rows, parameters.vote)
        for estimator in ensemble
        if estimator.id.creator != node
    }
    count = int((rows.y == 0).sum())
    allowed, exact = check.rows_together(rows), False
    gone: set[EstimatorId] = set()
    while len(gone) < len(alarms):
        held = [id_ for id_ in ensemble.ids if id_ not in gone]
        loud = _loud(node, held, alarms, parameters, count)
        if loud.sum() > allowed and not exact:
            allowed, exact = check.rows_together(rows, own), True
        if loud.sum() <= allowed:
            break
        said = {id_: float(alarms[id_][1][loud[alarms[id_][0]]].sum()) for id_ in held if id_ in alarms}
        gone.add(max(said, key=lambda id_: (said[id_], id_)))
    return gone


def _loud(
    node: str,
    held: Sequence[EstimatorId],
    alarms: Mapping[EstimatorId, Alarms],
    parameters: Parameters,
    count: int,
) -> NDArray[np.bool_]:
    """Mark the normal rows that the foreign ones of those held would call anomalous by their vote alone."""
    weights = vote_weights(node, parameters.members, held, parameters.vote_cap)
    total, whole = np.zeros(count), 0.0
    for id_, weight in zip(held, weights, strict=True):
        if id_ in alarms:
            places, said = alarms[id_]
            total[places] += weight * said
            whole += weight
    return total > parameters.threshold * whole
