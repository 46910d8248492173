"""Estimator format v2: half the bytes of v1 (docs/formats/estimator-v2.md).

    u8 version, u8 flags: bits 0-3 the width of a feature less 1, then PROBABILITIES, MISSING
    bits: per node in preorder 1 = internal, 0 = leaf; a feature of `width` bits per internal node;
          without PROBABILITIES a bit per leaf; with MISSING a bit per internal node: NaN goes left
    an f32 threshold per internal node
    with PROBABILITIES an f64 per leaf

All numbers little-endian, bit i at bit i % 8 of byte i // 8. Rows are compared as float32, so a threshold is
the greatest float32 not above the one that was fitted: no row goes another way. The shape ends where the
tree closes, so it needs no count; the parser stops at the limits before it reads on.
"""

import struct
from collections.abc import Sequence

import numpy as np

from protocol.errors import TreeError
from protocol.trees.encoding import CERTAIN, NO_FEATURE, Parsed, check_probabilities, refuse_negative_zero
from protocol.trees.limits import TreeLimits

VERSION = 2
WIDTH, PROBABILITIES, MISSING = 15, 16, 32
HEADER = struct.Struct("<BB")
LARGEST = float(np.finfo(np.float32).max)
_LOWEST = np.float32(-np.inf)
_POWERS = 1 << np.arange(16)


def encode(
    features: Sequence[int], thresholds: Sequence[float], values: Sequence[float], missing: int
) -> bytes:
    """Write checked parts in preorder: NO_FEATURE at leaves, in `missing` a bit per internal node."""
    splits = [feature for feature in features if feature != NO_FEATURE]
    width = max(splits, default=0).bit_length() or 1
    flags = width - 1
    bits, size = shape_bits(features), len(features)
    for feature in splits:
        bits |= feature << size
        size += width
    certain = CERTAIN.issuperset(values)
    if certain:
        for value in values:
            bits |= int(value) << size
            size += 1
    else:
        flags |= PROBABILITIES
    if missing:
        flags |= MISSING
        bits |= missing << size
        size += len(splits)
    return b"".join(
        (
            HEADER.pack(VERSION, flags),
            bits.to_bytes((size + 7) >> 3, "little"),
            struct.pack(f"<{len(splits)}f", *rounded_down(thresholds)),
            b"" if certain else struct.pack(f"<{len(values)}d", *values),
        )
    )


def rounded_down(thresholds: Sequence[float]) -> list[float]:
    """Return for each threshold the greatest float32 that is not above it: the same rows go left."""
    if not thresholds:
        return []
    if min(thresholds) < -LARGEST:
        raise TreeError("TREE_THRESHOLD", "a threshold is below every number of 32 bits")
    exact = np.array(thresholds)
    # What no number of 32 bits exceeds, every row goes left of; adding zero turns -0.0 into 0.0.
    single = np.minimum(exact, LARGEST).astype(np.float32)
    with np.errstate(over="ignore"):
        down: list[float] = np.nextafter(single, _LOWEST).tolist()
    rounded: list[float] = single.tolist()
    return [
        below + 0.0 if near > limit else near + 0.0
        for near, below, limit in zip(rounded, down, thresholds, strict=True)
    ]


