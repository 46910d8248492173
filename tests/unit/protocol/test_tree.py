"""Arrays at the door: what scikit-learn builds is accepted, what lies is refused."""

import copy
import pickle
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from protocol.errors import TreeError
from protocol.trees.tree import FORMAT_LIMITS, Tree, TreeLimits

LIMITS = TreeLimits(n_features=3)

# Breadth-first numbering, with the marks and statistics scikit-learn leaves where an array has no meaning.
GOOD = {
    "feature": [1, 0, -2, -2, -2],
    "threshold": [0.5, -1.25, -2.0, -2.0, -2.0],
    "left": [1, 3, -1, -1, -1],
    "right": [2, 4, -1, -1, -1],
    "value": [0.3, 0.4, 1.0, 0.25, 0.0],
    "missing_left": [1, 0, 0, 0, 0],
}


def build(limits=LIMITS, **changes):
    return Tree.from_arrays(**(GOOD | changes), limits=limits)


def refusal_of(limits=LIMITS, **changes):
    with pytest.raises(TreeError) as refusal:
        build(limits, **changes)
    return refusal.value.code


def chain(length):
    """A tree of `length` splits whose left children are all splits."""
    internal = np.arange(length)
    leaves = np.full(length + 1, -1)
    return {
        "feature": np.concatenate((np.zeros(length, int), leaves)),
        "threshold": np.zeros(2 * length + 1),
        "left": np.concatenate((internal + 1, leaves)),
        "right": np.concatenate((internal + length + 1, leaves)) if length else leaves,
        "value": np.zeros(2 * length + 1),
        "missing_left": None,
    }


def test_any_numbering_becomes_preorder():
    tree = build()
    assert (tree.n_nodes, tree.n_internal, tree.depth) == (5, 2, 2)
    assert tree.feature.tolist() == [1, 0, -1, -1, -1]
    assert tree.threshold.tolist() == [0.5, -1.25, 0.0, 0.0, 0.0]
    assert tree.left.tolist() == [1, 2, -1, -1, -1]
    assert tree.right.tolist() == [4, 3, -1, -1, -1]
    assert tree.value.tolist() == [0.0, 0.0, 0.25, 0.0, 1.0]
    assert tree.missing_left.tolist() == [True, False, False, False, False]
    assert tree.is_leaf.tolist() == [False, False, True, True, True]


def test_preorder_arrays_are_a_fixed_point():
    tree = build()
    again = Tree.from_arrays(
        tree.feature, tree.threshold, tree.left, tree.right, tree.value, tree.missing_left, LIMITS
    )
    assert again == tree


def test_arrays_have_the_documented_types_and_are_read_only():
    tree = build()
    expected = {
        "feature": np.int32,
        "threshold": np.float64,
        "left": np.int32,
        "right": np.int32,
        "missing_left": np.bool_,
        "value": np.float64,
        "is_leaf": np.bool_,
    }
    for name, dtype in expected.items():
        array = getattr(tree, name)
        assert array.dtype == dtype
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(AttributeError):
            setattr(tree, name, array)


def test_a_tree_is_a_value():
    tree, same, other = build(), build(), build(threshold=[0.75, -1.25, 0, 0, 0])
    assert tree == same
    assert hash(tree) == hash(same)
    assert tree != other
    assert tree != tree.to_bytes()
    assert tree.digest == same.digest != other.digest
    with pytest.raises(AttributeError):
        tree.depth = 7
    with pytest.raises(AttributeError):
        del tree.depth
    with pytest.raises(TypeError):
        Tree()


def test_copies_for_worker_processes_pass_the_same_door():
    tree = build()
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert copy.deepcopy(tree) == tree


def test_later_changes_to_the_input_do_not_reach_the_tree():
    arrays = {name: np.array(values) for name, values in GOOD.items()}
    tree = Tree.from_arrays(**arrays, limits=LIMITS)
    before = tree.to_bytes()
    arrays["threshold"][0] = 9.0
    assert tree.to_bytes() == before
    assert tree.threshold[0] == 0.5


def test_d13_a_single_leaf_is_a_tree():
    tree = Tree.from_arrays(
        [-2], [-2.0], [-1], [-1], [0.0], limits=TreeLimits(1, max_internal=0, max_depth=0)
    )
    assert (tree.n_nodes, tree.n_internal, tree.depth) == (1, 0, 0)
    assert tree.to_bytes() == b"\x01\x00\x01\x00\xff\x00"


