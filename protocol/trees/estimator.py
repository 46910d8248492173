"""An estimator: one tree under the id its creator gave it."""

from dataclasses import dataclass

from protocol.identifiers import EstimatorId
from protocol.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class Estimator:
    """A tree and its id; the id never changes, whoever relays the tree."""

    id: EstimatorId
    tree: Tree
