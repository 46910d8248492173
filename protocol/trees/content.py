"""What an estimator consists of, whichever its kind: canonical bytes, and on demand its nodes as arrays.

A row goes left at an internal node when `x[feature] <= threshold`, and when `x[feature]` is NaN if
`missing_left`. What the values of the leaves mean is the kind's.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from protocol.digest import Digest
from protocol.trees.encoding import Parsed


class Content(ABC):
    """One or more decision trees, checked once at the door, then immutable and equal by their bytes.

    `feature` (int32, -1 at leaves), `threshold` (float64, 0.0 at leaves), `left` and `right` (int32, -1 at
    leaves), `missing_left` (bool, False at leaves) and `value` (float64, 0.0 at internal nodes) are
    read-only. The trees stand one after the other, each in preorder from its root: a left child follows its
    parent.
    """

    __slots__ = ("_arrays", "_digest", "_raw", "depth", "n_internal", "n_nodes")

    kind: ClassVar[str]
    """The name under which the kind is registered."""
    n_nodes: int
    """Nodes of all trees, leaves included."""
    n_internal: int
    """Nodes that split."""
    depth: int
    """Splits on the longest way from a root to a leaf."""
    _raw: bytes
    _arrays: "Arrays | None"
    _digest: Digest | None

    @classmethod
    def _make(cls, raw: bytes, n_nodes: int, n_internal: int, depth: int) -> Self:
        content = object.__new__(cls)
        put = object.__setattr__
        put(content, "_raw", raw)
        put(content, "_arrays", None)
        put(content, "_digest", None)
        put(content, "n_nodes", n_nodes)
        put(content, "n_internal", n_internal)
        put(content, "depth", depth)
        return content

    @abstractmethod
    def _parsed(self) -> Parsed:
        """Return the parts of the trees, one tree after the other."""

    def to_bytes(self) -> bytes:
        """Return the one byte string of this content."""
        return self._raw

    @property
    def format(self) -> int:
        """The first byte, which names kind and format: each has one byte string, and so one digest."""
        return self._raw[0]

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the bytes: the content hash by which a relayed estimator is recognised."""
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
        """What a leaf holds, 0.0 elsewhere."""
        return self._preorder().value

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self._preorder().is_leaf

    @property
    def roots(self) -> NDArray[np.int32]:
        """The root of each tree."""
        return self._preorder().roots

    def _preorder(self) -> "Arrays":
        arrays = self._arrays
        if arrays is None:
            arrays = Arrays(self._parsed())
            object.__setattr__(self, "_arrays", arrays)
        return arrays

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an estimator is immutable: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an estimator is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return self._raw == other._raw if isinstance(other, Content) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_nodes={self.n_nodes}, depth={self.depth}, digest={self.digest})"

    def __reduce__(self) -> tuple[Any, ...]:
        # For a party's own worker processes; the copy passes the same door as any other bytes.
        return type(self)._again, (self._raw,)

    @classmethod
    @abstractmethod
    def _again(cls, raw: bytes) -> Self:
        """Read bytes that some process of this party accepted before."""


class Arrays:
    """The arrays of checked trees, written once."""

    __slots__ = ("feature", "is_leaf", "left", "missing_left", "right", "roots", "threshold", "value")

    def __init__(self, parsed: Parsed) -> None:
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
        right, roots = _right_children(parsed.features, parsed.leaf)
        self.right = np.array(right, dtype=np.int32)
        self.roots = np.array(roots, dtype=np.int32)
        self.missing_left = np.zeros(n_nodes, dtype=np.bool_)
        if parsed.missing:
            n_internal = int(splits.sum())
            self.missing_left[splits] = [bool(parsed.missing >> i & 1) for i in range(n_internal)]
        for name in self.__slots__:
            getattr(self, name).setflags(write=False)


def _right_children(features: Sequence[int], leaf: int) -> tuple[list[int], list[int]]:
    """Find right children, and roots: what follows a leaf hangs from the last split without a right child.

    Where there is no such split, the tree is closed, and what follows is the root of the next one.
    """
    right = [-1] * len(features)
    roots = [0]
    waiting: list[int] = []
    for node, feature in enumerate(features):
        if feature != leaf:
            waiting.append(node)
        elif waiting:
            right[waiting.pop()] = node + 1
        else:
            roots.append(node + 1)
    return right, roots[:-1]
