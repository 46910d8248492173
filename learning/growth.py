"""Grow one tree with scikit-learn: by its compiled modules, or through its classes in another version."""

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.sklearn_modules import load_modules
from protocol.values import dataclass

CRITERIA = {"gini": "Gini", "entropy": "Entropy", "squared_error": "MSE"}
SPLITTERS = {"best": "BestSplitter", "random": "RandomSplitter"}


@dataclass(frozen=True)
class Growth:
    """How a tree is grown, in scikit-learn's words."""

    criterion: str
    splitter: str
    max_features: int
    min_samples_leaf: int
    max_depth: int
    max_leaf_nodes: int | None
    random_state: int

    @property
    def classifies(self) -> bool:
        """Whether leaves hold shares of labels, not means."""
        return self.criterion != "squared_error"


class Grown(NamedTuple):
    """A fitted tree, as the classes hold it: scikit-learn's arrays, and the labels if it is a classifier."""

    tree_: Any
    classes_: NDArray[np.int8] | None


def grow(X: NDArray[np.float32], y: NDArray[np.int8], weight: NDArray[np.float64], growth: Growth) -> Grown:
    """Return the tree that scikit-learn grows of these rows."""
    # scikit-learn's search for missing values refuses read-only rows.
    X = np.require(X, requirements=["C", "W"])
    way = through_modules if load_modules() else through_classes
    return way(X, y, weight, growth)


def through_classes(
    X: NDArray[np.float32], y: NDArray[np.int8], weight: NDArray[np.float64], growth: Growth
) -> Grown:
    """Grow a tree as everybody does."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: PLC0415

    kind = DecisionTreeClassifier if growth.classifies else DecisionTreeRegressor
    fitted = kind(**vars(growth)).fit(X, y, sample_weight=weight)
    return Grown(fitted.tree_, fitted.classes_ if growth.classifies else None)


def through_modules(
    X: NDArray[np.float32], y: NDArray[np.int8], weight: NDArray[np.float64], growth: Growth
) -> Grown:
    """Grow a tree with what the classes come down to, without their checks: `Rows` has made them."""
    # Not imported, which would load the packages that they are in.
    criteria, splitters, trees = (
        sys.modules[f"sklearn.tree.{name}"] for name in ("_criterion", "_splitter", "_tree")
    )
    rows, features = X.shape
    classes, numbers = np.unique(y, return_inverse=True)
    target = np.ascontiguousarray((numbers if growth.classifies else y).reshape(-1, 1), dtype=np.float64)
    values = np.array([len(classes) if growth.classifies else 1], dtype=np.intp)
    criterion = getattr(criteria, CRITERIA[growth.criterion])(1, values if growth.classifies else rows)
    leaf = growth.min_samples_leaf
    random_state = np.random.RandomState(growth.random_state)
    splitter = getattr(splitters, SPLITTERS[growth.splitter])(
        criterion, growth.max_features, leaf, 0.0, random_state, None
    )
    bounds = (splitter, max(2, 2 * leaf), leaf, 0.0, growth.max_depth)
    if growth.max_leaf_nodes is None:
        builder = trees.DepthFirstTreeBuilder(*bounds, 0.0)
    else:
        builder = trees.BestFirstTreeBuilder(*bounds, growth.max_leaf_nodes, 0.0)
    tree = trees.Tree(features, values, 1)
    missing = np.isnan(X).any(axis=0)
    builder.build(tree, X, target, weight, missing if missing.any() else None)
    return Grown(tree, classes if growth.classifies else None)
