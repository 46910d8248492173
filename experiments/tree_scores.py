"""What trees say of the rows that measure, each tree asked once, however many ensembles hold it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data import Floats
from learning.ensemble import Ensemble
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.rows import Rows
from protocol.defence import vote_weights
from protocol.trees.content import Content

SPARSE = 0.2
"""Up to which part of the rows it is cheaper to add to some than to all."""

Told = tuple[npt.NDArray[np.intp] | slice, Floats]
"""Some rows, or all of them, and P(anomalous) of each."""


class TreeScores:
    """P(anomalous) of every test row under every tree met so far.

    Most trees say 0 of nearly every row, so that only the others are kept and added: 0 changes no sum.
    """

    def __init__(self, X: npt.NDArray[np.floating[Any]]) -> None:
        self.rows = Rows.of(X, np.zeros(len(X), dtype=np.int8))
        self.known: dict[Content, Told] = {}

    def of(self, tree: Content) -> Told:
        """The rows of which one tree does not say 0, or all of them, and what it says."""
        found = self.known.get(tree)
        if found is None:
            scores = Predictor.of([tree]).scores(self.rows)
            told = np.flatnonzero(scores)
            sparse = len(told) < SPARSE * len(scores)
            found = self.known[tree] = (told, scores[told]) if sparse else (slice(None), scores)
        return found

    def mean(self, node: str, ensemble: Ensemble, parameters: Parameters) -> Floats:
        """The ensemble's scores, added in the order of `learning.predict`, so that they are the same bits."""
        weights = np.array(vote_weights(node, parameters.members, ensemble.ids, parameters.vote_cap))
        total = np.zeros(len(self.rows))
        for estimator, weight in zip(ensemble, weights, strict=True):
            told, scores = self.of(estimator.tree)
            total[told] += weight * scores
        return total / weights.sum() if len(weights) else total
