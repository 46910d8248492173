"""How estimators are grown: the ways there are, by name, and what each may be told."""

from learning.errors import ParameterError
from protocol.trees.encoding_boosted import MAX_TREES
from protocol.trees.limits import BOOSTED, TREE
from protocol.values import dataclass

WAYS = {
    "plain": TREE,
    "balanced": TREE,
    "extra": TREE,
    "undersampled": TREE,
    "regressor": TREE,
    "boosted": BOOSTED,
}
"""The ways to FIT, each with the kind of estimators that come out."""
DEFAULT_WAYS = {TREE: "balanced", BOOSTED: "boosted"}
"""By kind, the way of a process that names none."""
MAX_LEAVES = 256
FLOAT32_BITS = 24
"""The significant binary digits of a number that rows are compared with."""


@dataclass(frozen=True)
class FitOptions:
    """How estimators are grown.

    plain         the paper's forest: bootstrap, sqrt(d) features per split, grown until pure
    balanced      the same, both classes of the bootstrap weighing alike
    extra         all rows, both classes weighing alike, random thresholds, half the features per split
    undersampled  all anomalies and at most `normals` normal rows per anomaly, drawn for each tree
    regressor     regression trees on all features, at most 10 deep
    boosted       per estimator `rounds` small trees of at most `leaves` leaves, each correcting the sum of
                  those before it by `rate`; bootstrap, classes weighing by the root of their numbers

    A leaf holds at least `min_leaf` distinct rows; as measured that hides little, so it is no promise of
    privacy. With `threshold_bits` thresholds are rounded to so many significant binary digits, so that they
    lie between no two rows in particular; columns of codes need all the bits of their codes.
    """

    kind: str = "plain"
    min_leaf: int = 1
    normals: int = 50
    max_depth: int | None = None
    rounds: int = 20
    leaves: int = 8
    rate: float = 0.3
    threshold_bits: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in WAYS:
            raise ParameterError(f"no way to FIT is called {self.kind!r}; there are {', '.join(WAYS)}")
        if self.min_leaf < 1 or self.normals < 1:
            raise ParameterError(f"min_leaf {self.min_leaf} and normals {self.normals} must be at least 1")
        if self.max_depth is not None and self.max_depth < 1:
            raise ParameterError(f"max_depth {self.max_depth} must be at least 1")
        if not 1 <= self.rounds <= MAX_TREES or not 2 <= self.leaves <= MAX_LEAVES:
            raise ParameterError(
                f"rounds {self.rounds}, leaves {self.leaves}: need 1 to {MAX_TREES}, 2 to {MAX_LEAVES}"
            )
        if not 0.0 < self.rate <= 1.0:
            raise ParameterError(f"rate {self.rate} is not in (0, 1]")
        if self.threshold_bits is not None and not 1 <= self.threshold_bits <= FLOAT32_BITS:
            raise ParameterError(f"threshold_bits {self.threshold_bits} is not within 1 to {FLOAT32_BITS}")

    @property
    def estimator_kind(self) -> str:
        """The kind of estimators that come out."""
        return WAYS[self.kind]