def test_minus_zero_is_written_as_zero():
    tree = build(threshold=[-0.0, 0.0, 0, 0, 0], value=[0, 0, -0.0, 0.5, 0])
    assert tree == build(threshold=[0.0, 0.0, 0, 0, 0], value=[0, 0, 0.0, 0.5, 0])
    assert not np.signbit(tree.threshold).any()
    assert not np.signbit(tree.value).any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.int8])
def test_other_number_types_are_widened(dtype):
    threshold = np.array([2, -1, 0, 0, 0], dtype=dtype)
    assert build(threshold=threshold) == build(threshold=[2.0, -1.0, 0, 0, 0])


def test_d1_cycle_is_refused():
    assert refusal_of(left=[1, 0, -1, -1, -1]) == "TREE_CYCLE"
    assert refusal_of(right=[2, 0, -1, -1, -1]) == "TREE_CYCLE"


def test_d1_cycle_below_the_root_is_refused():
    code = refusal_of(
        feature=[0] * 5,
        threshold=[0] * 5,
        left=[1, 2, 1, -1, -1],
        right=[3, 4, 3, -1, -1],
        value=[0] * 5,
        missing_left=None,
    )
    assert code == "TREE_CYCLE"


def test_d2_self_child_is_refused():
    assert refusal_of(left=[0, 3, -1, -1, -1]) == "TREE_SELF_CHILD"
    assert refusal_of(right=[2, 1, -1, -1, -1]) == "TREE_SELF_CHILD"


def test_node_with_two_parents_is_refused():
    assert refusal_of(right=[3, 4, -1, -1, -1]) == "TREE_SHARED_CHILD"
    assert refusal_of(left=[1, 3, -1, -1, -1], right=[1, 4, -1, -1, -1]) == "TREE_SHARED_CHILD"


def test_d4_unreachable_node_is_refused():
    assert refusal_of(left=[-1, 3, -1, -1, -1], right=[-1, 4, -1, -1, -1]) == "TREE_UNREACHABLE"
    assert refusal_of(left=[1, -1, -1, -1, -1], right=[2, -1, -1, 3, 4]) == "TREE_UNREACHABLE"


@pytest.mark.parametrize("child", [5, 6, 2**31 - 1, -2, -(2**31)])
def test_d5_child_out_of_range_is_refused(child):
    assert refusal_of(left=[child, 3, -1, -1, -1]) == "TREE_CHILD_RANGE"
    assert refusal_of(right=[child, 4, -1, -1, -1]) == "TREE_CHILD_RANGE"


def test_d6_one_child_is_refused():
    assert refusal_of(left=[-1, 3, -1, -1, -1]) == "TREE_ONE_CHILD"
    assert refusal_of(right=[2, -1, -1, -1, -1]) == "TREE_ONE_CHILD"


@pytest.mark.parametrize("feature", [-1, -2, 3, 2**31 - 1, -(2**63)])
def test_d7_feature_out_of_range_is_refused(feature):
    assert refusal_of(feature=[1, feature, 0, 0, 0]) == "TREE_FEATURE_RANGE"


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf])
def test_d9_threshold_that_is_not_finite_is_refused(threshold):
    assert refusal_of(threshold=[0.5, threshold, 0, 0, 0]) == "TREE_THRESHOLD"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e-300, 1.0000000000000002, 2.0])
def test_d10_leaf_value_outside_a_probability_is_refused(value):
    assert refusal_of(value=[0, 0, 0, value, 0]) == "TREE_LEAF_VALUE"


def test_d11_depth_just_under_and_over_its_limit():
    limits = TreeLimits(1, max_internal=100, max_depth=7)
    assert build(limits, **chain(7)).depth == 7
    assert refusal_of(limits, **chain(8)) == "TREE_TOO_DEEP"


def test_d11_chain_of_ten_thousand_is_refused_quickly_and_carried_where_allowed(processor_seconds):
    limits, arrays = TreeLimits(1, max_internal=20_000), chain(10_000)
    assert refusal_of(limits, **arrays) == "TREE_TOO_DEEP"
    assert processor_seconds(lambda: refusal_of(limits, **arrays)) < 0.5
    tree = build(FORMAT_LIMITS, **chain(10_000))
    assert Tree.from_bytes(tree.to_bytes(), FORMAT_LIMITS) == tree
    assert tree.depth == 10_000
    assert tree.right[0] == 20_000


def test_d12_node_count_just_under_and_over_its_limit():
    limits = TreeLimits(1, max_internal=4)
    assert build(limits, **chain(4)).n_nodes == 9
    assert refusal_of(limits, **chain(5)) == "TREE_TOO_MANY_NODES"


