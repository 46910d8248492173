"""A boosted estimator: small trees whose values are added to a base and make the log-odds of an anomaly."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from protocol.errors import TreeError
from protocol.trees import encoding_boosted
from protocol.trees.content import Content
from protocol.trees.encoding import NO_FEATURE, Parsed
from protocol.trees.encoding_boosted import ParsedBoosted, check_bounds, check_count
from protocol.trees.limits import BOOSTED, FORMAT_LIMITS, TreeLimits
from protocol.trees.tree import walked

_WIDEST = replace(FORMAT_LIMITS, kind=BOOSTED)


class Boosted(Content):
    """Trees in the order in which they are added, and the base that they are added to."""

    __slots__ = ("base",)

    kind: ClassVar[str] = BOOSTED
    base: float
    """The log-odds before the first tree."""

    def __init__(self) -> None:
        raise TypeError("a boosted estimator is made by Boosted.from_arrays or Boosted.from_bytes")

    @classmethod
    def from_bytes(cls, raw: bytes, limits: TreeLimits) -> Self:
        """Accept the canonical bytes of a boosted estimator within the limits, or raise `TreeError`."""
        return cls._of(raw, encoding_boosted.parse(raw, limits))

    @classmethod
    def from_arrays(
        cls, base: float, trees: Sequence[Mapping[str, Any]], limits: TreeLimits | None = None
    ) -> Self:
        """Accept a base and per tree the arrays that `Tree.from_arrays` takes, leaves holding log-odds."""
        limits = _WIDEST if limits is None else limits
        check_count(len(trees))
        found = []
        room = limits.max_internal
        for tree in trees:
            part = walked(**{"missing_left": None, **tree}, limits=replace(limits, max_internal=room))
            room -= len(part.thresholds)
            found.append(part)
        missing = width = 0
        for part in found:
            missing |= part.missing << width
            width += len(part.thresholds)
        values = [value for part in found for value in part.values]
        if type(base) is not float:
            raise TreeError("TREE_INPUT", f"the base is {type(base).__name__}, not a float")
        check_bounds(base, values)
        parts = Parsed(
            [feature for part in found for feature in part.features],
            NO_FEATURE,
            tuple(threshold for part in found for threshold in part.thresholds),
            tuple(values),
            0,
            missing,
            max(part.depth for part in found),
        )
        # Adding zero turns -0.0 into 0.0.
        parsed = ParsedBoosted(parts, len(found), base + 0.0)
        return cls._of(encoding_boosted.encode(parsed), parsed)

    @classmethod
    def _of(cls, raw: bytes, parsed: ParsedBoosted) -> Self:
        parts = parsed.parts
        boosted = cls._make(raw, len(parts.features), len(parts.thresholds), parts.depth)
        object.__setattr__(boosted, "base", parsed.base)
        return boosted

    @property
    def n_trees(self) -> int:
        """How many trees are added up."""
        return len(self.roots)

    def _parsed(self) -> Parsed:
        return encoding_boosted.parse(self._raw, _WIDEST).parts

    @classmethod
    def _again(cls, raw: bytes) -> Self:
        return cls.from_bytes(raw, _WIDEST)
