"""The ranking as its definitions read, plain Python and repeated solves: what others are measured by."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