@pytest.mark.parametrize("convert", [np.array, list])
def test_d12_a_million_nodes_are_refused_quickly(convert, processor_seconds):
    arrays = {name: None if array is None else convert(array) for name, array in chain(500_000).items()}
    for limits in (LIMITS, FORMAT_LIMITS):
        assert refusal_of(limits, **arrays) == "TREE_TOO_MANY_NODES"
        assert processor_seconds(partial(refusal_of, limits, **arrays)) < 0.5


class Unreadable(Sequence):
    """Long, and an error as soon as it is read."""

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        pytest.fail("an array of the wrong length was read")


def test_d12_long_array_beside_short_ones_is_not_read():
    assert refusal_of(value=Unreadable()) == "TREE_INPUT"
    assert refusal_of(feature=Unreadable()) == "TREE_TOO_MANY_NODES"


def test_walk_over_hostile_children_stays_linear(processor_seconds):
    # Every node points at the same two children, the shape that makes a walk without marks exponential.
    n_nodes = 2 * FORMAT_LIMITS.max_internal + 1
    child = np.minimum(np.arange(n_nodes) + 1, n_nodes - 1)
    arrays = chain(FORMAT_LIMITS.max_internal) | {"left": child, "right": child}

    def walk():
        with pytest.raises(TreeError):
            Tree.from_arrays(**arrays)

    assert processor_seconds(walk) < 2.0


def test_an_empty_tree_is_refused():
    assert refusal_of(**{name: [] for name in GOOD}) == "TREE_EMPTY"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"value": [0.0] * 4}, id="shorter"),
        pytest.param({"left": np.array([[1, 3, -1, -1, -1]])}, id="two-dimensional"),
        pytest.param({"value": np.zeros((5, 1, 2))}, id="class counts"),
        pytest.param({"feature": [1.0, 0.0, -2.0, -2.0, -2.0]}, id="fractional features"),
        pytest.param({"left": [1.0, 3.0, -1.0, -1.0, -1.0]}, id="fractional children"),
        pytest.param({"feature": [True, False, True, True, True]}, id="truth values as features"),
        pytest.param({"threshold": ["0.5"] * 5}, id="text"),
        pytest.param({"threshold": [None] * 5}, id="null"),
        pytest.param({"threshold": [0.5j] * 5}, id="complex"),
        pytest.param({"left": [2**70, 3, -1, -1, -1]}, id="beyond 64 bits"),
        pytest.param({"left": [[1, 2], 3, -1, -1, -1]}, id="ragged"),
        pytest.param({"missing_left": [0.5] * 5}, id="fractional truth"),
        pytest.param({"feature": 7}, id="a number"),
        pytest.param({"value": None}, id="nothing"),
        pytest.param({"value": np.float64(1.0)}, id="a numpy number"),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(changes):
    assert refusal_of(**changes) == "TREE_INPUT"


@pytest.mark.parametrize(
    "arguments",
    [
        (0,),
        (65_536,),
        (-1,),
        (3.0,),
        (True,),
        ("3",),
        (3, -1),
        (3, 32_768),
        (3, 255, -1),
        (3, 255, 32_768),
        (3, None),
    ],
)
def test_limits_the_format_cannot_hold_are_refused(arguments):
    with pytest.raises(TreeError) as refusal:
        TreeLimits(*arguments)
    assert refusal.value.code == "TREE_LIMITS"


def test_the_bytes_of_the_arrays_read_back_to_the_same_bytes():
    raw = Tree.from_arrays(*GOOD.values(), LIMITS).to_bytes()
    assert Tree.from_bytes(raw, LIMITS).to_bytes() == raw == build().to_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_scikit_learn_decide_the_same_rows_missing_values_included(seed):
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=300) > 1).astype(int)
    x[rng.random(x.shape) < 0.1] = np.nan
    fitted = DecisionTreeClassifier(min_samples_leaf=5, max_leaf_nodes=20, random_state=seed).fit(x, y)
    inner = fitted.tree_
    value = inner.value[:, 0, 1]
    tree = Tree.from_arrays(
        inner.feature,
        inner.threshold,
        inner.children_left,
        inner.children_right,
        value,
        inner.missing_go_to_left,
        TreeLimits(6),
    )
    tree = Tree.from_bytes(tree.to_bytes(), TreeLimits(6))
    assert tree.missing_left.any()
    assert tree.depth == fitted.get_depth()
    probabilities = fitted.predict_proba(x)[:, 1]
    for row, expected in zip(x, probabilities, strict=True):
        node = 0
        while not tree.is_leaf[node]:
            entry = row[tree.feature[node]]
            goes_left = tree.missing_left[node] if np.isnan(entry) else entry <= tree.threshold[node]
            node = tree.left[node] if goes_left else tree.right[node]
        assert tree.value[node] == expected
