"""A decision tree as every party sees it: checked once at the door, then immutable and equal by its bytes.

A row goes left at an internal node when `x[feature] <= threshold`, and when `x[feature]` is NaN if
`missing_left`. A leaf's `value` is the probability that the row is anomalous.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from protocol.digest import Digest
from protocol.errors import TreeError
from protocol.trees import encoding, formats
from protocol.trees.limits import FIRST_FORMAT, FORMAT_LIMITS, TreeLimits
from protocol.trees.shape import canonical_bytes

__all__ = ["FORMAT_LIMITS", "Tree", "TreeLimits"]

ArrayLike: TypeAlias = Sequence[Any] | NDArray[Any]
_FIRST_LIMITS = replace(FORMAT_LIMITS, format=FIRST_FORMAT)
_INTEGERS, _NUMBERS, _TRUTHS = "iu", "fiu", "biu"


class Tree:
    """One decision tree: its canonical bytes, and on demand its arrays in preorder.

    `feature` (int32, -1 at leaves), `threshold` (float64, 0.0 at leaves), `left` and `right` (int32, -1 at
    leaves), `missing_left` (bool, False at leaves) and `value` (float64, 0.0 at internal nodes) are
    read-only. Node 0 is the root and a left child follows its parent.
    """

    __slots__ = ("_arrays", "_digest", "_raw", "depth", "n_internal", "n_nodes")

    n_nodes: int
    """Nodes, leaves included."""
    n_internal: int
    """Nodes that split."""
    depth: int
    """Splits on the longest way from the root to a leaf."""
    _raw: bytes
    _arrays: "_Arrays | None"
    _digest: Digest | None

    def __init__(self) -> None:
        raise TypeError("a tree is made by Tree.from_arrays or Tree.from_bytes")

    @classmethod
    def from_bytes(cls, raw: bytes, limits: TreeLimits) -> Self:
        """Accept the canonical bytes of a tree within the limits, or raise `TreeError`."""
        parsed = formats.parse(raw, limits)
        return cls._make(raw, len(parsed.features), parsed.depth)

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
        n_nodes = _length("feature", feature)
        if n_nodes == 0:
            raise TreeError("TREE_EMPTY", "the tree has no nodes")
        if n_nodes > limits.max_nodes:
            raise TreeError("TREE_TOO_MANY_NODES", f"{n_nodes} nodes are more than {limits.max_nodes}")
        raw, depth = canonical_bytes(
            _as_list("feature", feature, _INTEGERS, n_nodes),
            _as_list("threshold", threshold, _NUMBERS, n_nodes),
            _as_list("left", left, _INTEGERS, n_nodes),
            _as_list("right", right, _INTEGERS, n_nodes),
            _as_list("value", value, _NUMBERS, n_nodes),
            None if missing_left is None else _as_list("missing_left", missing_left, _TRUTHS, n_nodes),
            limits,
        )
        return cls._make(raw, n_nodes, depth)

    @classmethod
    def _make(cls, raw: bytes, n_nodes: int, depth: int) -> Self:
        tree = object.__new__(cls)
        put = object.__setattr__
        put(tree, "_raw", raw)
        put(tree, "_arrays", None)
        put(tree, "_digest", None)
        put(tree, "n_nodes", n_nodes)
        put(tree, "n_internal", n_nodes >> 1)
        put(tree, "depth", depth)
        return tree

    def to_bytes(self) -> bytes:
        """Return the one byte string of this tree."""
        return self._raw

    @property
    def format(self) -> int:
        """The estimator format of the bytes: each has one byte string, and so one digest, for a tree."""
        return self._raw[0]

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the bytes: the content hash by which a relayed tree is recognised."""
        digest = self._digest
        if digest is None:
            digest = Digest.of(self._raw)
            object.__setattr__(self, "_digest", digest)
        return digest

    @property
    def feature(self) -> NDArray[np.int32]:
        """The feature each internal node tests, -1 at leaves."""
        return self._preorder().feature

    @property
    def threshold(self) -> NDArray[np.float64]:
        """The greatest value that goes left, 0.0 at leaves."""
        return self._preorder().threshold

    @property
    def left(self) -> NDArray[np.int32]:
        """The left child, -1 at leaves."""
        return self._preorder().left

    @property
    def right(self) -> NDArray[np.int32]:
        """The right child, -1 at leaves."""
        return self._preorder().right

    @property
    def missing_left(self) -> NDArray[np.bool_]:
        """Whether NaN goes left, False at leaves."""
        return self._preorder().missing_left

    @property
    def value(self) -> NDArray[np.float64]:
        """The probability of an anomaly at leaves, 0.0 elsewhere."""
        return self._preorder().value

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self._preorder().is_leaf

    def _preorder(self) -> "_Arrays":
        arrays = self._arrays
        if arrays is None:
            arrays = _Arrays(formats.parse(self._raw, FORMAT_LIMITS))
            object.__setattr__(self, "_arrays", arrays)
        return arrays

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a tree is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a tree is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return self._raw == other._raw if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        return f"Tree(n_nodes={self.n_nodes}, depth={self.depth}, digest={self.digest})"

    def __reduce__(self) -> tuple[Any, ...]:
        # For a party's own worker processes; the copy passes the same door as any other bytes.
        return Tree.from_bytes, (self._raw, FORMAT_LIMITS)


def check_format(tree: Tree, limits: TreeLimits) -> None:
    """Return if a new tree is in the format of the process: in another one it would pass for another tree."""
    if tree.format != limits.format:
        raise TreeError(
            "TREE_VERSION", f"a new tree is of format {tree.format}, and the process's is {limits.format}"
        )


class _Arrays:
    """The arrays of a checked tree, written once."""

    __slots__ = ("feature", "is_leaf", "left", "missing_left", "right", "threshold", "value")

    def __init__(self, parsed: encoding.Parsed) -> None:
        features = np.array(list(parsed.features), dtype=np.int32)
        n_nodes = len(features)
        self.is_leaf: NDArray[np.bool_] = features == parsed.leaf
        splits = ~self.is_leaf
        features[self.is_leaf] = -1
        self.feature = features
        self.threshold = np.zeros(n_nodes)
        self.threshold[splits] = parsed.thresholds
        self.value = np.zeros(n_nodes)
        self.value[self.is_leaf] = parsed.values
        self.left = np.where(splits, np.arange(1, n_nodes + 1, dtype=np.int32), np.int32(-1))
        self.right = np.array(_right_children(parsed.features, parsed.leaf), dtype=np.int32)
        self.missing_left = np.zeros(n_nodes, dtype=np.bool_)
        if parsed.missing:
            self.missing_left[splits] = [bool(parsed.missing >> i & 1) for i in range(n_nodes >> 1)]
        for name in self.__slots__:
            getattr(self, name).setflags(write=False)


def _right_children(features: Sequence[int], leaf: int) -> list[int]:
    """Find right children: the node after a leaf hangs from the last split that has no right child yet."""
    right = [-1] * len(features)
    waiting: list[int] = []
    for node, feature in enumerate(features):
        if feature != leaf:
            waiting.append(node)
        elif waiting:
            right[waiting.pop()] = node + 1
    return right


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
