"""Estimator format v2 at the door: one byte string per tree, half as long, the same decisions."""

import gzip
import json
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.tree_arrays import arrays

from protocol import canonical
from protocol.errors import TreeError
from protocol.trees import encoding, encoding_v2
from protocol.trees.encoding_v2 import MISSING, PROBABILITIES, rounded_down
from protocol.trees.kinds import check_format
from protocol.trees.tree import FORMAT_LIMITS, Tree, TreeLimits

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "estimator-v2.json").read_text(encoding="utf-8"))
LIMITS = TreeLimits(400, 40, 40, format=2)
LARGEST = float(np.finfo(np.float32).max)


def raw_tree(bits: str, thresholds=(), values=(), flags=0) -> bytes:
    """Write bytes as a forger would; bits as they are read, the first one first."""
    padded = bits.replace(" ", "")
    padded += "0" * (-len(padded) % 8)
    packed = bytes(int(padded[i : i + 8][::-1], 2) for i in range(0, len(padded), 8))
    return (
        bytes((2, flags)) + packed + struct.pack(f"<{len(thresholds)}f", *thresholds)
        + struct.pack(f"<{len(values)}d", *values)
    )  # fmt: skip


# x[3] <= 0.5 to a leaf 0, else x[2] <= 1.5 to a leaf 0 or 1: shape, features of two bits, leaves.
GOOD = raw_tree("10100 11 01 001", [0.5, 1.5], flags=1)


def refusal_of(raw, limits=LIMITS):
    with pytest.raises(TreeError) as refusal:
        Tree.from_bytes(raw, limits)
    return refusal.value.code


def test_the_layout_is_that_of_the_specification():
    tree = Tree.from_bytes(GOOD, LIMITS)
    assert tree.feature.tolist() == [3, -1, 2, -1, -1]
    assert tree.threshold.tolist() == [0.5, 0, 1.5, 0, 0]
    assert tree.value.tolist() == [0, 0, 0, 0, 1]
    assert tree.right.tolist() == [2, -1, 4, -1, -1]
    assert (tree.depth, tree.format, len(GOOD)) == (2, 2, 2 + 2 + 8)
    assert Tree.from_bytes(b"\x02\x00\x02", LIMITS).value.tolist() == [1.0], "a single leaf"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (raw_tree("10100 11 01 001", [np.nan, 1.5], flags=1), "TREE_THRESHOLD"),
        (raw_tree("10100 11 01 001", [np.inf, 1.5], flags=1), "TREE_THRESHOLD"),
        (raw_tree("10100 11 01 001", [-np.inf, 1.5], flags=1), "TREE_THRESHOLD"),
        (raw_tree("10100 11 01 001", [-0.0, 1.5], flags=1), "TREE_NOT_CANONICAL"),
        (raw_tree("10100 110 010 001", [0.5, 1.5], flags=2), "TREE_NOT_CANONICAL"),
        (raw_tree("10100 11 01 001 1", [0.5, 1.5], flags=1), "TREE_NOT_CANONICAL"),
        (raw_tree("10100 11 01 001 00", [0.5, 1.5], flags=1 | MISSING), "TREE_NOT_CANONICAL"),
        (raw_tree("100 1", [0.5], [0.0, 1.0], flags=PROBABILITIES), "TREE_NOT_CANONICAL"),
        (raw_tree("100 1", [0.5], [-0.0, 0.5], flags=PROBABILITIES), "TREE_NOT_CANONICAL"),
        (raw_tree("100 1", [0.5], [0.5, 1.5], flags=PROBABILITIES), "TREE_LEAF_VALUE"),
        (raw_tree("100 1", [0.5], [0.5, np.nan], flags=PROBABILITIES), "TREE_LEAF_VALUE"),
        (raw_tree("100 " + "1" * 9 + "00", [0.5], flags=8), "TREE_FEATURE_RANGE"),
        (raw_tree("1" * 41 + "0" * 42 + "0" * 90), "TREE_TOO_MANY_NODES"),
        (raw_tree("1" * 30), "TREE_SHAPE"),
        (raw_tree("100 1 00", [0.5], flags=0x40), "TREE_FLAGS"),
        (raw_tree("100 1 00", [0.5], flags=0x80), "TREE_FLAGS"),
        (GOOD + b"\x00", "TREE_LENGTH"),
        (GOOD + GOOD, "TREE_LENGTH"),
        (b"\x02", "TREE_LENGTH"),
        (b"\x02\x00", "TREE_LENGTH"),
        (b"", "TREE_LENGTH"),
        (b"\x03" + GOOD[1:], "TREE_VERSION"),
        (pickle.dumps([1]), "TREE_VERSION"),
        (gzip.compress(bytes(1 << 20)), "TREE_VERSION"),
    ],
)  # fmt: skip
def test_d_what_is_no_tree_of_format_two_is_refused(raw, code):
    assert refusal_of(raw) == code


