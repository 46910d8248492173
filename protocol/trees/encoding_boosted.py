"""Boosted format v1: several small trees, added up from a base (docs/formats/boosted-v1.md).

    u8 format 129, u8 flags: bits 0-3 the width of a feature less 1, bit 5 MISSING; u16 trees; f64 base
    bits: per tree, per node in preorder 1 = internal, 0 = leaf; a feature of `width` bits per internal node;
          with MISSING a bit per internal node: NaN goes left
    an f32 threshold per internal node
    an f64 per leaf

All numbers little-endian, bit i at bit i % 8 of byte i // 8, as in estimator format v2.
"""

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from protocol.errors import TreeError
from protocol.trees.encoding import NO_FEATURE, Parsed, refuse_negative_zero
from protocol.trees.encoding_v2 import (
    MISSING,
    WIDTH,
    read_features,
    read_number,
    read_shape,
    rounded_down,
    shape_bits,
)
from protocol.trees.limits import TreeLimits

FORMAT = 0x81
HEADER = struct.Struct("<BBHd")
MAX_TREES = 256
MAX_LEAF = 128.0
"""The greatest leaf and base, in log-odds: 40 is a certainty already."""


class ParsedBoosted(NamedTuple):
    """The parts of all trees, one tree after the other, and the base they are added to."""

    parts: Parsed
    trees: int
    base: float


def encode(parsed: ParsedBoosted) -> bytes:
    """Write checked parts."""
    parts = parsed.parts
    splits = [feature for feature in parts.features if feature != NO_FEATURE]
    width = max(splits, default=0).bit_length() or 1
    flags = width - 1
    bits, size = shape_bits(parts.features), len(parts.features)
    for feature in splits:
        bits |= feature << size
        size += width
    if parts.missing:
        flags |= MISSING
        bits |= parts.missing << size
        size += len(splits)
    return b"".join(
        (
            HEADER.pack(FORMAT, flags, parsed.trees, parsed.base),
            bits.to_bytes((size + 7) >> 3, "little"),
            struct.pack(f"<{len(splits)}f", *rounded_down(parts.thresholds)),
            struct.pack(f"<{len(parts.values)}d", *parts.values),
        )
    )


def parse(raw: bytes, limits: TreeLimits) -> ParsedBoosted:
    """Read the one byte string of a boosted estimator within the limits, or raise."""
    flags, trees, base = _header(raw)
    width = (flags & WIDTH) + 1
    most_nodes = 2 * limits.max_internal + trees
    # No more bits than the largest estimator of these limits has.
    most = HEADER.size + ((most_nodes + (width + 1) * limits.max_internal + 7) >> 3)
    bits: list[int] = np.unpackbits(
        np.frombuffer(raw[HEADER.size : most], dtype=np.uint8), bitorder="little"
    ).tolist()
    shape, depth = _shapes(bits, trees, most_nodes, limits)
    n_internal = sum(shape)
    n_leaves = len(shape) - n_internal
    place = len(shape) + width * n_internal
    size = place + (n_internal if flags & MISSING else 0)
    end_bits = HEADER.size + ((size + 7) >> 3)
    end_thresholds = end_bits + 4 * n_internal
    end = end_thresholds + 8 * n_leaves
    if len(raw) != end:
        raise TreeError("TREE_LENGTH", f"{len(raw)} bytes where the estimator has {end}")
    if 1 in bits[size : 8 * (end_bits - HEADER.size)]:
        raise TreeError("TREE_NOT_CANONICAL", "the padding of the bits is not zero")
    features = read_features(bits, shape, width, limits)
    thresholds: tuple[float, ...] = struct.unpack_from(f"<{n_internal}f", raw, end_bits)
    if not all(map(math.isfinite, thresholds)):
        raise TreeError("TREE_THRESHOLD", "a threshold is not a finite number")
    refuse_negative_zero(thresholds)
    values: tuple[float, ...] = struct.unpack_from(f"<{n_leaves}d", raw, end_thresholds)
    check_bounds(base, values)
    refuse_negative_zero((base, *values))
    missing = read_number(bits[place:size])
    if flags & MISSING and not missing:
        raise TreeError("TREE_NOT_CANONICAL", "the missing-goes-left bits are there but empty")
    return ParsedBoosted(Parsed(features, NO_FEATURE, thresholds, values, 0, missing, depth), trees, base)


def check_count(trees: int) -> None:
    """Return if an estimator may have so many trees."""
    if not 1 <= trees <= MAX_TREES:
        raise TreeError("BOOSTED_TREES", f"{trees} trees where an estimator has 1 to {MAX_TREES}")


def check_bounds(base: float, values: Sequence[float]) -> None:
    """Return if the base and the values of leaves are numbers that can be added up."""
    if not -MAX_LEAF <= base <= MAX_LEAF:
        raise TreeError("BOOSTED_BASE", f"the base is {base}, not from -{MAX_LEAF:g} to {MAX_LEAF:g}")
    for value in values:
        if not -MAX_LEAF <= value <= MAX_LEAF:
            raise TreeError("BOOSTED_LEAF", f"a leaf holds {value}, not -{MAX_LEAF:g} to {MAX_LEAF:g}")


def _header(raw: bytes) -> tuple[int, int, float]:
    if type(raw) is not bytes:
        raise TreeError("TREE_INPUT", f"an estimator is read from bytes, not {type(raw).__name__}")
    if raw[:1] != bytes((FORMAT,)):
        raise TreeError("TREE_VERSION", f"the first byte is not that of boosted estimators, {FORMAT}")
    if len(raw) <= HEADER.size:
        raise TreeError("TREE_LENGTH", f"{len(raw)} bytes are too few for a boosted estimator")
    _, flags, trees, base = HEADER.unpack_from(raw)
    if flags & ~(WIDTH | MISSING):
        raise TreeError("TREE_FLAGS", f"flags {flags:#04x} are not defined")
    check_count(trees)
    return flags, trees, base


def _shapes(bits: list[int], trees: int, most_nodes: int, limits: TreeLimits) -> tuple[list[int], int]:
    """Walk one tree after the other, and return the bits of all and the greatest depth."""
    shape: list[int] = []
    deepest = 0
    for left in range(trees, 0, -1):
        # Each tree that is still to come has a node at least.
        room = most_nodes - len(shape) - (left - 1)
        found, depth = read_shape(bits, len(shape), room, limits)
        shape += found
        deepest = max(deepest, depth)
    return shape, deepest
