"""Rankings as they are defined: the kernel's in plain Python and repeated solves, and the public code's.

The code that the paper's authors published ranks by labels instead of the kernel: ten regressions of a node's
labels on what the trees say of its rows, in a random order of the rows each, and the squares of the mean
weights. It is written anew here, from that description.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learning.predict import Predictor
from learning.rows import Rows
from protocol.trees.tree import Tree

Listed = tuple[list[int], list[float], list[int], list[int]]


def listed(tree: Tree) -> Listed:
    """Return the tree as Python lists, on which plain loops run fastest."""
    return tree.feature.tolist(), tree.threshold.tolist(), tree.left.tolist(), tree.right.tolist()


def gram(trees: Sequence[Listed]) -> list[list[float]]:
    """Return k for all pairs by double loop and recursion, each pair once."""
    matrix = [[0.0] * len(trees) for _ in trees]
    for i, a in enumerate(trees):
        for j in range(i, len(trees)):
            matrix[i][j] = matrix[j][i] = kernel(a, trees[j])
    return matrix


def kernel(a: Listed, b: Listed) -> float:
    """Return k of two trees."""
    feature_a, x_a, left_a, right_a = a
    feature_b, x_b, left_b, right_b = b

    def node(v: int, w: int) -> float:
        if feature_a[v] < 0 or feature_a[v] != feature_b[w]:
            return 0.0
        return (1.0 + node(left_a[v], left_b[w])) * (1.0 + node(right_a[v], right_b[w]))

    total = 0.0
    for v, s in enumerate(feature_a):
        if s < 0:
            continue
        for w, t in enumerate(feature_b):
            if s == t:
                total += x_a[v] * x_b[w] * node(v, w)
    return total


def p_greedy(K: NDArray[np.float64], k: int) -> list[int]:
    """Return the order by solving the Gaussian process anew for every choice."""
    chosen: list[int] = []
    diagonal = np.diagonal(K)
    while len(chosen) < k:
        variance = diagonal.copy()
        if chosen:
            known = K[np.ix_(chosen, chosen)]
            for i in range(len(K)):
                variance[i] -= K[i, chosen] @ np.linalg.solve(known, K[chosen, i])
        candidates = variance > 1e-12 * diagonal
        candidates[chosen] = False
        if not candidates.any():
            break
        chosen.append(int(np.argmax(np.where(candidates, variance, -1.0))))
    return chosen


def by_regression(trees: Sequence[Tree], rows: Rows, k: int, repeats: int = 10) -> list[int]:
    """Return the k trees of greatest squared mean weight in linear regressions on the node's own rows."""
    said = np.column_stack([Predictor.of([tree]).scores(rows) for tree in trees])
    rng = np.random.default_rng(0)
    weights = []
    for _ in range(repeats):
        order = rng.permutation(len(rows))
        design = np.column_stack([np.ones(len(rows)), said[order]])
        weights.append(np.linalg.lstsq(design, rows.y[order].astype(np.float64), rcond=None)[0][1:])
    return [int(i) for i in np.argsort(-(np.mean(weights, axis=0) ** 2), kind="stable")[:k]]
