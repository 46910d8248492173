"""Trees and rows that the tests of this package share."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from learning.rows import Rows
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

MakeTree = Callable[..., Tree]


def grow(
    rng: np.random.Generator,
    internal: int,
    n_features: int = 4,
    leaves: Sequence[float] = (0.0, 1.0),
    chain: bool = False,
) -> Tree:
    feature, threshold, left, right, value = [-1], [0.0], [-1], [-1], [0.0]
    open_leaves = [0]
    for _ in range(internal):
        at = len(open_leaves) - 1 if chain else int(rng.integers(len(open_leaves)))
        node = open_leaves.pop(at)
        feature[node], threshold[node] = int(rng.integers(n_features)), float(rng.normal())
        left[node], right[node] = len(feature), len(feature) + 1
        open_leaves += [len(feature), len(feature) + 1]
        feature += [-1, -1]
        threshold += [0.0, 0.0]
        left += [-1, -1]
        right += [-1, -1]
        value += [float(rng.choice(leaves)), float(rng.choice(leaves))]
    return Tree.from_arrays(feature, threshold, left, right, value)


@pytest.fixture
def make_tree() -> MakeTree:
    return grow


@pytest.fixture
def leaf() -> Callable[[float], Tree]:
    return lambda value: Tree.from_arrays([-1], [0.0], [-1], [-1], [value])


@pytest.fixture
def random_trees() -> Callable[..., list[Tree]]:
    def make(count: int, seed: int = 0, largest: int = 20, n_features: int = 4) -> list[Tree]:
        rng = np.random.default_rng(seed)
        return [grow(rng, int(rng.integers(1, largest + 1)), n_features) for _ in range(count)]

    return make


@pytest.fixture
def estimators() -> Callable[[Sequence[Tree]], list[Estimator]]:
    def name(trees: Sequence[Tree], creator: str = "node00", first: int = 0) -> list[Estimator]:
        return [Estimator(EstimatorId(creator, first + i), tree) for i, tree in enumerate(trees)]

    return name


@pytest.fixture
def make_rows() -> Callable[..., Rows]:
    def make(seed: int = 0, n: int = 300, d: int = 6, missing: float = 0.0, anomalies: bool = True) -> Rows:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 2.0) & anomalies
        X[rng.random(X.shape) < missing] = np.nan
        return Rows.of(X, y)

    return make
