"""Bytes at the door: one byte string per tree, and nothing else."""

import gzip
import io
import pickle
import struct
import zipfile
import zlib

import pytest

from protocol.errors import TreeError
from protocol.trees.encoding import MISSING, PROBABILITIES, WIDE
from protocol.trees.tree import FORMAT_LIMITS, Tree, TreeLimits

LIMITS = TreeLimits(n_features=300)


def raw_tree(features, thresholds, values=b"\x00", missing=b"", flags=0):
    """Write bytes as a forger would: every part as given."""
    code = "H" if flags & WIDE else "B"
    return (
        struct.pack("<BBH", 1, flags, len(features))
        + struct.pack(f"<{len(features)}{code}", *features)
        + struct.pack(f"<{len(thresholds)}d", *thresholds)
        + (values if isinstance(values, bytes) else struct.pack(f"<{len(values)}d", *values))
        + missing
    )


GOOD = raw_tree([3, 255, 7, 255, 255], [0.5, 1.5], b"\x05")


def refusal_of(raw, limits=LIMITS):
    with pytest.raises(TreeError) as refusal:
        Tree.from_bytes(raw, limits)
    return refusal.value.code


def test_the_layout_is_that_of_the_specification():
    tree = Tree.from_bytes(GOOD, LIMITS)
    assert tree.feature.tolist() == [3, -1, 7, -1, -1]
    assert tree.value.tolist() == [0, 1, 0, 0, 1]
    assert tree.right.tolist() == [2, -1, 4, -1, -1]
    assert len(GOOD) == 4 + 5 + 16 + 1


def test_probabilities_wide_features_and_missing_bits_have_their_flags():
    raw = raw_tree([299, 65535, 65535], [1.0], [0.25, 1.0], b"\x01", WIDE | PROBABILITIES | MISSING)
    tree = Tree.from_bytes(raw, LIMITS)
    assert tree.feature.tolist() == [299, -1, -1]
    assert tree.value.tolist() == [0.0, 0.25, 1.0]
    assert tree.missing_left.tolist() == [True, False, False]
    arrays = (tree.feature, tree.threshold, tree.left, tree.right, tree.value, tree.missing_left)
    assert Tree.from_arrays(*arrays, limits=LIMITS).to_bytes() == raw


def test_feature_254_is_narrow_and_255_is_wide():
    for feature, flags in ((254, 0), (255, WIDE)):
        tree = Tree.from_arrays(
            [feature, -1, -1], [1.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1], limits=LIMITS
        )
        assert tree.to_bytes()[1] == flags
        assert Tree.from_bytes(tree.to_bytes(), LIMITS).feature[0] == feature


