"""A single decision tree: the kind of estimator that the paper has.

A leaf's `value` is the probability that the row is anomalous.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from protocol.errors import TreeError
from protocol.trees import encoding, formats
from protocol.trees.content import Content
from protocol.trees.limits import FIRST_FORMAT, FORMAT_LIMITS, TREE, TreeLimits
from protocol.trees.shape import Walked, walk

__all__ = ["FORMAT_LIMITS", "Tree", "TreeLimits"]

ArrayLike: TypeAlias = Sequence[Any] | NDArray[Any]
_FIRST_LIMITS = replace(FORMAT_LIMITS, format=FIRST_FORMAT)
_INTEGERS, _NUMBERS, _TRUTHS = "iu", "fiu", "biu"


class Tree(Content):
    """One decision tree, from the root at node 0."""

    __slots__ = ()

    kind: ClassVar[str] = TREE

    def __init__(self) -> None:
        raise TypeError("a tree is made by Tree.from_arrays or Tree.from_bytes")

    @classmethod
    def from_bytes(cls, raw: bytes, limits: TreeLimits) -> Self:
        """Accept the canonical bytes of a tree within the limits, or raise `TreeError`."""
        parsed = formats.parse(raw, limits)
        return cls._make(raw, len(parsed.features), len(parsed.thresholds), parsed.depth)

    @classmethod
    def from_arrays(  # noqa: PLR0917
        cls,
        feature: ArrayLike,
        threshold: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        value: ArrayLike,
        missing_left: ArrayLike | None = None,
        limits: TreeLimits | None = None,
    ) -> Self:
        """Accept parallel arrays with node 0 as root and any numbering of children, and renumber in preorder.

        -1 as both children marks a leaf. What an array holds where it has no meaning (the feature of a
        leaf, the value of an internal node) is ignored, because scikit-learn puts marks and statistics
        there. Without limits, those of format v1 hold.
        """
        limits = _FIRST_LIMITS if limits is None else limits
        found = walked(feature, threshold, left, right, value, missing_left, limits)
        for leaf in found.values:
            if not 0.0 <= leaf <= 1.0:
                raise TreeError("TREE_LEAF_VALUE", f"a leaf holds {leaf}")
        raw = formats.encode(limits.format, found.features, found.thresholds, found.values, found.missing)
        return cls._make(raw, len(found.features), len(found.thresholds), found.depth)

    def _parsed(self) -> encoding.Parsed:
        return formats.parse(self._raw, FORMAT_LIMITS)

    @classmethod
    def _again(cls, raw: bytes) -> Self:
        return cls.from_bytes(raw, FORMAT_LIMITS)


def walked(  # noqa: PLR0917
    feature: ArrayLike,
    threshold: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    value: ArrayLike,
    missing_left: ArrayLike | None,
    limits: TreeLimits,
) -> Walked:
    """Return the parts in preorder of the tree that arrays describe, or raise; values are any numbers."""
    n_nodes = _length("feature", feature)
    if n_nodes == 0:
        raise TreeError("TREE_EMPTY", "the tree has no nodes")
    if n_nodes > limits.max_nodes:
        raise TreeError("TREE_TOO_MANY_NODES", f"{n_nodes} nodes are more than {limits.max_nodes}")
    return walk(
        _as_list("feature", feature, _INTEGERS, n_nodes),
        _as_list("threshold", threshold, _NUMBERS, n_nodes),
        _as_list("left", left, _INTEGERS, n_nodes),
        _as_list("right", right, _INTEGERS, n_nodes),
        _as_list("value", value, _NUMBERS, n_nodes),
        None if missing_left is None else _as_list("missing_left", missing_left, _TRUTHS, n_nodes),
        limits,
    )


def _as_list(name: str, array: ArrayLike, kinds: str, length: int) -> list[Any]:
    """Return plain Python numbers, on which a loop is several times faster than on numpy's."""
    if not isinstance(array, np.ndarray):
        # Before the sequence is read, as it may be of any length.
        if _length(name, array) != length:
            raise TreeError("TREE_INPUT", f"{name} has {len(array)} entries instead of {length}")
        array = _from_sequence(name, array)
    kind = array.dtype.kind
    if kind not in kinds:
        raise TreeError("TREE_INPUT", f"{name} holds {array.dtype}")
    if array.shape != (length,):
        raise TreeError("TREE_INPUT", f"{name} has shape {array.shape} instead of ({length},)")
    if kinds is _NUMBERS and array.dtype != np.float64:
        array = array.astype(np.float64)
    items: list[Any] = array.tolist()
    return items


def _length(name: str, array: ArrayLike) -> int:
    try:
        return len(array)
    except TypeError as error:
        raise TreeError("TREE_INPUT", f"{name} is {type(array).__name__}, not an array") from error


def _from_sequence(name: str, items: Sequence[Any]) -> NDArray[Any]:
    try:
        return np.asarray(items)
    except (ValueError, TypeError, OverflowError) as error:
        raise TreeError("TREE_INPUT", f"{name} is not an array of numbers") from error
