"""What the benchmark holds the ranking against runs in the same process: no figure is from elsewhere."""

import numpy as np
import pytest

from bench import _naive
from learning import kernel
from learning.rows import Rows
from protocol.trees.tree import Tree


def test_the_ranking_of_the_public_code_goes_by_labels(make_rows, random_trees):
    X = make_rows(d=4).X
    rows = Rows.of(X, X[:, 0] > 0)
    telling = Tree.from_arrays([0, -1, -1], [0.0, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [0.0, 0.0, 1.0])
    trees = [*random_trees(5), telling]
    assert _naive.by_regression(trees, rows, 1) == [5]
    assert len(_naive.by_regression(trees, rows, 3)) == 3


def test_the_slow_rankings_of_the_benchmark_are_the_fast_ones(random_trees):
    trees = random_trees(30)
    K = kernel.gram(trees)
    assert np.array(_naive.gram([_naive.listed(tree) for tree in trees])) == pytest.approx(K, rel=1e-12)
    assert _naive.p_greedy(K, 10) == kernel.p_greedy(K, 10)
