"""What a process allows an estimator to be, within what the estimator formats can hold."""

from typing import Any, Self

from protocol import canonical
from protocol.errors import TreeError
from protocol.fields import Fields
from protocol.values import dataclass

FORMAT_MAX_FEATURES = 65_535
FORMAT_MAX_INTERNAL = 32_767
FORMAT_MAX_OFFERED = 65_535
FIRST_FORMAT, LATEST_FORMAT = 1, 2
TREE, BOOSTED = "tree", "boosted"
KIND_NAMES = (TREE, BOOSTED)
"""The kinds of estimators; `protocol.trees.kinds` has what each is on the wire."""
_LIMITS = ("n_features", "max_internal", "max_depth")


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The bounds every estimator of a process is checked against before it is looked at more closely.

    The defaults are about six times the size and four times the depth of the largest trees seen on the
    fraud data. An estimator of several trees has `max_internal` for all of them together.
    """

    n_features: int
    max_internal: int = 255
    max_depth: int = 64
    format: int = FIRST_FORMAT
    """The estimator format in which single trees are written, and the latest that is read."""
    kind: str = TREE
    """The kind of the process's estimators; those of another are not read."""

    def __post_init__(self) -> None:
        _within("n_features", self.n_features, 1, FORMAT_MAX_FEATURES)
        _within("max_internal", self.max_internal, 0, FORMAT_MAX_INTERNAL)
        _within("max_depth", self.max_depth, 0, FORMAT_MAX_INTERNAL)
        _within("format", self.format, FIRST_FORMAT, LATEST_FORMAT)
        if self.kind not in KIND_NAMES:
            raise TreeError("TREE_LIMITS", f"kind {str(self.kind)[:40]!r} is none of {', '.join(KIND_NAMES)}")

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Read limits with every default written out."""
        found = Fields(record, "limits", _LIMITS, ("format", "kind"))
        n_features, max_internal, max_depth = (found[name] for name in _LIMITS)
        number = found.get("format", FIRST_FORMAT)
        return cls(n_features, max_internal, max_depth, number, found.get("kind", TREE))

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record with every default written out; format 1 and single trees go without saying."""
        record: dict[str, canonical.Record] = {name: getattr(self, name) for name in _LIMITS}
        if self.format != FIRST_FORMAT:
            record["format"] = self.format
        if self.kind != TREE:
            record["kind"] = self.kind
        return record

    @property
    def max_nodes(self) -> int:
        """The most nodes of one tree, leaves included: every internal node has two children."""
        return 2 * self.max_internal + 1


def _within(name: str, value: int, lowest: int, highest: int) -> None:
    if type(value) is not int or not lowest <= value <= highest:
        raise TreeError(
            "TREE_LIMITS", f"{name} {str(value)[:40]} is not a whole number from {lowest} to {highest}"
        )


FORMAT_LIMITS = TreeLimits(FORMAT_MAX_FEATURES, FORMAT_MAX_INTERNAL, FORMAT_MAX_INTERNAL, LATEST_FORMAT)
"""The widest limits there are: what the formats can hold."""
