"""Trees made to break the ranking: it stays finite, equal in both forms and quick, or refuses them."""

import numpy as np
import pytest

from learning.compiled import implementation
from learning.errors import KernelError
from learning.kernel import MAX_INTERNAL, check_rankable, gram, p_greedy
from protocol.trees.tree import Tree


def complete(depth: int, threshold: float) -> Tree:
    internal = 2**depth - 1
    nodes = 2 * internal + 1
    parents = np.arange(internal)
    left, right = np.full(nodes, -1), np.full(nodes, -1)
    left[:internal], right[:internal] = 2 * parents + 1, 2 * parents + 2
    feature = np.where(np.arange(nodes) < internal, 0, -1)
    return Tree.from_arrays(feature, np.full(nodes, threshold), left, right, np.zeros(nodes))


def chain(length: int, threshold: float, to_left: bool = True) -> Tree:
    """A tree that is one long path; even nodes carry on, odd ones are leaves."""
    nodes = 2 * length + 1
    feature = np.array([0, -1] * length + [-1])
    inner, outer = np.full(nodes, -1), np.full(nodes, -1)
    inner[: 2 * length : 2] = np.arange(2, nodes, 2)
    outer[: 2 * length : 2] = np.arange(1, nodes, 2)
    left, right = (inner, outer) if to_left else (outer, inner)
    return Tree.from_arrays(feature, np.full(nodes, threshold), left, right, np.zeros(nodes))


def check_both_forms(trees: list[Tree]) -> np.ndarray:
    K = gram(trees)
    assert np.isfinite(K).all()
    if implementation() == "compiled":
        assert gram(trees, form="numpy").tobytes() == K.tobytes()
    return K


def test_d12_identical_trees_of_255_nodes_cost_one_tree(processor_seconds):
    trees = [complete(8, 1.0)] * 240
    K = check_both_forms(trees)
    assert (K[0, 0] == K).all()
    assert p_greedy(K, 50) == list(range(50))
    assert processor_seconds(lambda: p_greedy(check_both_forms(trees), 50)) < 5


@pytest.mark.parametrize("to_left", [True, False])
def test_d11_deep_chains_stay_finite(to_left):
    trees = [chain(255, 1.0 + i / 7, to_left) for i in range(6)]
    K = check_both_forms(trees)
    assert p_greedy(K, 6)[0] == 5


def test_d11_chain_as_long_as_the_kernel_takes_is_ranked_without_recursion():
    assert np.isfinite(gram([chain(MAX_INTERNAL, 1.0)])).all()


def test_d12_a_tree_beyond_the_kernel_is_refused():
    with pytest.raises(KernelError):
        check_rankable(chain(MAX_INTERNAL + 1, 1.0))


def test_d12_a_bushy_tree_whose_subtrees_overflow_is_refused():
    with pytest.raises(KernelError) as refusal:
        gram([complete(11, 3.0), complete(3, 1.0)])
    assert refusal.value.code == "KERNEL_OVERFLOW"


@pytest.mark.parametrize("threshold", [1e300, -1e300, 3.5e38])
def test_d9_thresholds_beyond_every_value_weigh_nothing(threshold):
    K = check_both_forms([complete(8, threshold), complete(8, 1.0)])
    assert K[0].tolist() == [0.0, 0.0]
    assert p_greedy(K, 2) == [1, 0]


def test_d9_thresholds_as_large_as_values_can_be_stay_finite():
    K = check_both_forms([complete(8, 3e38), complete(8, -3e38), complete(8, 1e-300)])
    assert sorted(p_greedy(K, 3)) == [0, 1, 2]


def test_shapes_that_share_one_feature_agree_in_both_forms(make_tree):
    rng = np.random.default_rng(0)
    check_both_forms([make_tree(rng, 255, n_features=1) for _ in range(8)])


def test_near_duplicates_do_not_make_the_order_depend_on_the_form(make_tree):
    rng = np.random.default_rng(1)
    base = make_tree(rng, 20)
    trees = [base]
    for i in range(30):
        threshold = base.threshold * (1 + i * 2.0**-50)
        trees.append(Tree.from_arrays(base.feature, threshold, base.left, base.right, base.value))
    K = check_both_forms(trees)
    order = p_greedy(K, len(trees))
    assert sorted(order) == list(range(len(trees)))
    if implementation() == "compiled":
        assert p_greedy(K, len(trees), form="numpy") == order
