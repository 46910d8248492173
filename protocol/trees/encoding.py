"""Estimator format v1: the one byte string of a tree (docs/formats/estimator-v1.md).

    u8 version, u8 flags, u16 node count
    a feature per node in preorder (u8, or u16 with WIDE; all bits set = leaf)
    an f64 threshold per internal node
    a bit per leaf, or with PROBABILITIES an f64 per leaf
    with MISSING, a bit per internal node: NaN goes left

All numbers little-endian, bit i of a bitmap at bit i % 8 of byte i // 8. The parser trusts nothing: sizes
first, then flags, then shape, then values, and finally that each flag is the one this tree needs.
"""

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from protocol.errors import TreeError
from protocol.trees.limits import TreeLimits

VERSION = 1
WIDE, PROBABILITIES, MISSING = 1, 2, 4
HEADER = struct.Struct("<BBH")
# A leaf's mark has all bits of its width set, so that -1 becomes the mark by cutting it to size.
NO_FEATURE, NARROW_LEAF, WIDE_LEAF = -1, 0xFF, 0xFFFF
CERTAIN = frozenset((0.0, 1.0))


class Parsed(NamedTuple):
    """The parts of a tree in preorder, checked."""

    features: Sequence[int]
    leaf: int
    thresholds: tuple[float, ...]
    probabilities: tuple[float, ...]
    ones: int
    missing: int
    depth: int

    @property
    def values(self) -> Sequence[float]:
        """The value of each leaf, whichever way it was written."""
        n_leaves = (len(self.features) + 1) >> 1
        return self.probabilities or [float(self.ones >> i & 1) for i in range(n_leaves)]


def encode(
    features: Sequence[int], thresholds: Sequence[float], values: Sequence[float], missing: int
) -> bytes:
    """Write checked parts in preorder: NO_FEATURE at leaves, in `missing` a bit per internal node."""
    n_nodes, n_internal, n_leaves = len(features), len(thresholds), len(values)
    flags = MISSING if missing else 0
    if max(features) < NARROW_LEAF:
        feature_section = bytes([feature & NARROW_LEAF for feature in features])
    else:
        flags |= WIDE
        feature_section = struct.pack(f"<{n_nodes}H", *[feature & WIDE_LEAF for feature in features])
    if CERTAIN.issuperset(values):
        ones = sum([1 << i for i, value in enumerate(values) if value])
        value_section = ones.to_bytes((n_leaves + 7) >> 3, "little")
    else:
        flags |= PROBABILITIES
        value_section = struct.pack(f"<{n_leaves}d", *values)
    missing_section = missing.to_bytes((n_internal + 7) >> 3, "little") if missing else b""
    threshold_section = struct.pack(f"<{n_internal}d", *thresholds)
    return b"".join(
        (
            HEADER.pack(VERSION, flags, n_nodes),
            feature_section,
            threshold_section,
            value_section,
            missing_section,
        )
    )


def parse(raw: bytes, limits: TreeLimits) -> Parsed:
    """Read the one byte string of a tree within the limits, or raise."""
    flags, n_nodes = _header(raw, limits)
    n_internal = n_nodes >> 1
    n_leaves = n_internal + 1
    end_features = HEADER.size + (2 * n_nodes if flags & WIDE else n_nodes)
    end_thresholds = end_features + 8 * n_internal
    end_values = end_thresholds + (8 * n_leaves if flags & PROBABILITIES else (n_leaves + 7) >> 3)
    end = end_values + ((n_internal + 7) >> 3 if flags & MISSING else 0)
    if len(raw) != end:
        raise TreeError("TREE_LENGTH", f"{len(raw)} bytes where the header announces {end}")

    features, leaf = _features(raw[HEADER.size : end_features], n_nodes, n_leaves, flags, limits)
    depth = _depth(features, leaf, limits)
    thresholds: tuple[float, ...] = struct.unpack_from(f"<{n_internal}d", raw, end_features)
    if not all(map(math.isfinite, thresholds)):
        raise TreeError("TREE_THRESHOLD", "a threshold is not a finite number")
    refuse_negative_zero(thresholds)
    probabilities: tuple[float, ...] = ()
    ones = 0
    if flags & PROBABILITIES:
        probabilities = check_probabilities(struct.unpack_from(f"<{n_leaves}d", raw, end_thresholds))
    else:
        ones = _bitmap(raw[end_thresholds:end_values], n_leaves)
    missing = _bitmap(raw[end_values:], n_internal)
    if flags & MISSING and not missing:
        raise TreeError("TREE_NOT_CANONICAL", "the missing-goes-left bitmap is there but empty")
    return Parsed(features, leaf, thresholds, probabilities, ones, missing, depth)


