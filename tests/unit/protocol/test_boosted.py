"""The boosted format at the door: one byte string per estimator, bounded numbers, no malformed trees."""

import gzip
import json
import pickle
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tree_arrays import arrays

from protocol import canonical
from protocol.errors import TreeError
from protocol.trees import kinds
from protocol.trees.boosted import Boosted
from protocol.trees.encoding_boosted import FORMAT, MAX_LEAF, MAX_TREES
from protocol.trees.limits import KIND_NAMES
from protocol.trees.tree import FORMAT_LIMITS, Tree, TreeLimits

FILES, PAGES = Path(__file__).parents[2] / "golden", Path(__file__).parents[3] / "docs/formats"
GOLDEN = json.loads((FILES / "boosted-v1.json").read_text(encoding="utf-8"))
LIMITS = TreeLimits(400, 60, 12, kind="boosted")
COLUMNS = ("feature", "threshold", "left", "right", "value", "missing_left")
MISSING = 32
LARGEST = float(np.finfo(np.float32).max)


def raw_model(bits: str, thresholds=(), values=(), *, flags=0, trees=1, base=0.5) -> bytes:
    """Write bytes as a forger would; bits as they are read, the first one first."""
    padded = bits.replace(" ", "")
    padded += "0" * (-len(padded) % 8)
    packed = bytes(int(padded[i : i + 8][::-1], 2) for i in range(0, len(padded), 8))
    return (
        struct.pack("<BBHd", FORMAT, flags, trees, base) + packed
        + struct.pack(f"<{len(thresholds)}f", *thresholds) + struct.pack(f"<{len(values)}d", *values)
    )  # fmt: skip


# A stump on x[3], then a leaf alone, then a stump on x[2]: shapes, features of two bits.
GOOD = raw_model("100 0 100 11 01", [0.5, 1.5], [-2.0, 3.0, 0.25, 1.0, -1.0], flags=1, trees=3)
STUMP = {"feature": [3, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1]}


def refusal_of(raw, limits=LIMITS):
    with pytest.raises(TreeError) as refusal:
        kinds.read(raw, limits)
    return refusal.value.code


def test_the_layout_is_that_of_the_specification():
    found = Boosted.from_bytes(GOOD, LIMITS)
    assert (found.n_trees, found.n_nodes, found.n_internal, found.depth, found.base) == (3, 7, 2, 1, 0.5)
    assert found.roots.tolist() == [0, 3, 4]
    assert found.feature.tolist() == [3, -1, -1, -1, 2, -1, -1]
    assert found.right.tolist() == [2, -1, -1, -1, 6, -1, -1]
    assert found.value.tolist() == [0, -2.0, 3.0, 0.25, 0, 1.0, -1.0]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (raw_model("100 1", [0.5], [np.nan, 1.0]), "BOOSTED_LEAF"),
        (raw_model("100 1", [0.5], [np.inf, 1.0]), "BOOSTED_LEAF"),
        (raw_model("100 1", [0.5], [1e308, 1.0]), "BOOSTED_LEAF"),
        (raw_model("100 1", [0.5], [-np.nextafter(MAX_LEAF, 999), 1.0]), "BOOSTED_LEAF"),
        (raw_model("0", [], [1.0], base=np.nan), "BOOSTED_BASE"),
        (raw_model("0", [], [1.0], base=1e308), "BOOSTED_BASE"),
        (raw_model("0", [], [1.0], base=-np.inf), "BOOSTED_BASE"),
        (raw_model("0" * 10_000, [], [0.0] * 10_000, trees=10_000), "BOOSTED_TREES"),
        (raw_model("0", [], [1.0], trees=0), "BOOSTED_TREES"),
        (raw_model("0" * 257, [], [0.0] * 257, trees=MAX_TREES + 1), "BOOSTED_TREES"),
        (raw_model("100 1", [np.nan], [0.0, 1.0]), "TREE_THRESHOLD"),
        (raw_model("100 1", [-np.inf], [0.0, 1.0]), "TREE_THRESHOLD"),
        (raw_model("100 1", [-0.0], [0.5, 1.0]), "TREE_NOT_CANONICAL"),
        (raw_model("100 1", [0.5], [-0.0, 1.0]), "TREE_NOT_CANONICAL"),
        (raw_model("0", [], [1.0], base=-0.0), "TREE_NOT_CANONICAL"),
        (raw_model("100 10", [0.5], [0.5, 1.0], flags=1), "TREE_NOT_CANONICAL"),
        (raw_model("100 1 1", [0.5], [0.5, 1.0]), "TREE_NOT_CANONICAL"),
        (raw_model("100 1 0", [0.5], [0.5, 1.0], flags=MISSING), "TREE_NOT_CANONICAL"),
        (raw_model("100 " + "1" * 9, [0.5], [0.5, 1.0], flags=8), "TREE_FEATURE_RANGE"),
        (raw_model("1" * 61 + "0" * 90), "TREE_TOO_MANY_NODES"),
        (raw_model("1" * 13 + "0" * 14 + "0" * 13, [0.5] * 13, [0.5] * 14), "TREE_TOO_DEEP"),
        (raw_model("1" * 7), "TREE_SHAPE"),
        (raw_model("0", [], [1.0], trees=200), "TREE_SHAPE"),
        (raw_model("0", [], [1.0], flags=16), "TREE_FLAGS"),
        (raw_model("0", [], [1.0], flags=64), "TREE_FLAGS"),
        (GOOD + b"\x00", "TREE_LENGTH"),
        (b"", "TREE_VERSION"),
        (bytes((FORMAT,)), "TREE_LENGTH"),
        (b"\x02\x00\x00", "TREE_VERSION"),
        (pickle.dumps([1]), "TREE_VERSION"),
        (gzip.compress(bytes(99), mtime=0), "TREE_VERSION"),
        ("text", "TREE_INPUT"),
    ],
    ids=lambda part: part if str(part).isupper() else "raw",
)  # fmt: skip
def test_d_what_is_no_boosted_estimator_is_refused(raw, code):
    assert refusal_of(raw) == code


