"""What a process allows a tree to be, within what estimator format v1 can hold."""

from dataclasses import dataclass

from protocol.errors import TreeError

FORMAT_MAX_FEATURES = 65_535
FORMAT_MAX_INTERNAL = 32_767


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The bounds every tree of a process is checked against before it is looked at more closely.

    The defaults are about six times the size and four times the depth of the largest trees seen on the
    fraud data.
    """

    n_features: int
    max_internal: int = 255
    max_depth: int = 64

    def __post_init__(self) -> None:
        _within("n_features", self.n_features, 1, FORMAT_MAX_FEATURES)
        _within("max_internal", self.max_internal, 0, FORMAT_MAX_INTERNAL)
        _within("max_depth", self.max_depth, 0, FORMAT_MAX_INTERNAL)

    @property
    def max_nodes(self) -> int:
        """The most nodes, leaves included: every internal node has two children."""
        return 2 * self.max_internal + 1


def _within(name: str, value: int, lowest: int, highest: int) -> None:
    if type(value) is not int or not lowest <= value <= highest:
        raise TreeError(
            "TREE_LIMITS", f"{name} {str(value)[:40]} is not a whole number from {lowest} to {highest}"
        )


FORMAT_LIMITS = TreeLimits(FORMAT_MAX_FEATURES, FORMAT_MAX_INTERNAL, FORMAT_MAX_INTERNAL)
"""The widest limits there are: what the format can hold."""