def test_d11_too_deep_is_refused_at_the_limit():
    chain = raw_tree("1" * 6 + "0" * 7 + "0" * 6 + "0" * 7, [1.0] * 6)
    assert Tree.from_bytes(chain, replace(LIMITS, max_depth=6)).depth == 6
    assert refusal_of(chain, replace(LIMITS, max_depth=5)) == "TREE_TOO_DEEP"


def test_d12_a_million_nodes_cost_what_the_limit_allows():
    assert refusal_of(b"\x02\x00" + b"\xff" * (1 << 17)) == "TREE_TOO_MANY_NODES"


def test_d19_truncation_anywhere_is_refused():
    for length in range(len(GOOD)):
        assert refusal_of(GOOD[:length]) in {"TREE_LENGTH", "TREE_SHAPE"}


def test_format_two_is_refused_where_a_process_has_format_one_and_one_is_read_where_it_has_two():
    assert refusal_of(GOOD, replace(LIMITS, format=1)) == "TREE_VERSION"
    first = Tree.from_arrays([-1], [0.0], [-1], [-1], [1.0])
    assert first.format == 1
    assert Tree.from_bytes(first.to_bytes(), LIMITS) == first
    check_format(Tree.from_bytes(GOOD, LIMITS), LIMITS)
    with pytest.raises(TreeError) as caught:
        check_format(first, LIMITS)
    assert caught.value.code == "TREE_VERSION", "a copy in another format would pass for another tree"


@pytest.mark.parametrize("limits", [{"format": 0}, {"format": 3}, {"format": "2"}, {"format": True}], ids=str)
def test_limits_name_a_format_there_is(limits):
    with pytest.raises(TreeError) as caught:
        TreeLimits(3, **limits)
    assert caught.value.code == "TREE_LIMITS"


def test_a_threshold_below_all_numbers_of_32_bits_is_refused_and_one_above_them_is_the_largest():
    assert rounded_down([2 * LARGEST, LARGEST, -LARGEST, 1e-60, -0.0]) == [LARGEST, LARGEST, -LARGEST, 0, 0]
    assert rounded_down([-1e-60]) == [-(2.0**-149)]
    with pytest.raises(TreeError):
        rounded_down([-1.01 * LARGEST])


wide = st.floats(-LARGEST, LARGEST, allow_nan=False)
near = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@given(wide, st.one_of(near, wide))
def test_no_row_goes_another_way(threshold, value):
    (rounded,) = rounded_down([threshold])
    row = float(np.float32(value))
    assert (row <= threshold) == (row <= rounded)
    at = np.float32(threshold)
    for step in (np.nextafter(at, np.float32(-np.inf)), at, np.nextafter(at, np.float32(np.inf))):
        if np.isfinite(step):
            assert (float(step) <= threshold) == (float(step) <= rounded)


def in_format_two(columns):
    feature, threshold, *rest = columns
    assume(all(abs(value) <= LARGEST for value in threshold))
    return Tree.from_arrays(feature, threshold, *rest, limits=LIMITS)