def test_d12_a_megabyte_of_splits_costs_what_the_limit_allows():
    assert refusal_of(raw_model("1" * 8) + b"\xff" * (1 << 20)) == "TREE_TOO_MANY_NODES"


def test_d19_truncation_anywhere_is_refused():
    for length in range(len(GOOD)):
        assert refusal_of(GOOD[:length]) in {"TREE_VERSION", "TREE_LENGTH", "TREE_SHAPE"}


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        (STUMP | {"left": [1, 0, -1], "right": [2, 2, -1], "feature": [3, 3, -1]}, "TREE_CYCLE"),
        (STUMP | {"left": [0, -1, -1]}, "TREE_SELF_CHILD"),
        (STUMP | {"right": [1, -1, -1]}, "TREE_SHARED_CHILD"),
        (STUMP | {"right": [7, -1, -1]}, "TREE_CHILD_RANGE"),
        (STUMP | {"threshold": [np.nan, 0, 0]}, "TREE_THRESHOLD"),
        (STUMP | {"value": [0, np.nan, 1]}, "BOOSTED_LEAF"),
        (STUMP | {"value": [0, 1e308, 1]}, "BOOSTED_LEAF"),
        (STUMP | {"feature": [400, -1, -1]}, "TREE_FEATURE_RANGE"),
    ],
)
def test_d_arrays_that_lie_are_refused(tree, code):
    with pytest.raises(TreeError) as refusal:
        Boosted.from_arrays(0.0, [{"value": [0, 0, 1.0]} | STUMP, {"value": [0, 0, 1.0]} | tree], LIMITS)
    assert refusal.value.code == code


def test_the_limit_of_splits_is_for_all_trees_together():
    stump = STUMP | {"value": [0, 0.5, 1.0]}
    assert Boosted.from_arrays(0.0, [stump] * 60, LIMITS).n_internal == 60
    with pytest.raises(TreeError, match="nodes are more than 1"):
        Boosted.from_arrays(0.0, [stump] * 61, LIMITS)


def test_d19_a_process_reads_its_own_kind_alone():
    single = Tree.from_arrays([-1], [0.0], [-1], [-1], [1.0])
    assert refusal_of(single.to_bytes()) == "TREE_VERSION"
    assert refusal_of(GOOD, replace(LIMITS, kind="tree", format=2)) == "TREE_VERSION"
    kinds.check_format(kinds.read(GOOD, LIMITS), LIMITS)
    with pytest.raises(TreeError) as caught:
        kinds.check_format(kinds.read(GOOD, LIMITS), replace(LIMITS, kind="tree"))
    assert caught.value.code == "TREE_VERSION"


def test_every_name_of_a_kind_is_registered():
    assert tuple(kinds.KINDS) == KIND_NAMES
    for wrong in ("forest", "", None, ["tree"]):
        with pytest.raises(TreeError):
            TreeLimits(3, kind=wrong)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_kind_has_golden_files_with_a_page_of_their_format(kind):
    found = [path.stem for path in sorted(FILES.glob("*.json")) if holds(path, kind)]
    assert found
    assert [name for name in found if not (PAGES / f"{name}.md").is_file()] == []