class Bomb:
    """Calls out when it is unpickled, which must not happen."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def _zip_bytes():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tree", bytes(1 << 20))
    return buffer.getvalue()


def _joblib_bytes():
    import joblib

    buffer = io.BytesIO()
    joblib.dump({"tree": [1, 2]}, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(pickle.dumps(Bomb(), protocol=2), id="pickle"),
        pytest.param(pickle.dumps(Bomb(), protocol=5), id="pickle-5"),
        pytest.param(pickle.dumps(Bomb(), protocol=0), id="pickle-0"),
        pytest.param(_joblib_bytes(), id="joblib"),
        pytest.param(_zip_bytes(), id="zip"),
        pytest.param(gzip.compress(bytes(1 << 24)), id="gzip bomb"),
        pytest.param(zlib.compress(GOOD), id="zlib"),
        pytest.param(b'{"tree": []}', id="json"),
        pytest.param(b"\x93NUMPY\x01\x00" + bytes(120), id="npy"),
        pytest.param(b"\x00" + GOOD[1:], id="version 0"),
        pytest.param(b"\x02" + GOOD[1:], id="version 2"),
    ],
)
def test_d19_bytes_of_another_format_are_refused_unread(raw):
    assert refusal_of(raw) == "TREE_VERSION"


def test_d19_trailing_garbage_is_refused():
    for garbage in (b"\x00", b"\n", GOOD, bytes(1 << 20)):
        assert refusal_of(GOOD + garbage) == "TREE_LENGTH"


def test_d19_truncation_anywhere_is_refused():
    for length in range(len(GOOD)):
        assert refusal_of(GOOD[:length]) == "TREE_LENGTH"


@pytest.mark.parametrize("raw", [None, "text", bytearray(GOOD), memoryview(GOOD), [1, 0]])
def test_what_is_not_bytes_is_refused(raw):
    assert refusal_of(raw) == "TREE_INPUT"


@pytest.mark.parametrize("flags", [8, 16, 32, 64, 128, 255])
def test_undefined_flags_are_refused(flags):
    assert refusal_of(GOOD[:1] + bytes([flags]) + GOOD[2:]) == "TREE_FLAGS"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(raw_tree([3, 255, 255, 255], [0.5], b"\x00"), id="even number of nodes"),
        pytest.param(raw_tree([255, 3, 255], [0.5]), id="closes at the first node"),
        pytest.param(raw_tree([3, 255, 255, 7, 255], [0.5, 1.5]), id="closes too early"),
        pytest.param(raw_tree([3, 7, 255], [0.5]), id="too few leaves"),
        pytest.param(raw_tree([255, 255, 255], [0.5]), id="too many leaves"),
        pytest.param(raw_tree([3, 3, 3, 255, 255], [0.5, 1.5]), id="never closes"),
    ],
)
def test_preorder_that_is_no_tree_is_refused(raw):
    assert refusal_of(raw) == "TREE_SHAPE"


def test_a_tree_without_nodes_is_refused():
    assert refusal_of(b"\x01\x00\x00\x00") == "TREE_EMPTY"


def test_d7_feature_just_under_and_over_its_limit():
    raw = raw_tree([29, 255, 255], [0.5])
    assert Tree.from_bytes(raw, TreeLimits(30)).feature[0] == 29
    assert refusal_of(raw, TreeLimits(29)) == "TREE_FEATURE_RANGE"
    wide = raw_tree([299, 65535, 65535], [0.5], flags=WIDE)
    assert refusal_of(wide, TreeLimits(299)) == "TREE_FEATURE_RANGE"


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), float("-inf"), -float("nan")])
def test_d9_threshold_that_is_not_finite_is_refused(threshold):
    assert refusal_of(raw_tree([3, 255, 255], [threshold])) == "TREE_THRESHOLD"


@pytest.mark.parametrize("value", [float("nan"), -1e-300, 1.0000000000000002, float("inf")])
def test_d10_leaf_value_outside_a_probability_is_refused(value):
    assert refusal_of(raw_tree([3, 255, 255], [0.5], [0.5, value], flags=PROBABILITIES)) == "TREE_LEAF_VALUE"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(raw_tree([3, 255, 255], [-0.0]), id="threshold minus zero"),
        pytest.param(raw_tree([3, 255, 255], [1.0], [-0.0, 0.5], flags=PROBABILITIES), id="value minus zero"),
        pytest.param(
            raw_tree([3, 255, 255], [1.0], [0.0, 1.0], flags=PROBABILITIES), id="bits written as floats"
        ),
        pytest.param(raw_tree([3, 65535, 65535], [1.0], flags=WIDE), id="needlessly wide"),
        pytest.param(raw_tree([65535], [], flags=WIDE), id="wide leaf"),
        pytest.param(raw_tree([3, 255, 255], [1.0], b"\x00", b"\x00", MISSING), id="empty missing bitmap"),
        pytest.param(raw_tree([255], [], b"\x00", b"", MISSING), id="missing bitmap of a leaf"),
        pytest.param(raw_tree([3, 255, 255], [1.0], b"\x04"), id="leaf padding"),
        pytest.param(raw_tree([3, 255, 255], [1.0], b"\x00", b"\x02", MISSING), id="missing padding"),
        pytest.param(
            raw_tree([3, 255, 255], [1.0], b"\x00", b"\x81", MISSING), id="missing padding, high bit"
        ),
    ],
)
def test_b7_second_spelling_of_a_tree_is_refused(raw):
    assert refusal_of(raw) == "TREE_NOT_CANONICAL"


def chain(length):
    return raw_tree([0] * length + [255] * (length + 1), [0.5] * length, bytes((length + 8) // 8))


def test_d21_nodes_and_depth_just_under_and_over_each_limit():
    limits = TreeLimits(1, max_internal=9, max_depth=8)
    assert Tree.from_bytes(chain(8), limits).depth == 8
    assert refusal_of(chain(9), limits) == "TREE_TOO_DEEP"
    assert refusal_of(chain(10), limits) == "TREE_TOO_MANY_NODES"


def test_d11_chain_of_ten_thousand_is_refused_quickly(processor_seconds):
    raw, limits = chain(10_000), TreeLimits(1, max_internal=20_000)
    assert refusal_of(raw) == "TREE_TOO_MANY_NODES"
    assert refusal_of(raw, limits) == "TREE_TOO_DEEP"
    assert processor_seconds(lambda: (refusal_of(raw), refusal_of(raw, limits))) < 0.5


def test_d12_header_that_announces_the_most_nodes_costs_nothing(processor_seconds):
    raw = b"\x01\x07\xff\xff" + bytes(60)
    assert refusal_of(raw, FORMAT_LIMITS) == "TREE_LENGTH"
    assert refusal_of(raw) == "TREE_TOO_MANY_NODES"
    assert processor_seconds(lambda: (refusal_of(raw, FORMAT_LIMITS), refusal_of(raw))) < 0.05


def test_d12_a_megabyte_of_nodes_is_refused_quickly(processor_seconds):
    raw = b"\x01\x00\xff\xff" + b"\x00" * (1 << 20)
    assert refusal_of(raw, FORMAT_LIMITS) == "TREE_LENGTH"
    assert processor_seconds(lambda: refusal_of(raw, FORMAT_LIMITS)) < 0.05