@settings(max_examples=60)
@given(arrays())
def test_a_tree_survives_the_round_trip_and_has_one_spelling(columns):
    tree = in_format_two(columns)
    again = Tree.from_bytes(tree.to_bytes(), LIMITS)
    parts = (again.feature, again.threshold, again.left, again.right, again.value, again.missing_left)
    assert Tree.from_arrays(*parts, limits=LIMITS) == again == tree
    first = Tree.from_arrays(*columns, limits=replace(LIMITS, format=1))
    for name in ("feature", "left", "right", "value", "missing_left"):
        assert np.array_equal(getattr(first, name), getattr(tree, name))
    assert tree.digest != first.digest


@settings(max_examples=150)
@given(arrays(), st.data())
def test_any_mutation_is_refused_or_is_another_tree_in_its_own_spelling(columns, data):
    raw = bytearray(in_format_two(columns).to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        tree = Tree.from_bytes(bytes(raw), LIMITS)
    except TreeError:
        return
    parts = (tree.feature, tree.threshold, tree.left, tree.right, tree.value, tree.missing_left)
    assert Tree.from_arrays(*parts, limits=replace(LIMITS, format=tree.format)).to_bytes() == bytes(raw)


def read_by_the_page(raw):
    """Read a tree by docs/formats/estimator-v2.md in the plainest way, with no code of the package."""
    width, probable, missing = (raw[1] & 15) + 1, raw[1] & 16, raw[1] & 32
    bits = [raw[2 + k // 8] >> k % 8 & 1 for k in range(8 * (len(raw) - 2))]
    n_nodes, waiting = 0, 1
    while waiting:
        waiting += 1 if bits[n_nodes] else -1
        n_nodes += 1
    n_internal, place = n_nodes // 2, n_nodes
    features = []
    for _ in range(n_internal):
        features.append(sum(bits[place + k] << k for k in range(width)))
        place += width
    values = [float(bit) for bit in bits[place : place + n_internal + 1]]
    place += 0 if probable else n_internal + 1
    lefts = bits[place : place + n_internal] if missing else [0] * n_internal
    place += n_internal if missing else 0
    start = 2 + (place + 7) // 8
    thresholds = struct.unpack_from(f"<{n_internal}f", raw, start)
    if probable:
        values = struct.unpack_from(f"<{n_internal + 1}d", raw, start + 4 * n_internal)
    nodes, splits, leaves = iter(bits), iter(zip(features, thresholds, lefts, strict=True)), iter(values)

    def subtree():
        if not next(nodes):
            return next(leaves)
        feature, threshold, left = next(splits)
        return [feature, threshold, bool(left), subtree(), subtree()]

    return subtree()


def nested(tree, node=0):
    if tree.is_leaf[node]:
        return float(tree.value[node])
    below = [nested(tree, side[node]) for side in (tree.left, tree.right)]
    return [int(tree.feature[node]), float(tree.threshold[node]), bool(tree.missing_left[node]), *below]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_golden_trees_keep_their_bytes_and_the_page_is_enough_to_read_them(case):
    columns = dict(case["arrays"])
    for name in ("threshold", "value"):
        columns[name] = [canonical.parse_float(text) for text in columns[name]]
    tree = Tree.from_arrays(**columns, limits=FORMAT_LIMITS)
    assert tree.to_bytes().hex() == case["bytes"]
    assert str(tree.digest) == case["digest"]
    assert (tree.n_nodes, tree.depth) == (case["n_nodes"], case["depth"])
    assert Tree.from_bytes(bytes.fromhex(case["bytes"]), FORMAT_LIMITS) == tree
    assert read_by_the_page(bytes.fromhex(case["bytes"])) == nested(tree)


def test_both_formats_are_told_apart_by_their_first_byte():
    assert (encoding.VERSION, encoding_v2.VERSION) == (1, 2)