def holds(path, kind):
    """Whether a golden file has estimators of a kind."""
    items = json.loads(path.read_text(encoding="utf-8"))
    for item in items if isinstance(items, list) else []:
        with suppress(TreeError, ValueError):
            kinds.read(bytes.fromhex(item["bytes"]), TreeLimits(400, kind=kind, format=2))
            return True
    return False


def made(trees, base=0.25):
    columns = [dict(zip(COLUMNS, tree, strict=True)) for tree in trees]
    for tree in columns:
        tree["threshold"] = np.clip(tree["threshold"], -LARGEST, LARGEST)
    return Boosted.from_arrays(base, columns, LIMITS)


def parts_of(found):
    """The arrays of each tree by itself, numbered from its own root."""
    ends = [*found.roots[1:].tolist(), found.n_nodes]
    for first, end in zip(found.roots.tolist(), ends, strict=True):
        part = {name: getattr(found, name)[first:end] for name in COLUMNS}
        for side in ("left", "right"):
            part[side] = np.where(part[side] >= 0, part[side] - first, -1)
        yield part


@settings(max_examples=40)
@given(st.lists(arrays(), min_size=1, max_size=4), st.data())
def test_any_mutation_is_refused_or_is_another_estimator_in_its_own_spelling(trees, data):
    found = made(trees)
    assert pickle.loads(pickle.dumps(found)) == found
    raw = bytearray(found.to_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        again = Boosted.from_bytes(bytes(raw), LIMITS)
    except TreeError:
        assert bytes(raw) != found.to_bytes()
        return
    assert Boosted.from_arrays(again.base, list(parts_of(again)), LIMITS).to_bytes() == bytes(raw)


def read_by_the_page(raw):
    """Read an estimator by docs/formats/boosted-v1.md in the plainest way, with no code of the package."""
    flags, trees, base = raw[1], int.from_bytes(raw[2:4], "little"), struct.unpack_from("<d", raw, 4)[0]
    width = (flags & 15) + 1
    bits = [raw[12 + k // 8] >> k % 8 & 1 for k in range(8 * (len(raw) - 12))]
    place = 0
    for _ in range(trees):
        waiting = 1
        while waiting:
            waiting += 1 if bits[place] else -1
            place += 1
    n_internal = sum(bits[:place])
    n_leaves, nodes = place - n_internal, iter(bits[:place])
    features = []
    for _ in range(n_internal):
        features.append(sum(bits[place + k] << k for k in range(width)))
        place += width
    lefts = bits[place : place + n_internal] if flags & 32 else [0] * n_internal
    place += n_internal if flags & 32 else 0
    start = 12 + (place + 7) // 8
    splits = iter(zip(features, struct.unpack_from(f"<{n_internal}f", raw, start), lefts, strict=True))
    leaves = iter(struct.unpack_from(f"<{n_leaves}d", raw, start + 4 * n_internal))

    def subtree():
        if not next(nodes):
            return next(leaves)
        feature, threshold, left = next(splits)
        return [feature, threshold, bool(left), subtree(), subtree()]

    return [base, *(subtree() for _ in range(trees))]


def nested(tree, node=0):
    if tree["left"][node] == -1:
        return float(tree["value"][node])
    below = [nested(tree, tree[side][node]) for side in ("left", "right")]
    return [tree["feature"][node], float(tree["threshold"][node]), tree["missing_left"][node], *below]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_golden_estimators_keep_their_bytes_and_the_page_is_enough_to_read_them(case):
    trees = [dict(tree) for tree in case["trees"]]
    for tree in trees:
        for name in ("threshold", "value"):
            tree[name] = [canonical.parse_float(text) for text in tree[name]]
    base = canonical.parse_float(case["base"])
    found = Boosted.from_arrays(base, trees, replace(FORMAT_LIMITS, kind="boosted"))
    assert found.to_bytes().hex() == case["bytes"]
    assert str(found.digest) == case["digest"]
    assert (found.n_nodes, found.depth) == (case["n_nodes"], case["depth"])
    assert kinds.read(bytes.fromhex(case["bytes"]), replace(FORMAT_LIMITS, kind="boosted")) == found
    assert read_by_the_page(bytes.fromhex(case["bytes"])) == [base, *map(nested, trees)]