def parse(raw: bytes, limits: TreeLimits) -> Parsed:
    """Read the one byte string of a tree within the limits, or raise."""
    if len(raw) <= HEADER.size:
        raise TreeError("TREE_LENGTH", f"{len(raw)} bytes are too few for a tree")
    flags = raw[1]
    if flags & ~(WIDTH | PROBABILITIES | MISSING):
        raise TreeError("TREE_FLAGS", f"flags {flags:#04x} are not defined")
    width = (flags & WIDTH) + 1
    # No more bits than the largest tree of these limits has.
    most = HEADER.size + (((2 + width) * limits.max_nodes + 15) >> 3)
    bits: list[int] = np.unpackbits(
        np.frombuffer(raw[HEADER.size : most], dtype=np.uint8), bitorder="little"
    ).tolist()
    shape, depth = read_shape(bits, 0, limits.max_nodes, limits)
    n_nodes = len(shape)
    n_internal, n_leaves = n_nodes >> 1, (n_nodes + 1) >> 1
    certain = not flags & PROBABILITIES
    size = n_nodes + width * n_internal + (n_leaves if certain else 0)
    size += n_internal if flags & MISSING else 0
    end_bits = HEADER.size + ((size + 7) >> 3)
    end_thresholds = end_bits + 4 * n_internal
    end = end_thresholds + (0 if certain else 8 * n_leaves)
    if len(raw) != end:
        raise TreeError("TREE_LENGTH", f"{len(raw)} bytes where the tree has {end}")
    if 1 in bits[size : 8 * (end_bits - HEADER.size)]:
        raise TreeError("TREE_NOT_CANONICAL", "the padding of the bits is not zero")

    features = read_features(bits, shape, width, limits)
    thresholds: tuple[float, ...] = struct.unpack_from(f"<{n_internal}f", raw, end_bits)
    if not all(-np.inf < threshold < np.inf for threshold in thresholds):
        raise TreeError("TREE_THRESHOLD", "a threshold is not a finite number")
    refuse_negative_zero(thresholds)
    place = n_nodes + width * n_internal
    probabilities: tuple[float, ...] = ()
    ones = 0
    if certain:
        ones = read_number(bits[place : place + n_leaves])
        place += n_leaves
    else:
        probabilities = check_probabilities(struct.unpack_from(f"<{n_leaves}d", raw, end_thresholds))
    missing = read_number(bits[place : place + n_internal]) if flags & MISSING else 0
    if flags & MISSING and not missing:
        raise TreeError("TREE_NOT_CANONICAL", "the missing-goes-left bits are there but empty")
    return Parsed(features, NO_FEATURE, thresholds, probabilities, ones, missing, depth)


def shape_bits(features: Sequence[int]) -> int:
    """Return a bit per node, set at splits."""
    return sum([1 << i for i, feature in enumerate(features) if feature != NO_FEATURE])


def read_shape(bits: list[int], first: int, max_nodes: int, limits: TreeLimits) -> tuple[list[int], int]:
    """Walk the preorder that begins at a bit until it closes, and return its bits and its depth."""
    deepest = 0
    open_depths = [0]
    pop, push = open_depths.pop, open_depths.append
    for place in range(first, len(bits)):
        if place - first == max_nodes:
            raise TreeError("TREE_TOO_MANY_NODES", f"more than {max_nodes} nodes")
        bit = bits[place]
        depth = pop()
        if bit:
            push(depth + 1)
            push(depth + 1)
        else:
            deepest = max(deepest, depth)
            if not open_depths:
                if deepest > limits.max_depth:
                    raise TreeError("TREE_TOO_DEEP", f"depth {deepest} is more than {limits.max_depth}")
                return bits[first : place + 1], deepest
    raise TreeError("TREE_SHAPE", "the bytes end before the tree closes")


def read_features(bits: list[int], shape: list[int], width: int, limits: TreeLimits) -> list[int]:
    """Read the features of the splits, which follow the shape, and put them at their nodes."""
    first, splits = len(shape), sum(shape)
    digits = np.array(bits[first : first + width * splits], dtype=np.int64).reshape(splits, width)
    found: list[int] = (digits @ _POWERS[:width]).tolist()
    highest = max(found, default=0)
    if highest >= limits.n_features:
        raise TreeError("TREE_FEATURE_RANGE", f"feature {highest} of {limits.n_features}")
    if width != (highest.bit_length() or 1):
        raise TreeError("TREE_NOT_CANONICAL", f"features of {width} bits where the highest is {highest}")
    following = iter(found)
    return [next(following) if internal else NO_FEATURE for internal in shape]


def read_number(bits: list[int]) -> int:
    """Return the number that bits give, the least significant first."""
    number = 0
    for bit in reversed(bits):
        number = number << 1 | bit
    return number