def _header(raw: bytes, limits: TreeLimits) -> tuple[int, int]:
    if len(raw) < HEADER.size:
        raise TreeError("TREE_LENGTH", f"{len(raw)} bytes are too few for a tree")
    _, flags, n_nodes = HEADER.unpack_from(raw)
    if flags & ~(WIDE | PROBABILITIES | MISSING):
        raise TreeError("TREE_FLAGS", f"flags {flags:#04x} are not defined")
    if n_nodes == 0:
        raise TreeError("TREE_EMPTY", "the tree has no nodes")
    if n_nodes > limits.max_nodes:
        raise TreeError("TREE_TOO_MANY_NODES", f"{n_nodes} nodes are more than {limits.max_nodes}")
    if n_nodes % 2 == 0:
        raise TreeError("TREE_SHAPE", f"{n_nodes} nodes: a binary tree has an odd number")
    return flags, n_nodes


def _features(
    section: bytes, n_nodes: int, n_leaves: int, flags: int, limits: TreeLimits
) -> tuple[Sequence[int], int]:
    features: Sequence[int]
    if flags & WIDE:
        features, leaf = struct.unpack(f"<{n_nodes}H", section), WIDE_LEAF
        splits: Sequence[int] = [feature for feature in features if feature != WIDE_LEAF]
    else:
        features, leaf = section, NARROW_LEAF
        splits = section.translate(None, b"\xff")
    if len(splits) != n_nodes - n_leaves:
        raise TreeError(
            "TREE_SHAPE", f"{n_nodes - len(splits)} leaves among {n_nodes} nodes instead of {n_leaves}"
        )
    highest = max(splits, default=0)
    if highest >= limits.n_features:
        raise TreeError("TREE_FEATURE_RANGE", f"feature {highest} of {limits.n_features}")
    if flags & WIDE and highest < NARROW_LEAF:
        raise TreeError("TREE_NOT_CANONICAL", f"wide features where the highest is {highest}")
    return features, leaf


def _depth(features: Sequence[int], leaf: int, limits: TreeLimits) -> int:
    """Walk the preorder, which must close with its last node and not before, and measure it."""
    deepest = 0
    # Depths at which a subtree is still to come; as the leaves were counted, it can only run empty too early.
    open_depths = [0]
    pop, push = open_depths.pop, open_depths.append
    for feature in features:
        if not open_depths:
            raise TreeError("TREE_SHAPE", "the tree closes before its last node")
        depth = pop()
        if feature != leaf:
            depth += 1
            push(depth)
            push(depth)
        elif depth > deepest:
            deepest = depth
    if deepest > limits.max_depth:
        raise TreeError("TREE_TOO_DEEP", f"depth {deepest} is more than {limits.max_depth}")
    return deepest


def check_probabilities(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of leaves if they are probabilities, and not all certain."""
    fractional = False
    for value in values:
        if not 0.0 <= value <= 1.0:
            raise TreeError("TREE_LEAF_VALUE", f"a leaf holds {value}")
        if 0.0 < value < 1.0:
            fractional = True
    if not fractional:
        raise TreeError("TREE_NOT_CANONICAL", "leaves of 0 and 1 alone are written as bits")
    refuse_negative_zero(values)
    return values


def _bitmap(section: bytes, count: int) -> int:
    bits = int.from_bytes(section, "little")
    if bits >> count:
        raise TreeError("TREE_NOT_CANONICAL", "the padding of a bitmap is not zero")
    return bits


def refuse_negative_zero(numbers: Sequence[float]) -> None:
    """Return if no zero has a sign."""
    if 0.0 in numbers and any(number == 0.0 and math.copysign(1.0, number) < 0.0 for number in numbers):
        raise TreeError("TREE_NOT_CANONICAL", "zero is written without a sign")
