"""An estimator: what a node fitted, under the id its creator gave it."""

from protocol.identifiers import EstimatorId
from protocol.trees.content import Content
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Estimator:
    """A tree, or what another kind has in its place, and its id, which never changes, whoever relays it."""

    id: EstimatorId
    tree: Content
