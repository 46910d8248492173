"""Arrays with any numbering of children, checked and put into preorder.

Input here is as hostile as bytes are: it may loop, share nodes, point outside or be a chain of any length.
The walk is a loop that visits each node once, and it ends at the first lie.
"""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from protocol.errors import TreeError
from protocol.trees import encoding
from protocol.trees.limits import TreeLimits

NO_CHILD = -1


class Walked(NamedTuple):
    """The parts of a tree in preorder; the values of leaves are as they were given."""

    features: list[int]
    thresholds: list[float]
    values: list[float]
    missing: int
    depth: int


def walk(  # noqa: PLR0917
    feature: Sequence[int],
    threshold: Sequence[float],
    left: Sequence[int],
    right: Sequence[int],
    value: Sequence[float],
    missing_left: Sequence[int] | None,
    limits: TreeLimits,
) -> Walked:
    """Return the parts of the tree that hangs from node 0."""
    n_nodes = len(feature)
    max_depth, n_features = limits.max_depth, limits.n_features
    order: list[int] = []
    thresholds: list[float] = []
    values: list[float] = []
    leaf_depths: list[int] = []
    missing = 0
    seen = bytearray(n_nodes)
    pending: list[tuple[int, int]] = []
    node, depth = 0, 0
    while True:
        if seen[node]:
            raise _reached_twice(node, left, right)
        seen[node] = 1
        left_child, right_child = left[node], right[node]
        if left_child == right_child == NO_CHILD:
            order.append(encoding.NO_FEATURE)
            # Adding zero turns -0.0 into 0.0: as values and as thresholds they say the same.
            values.append(value[node] + 0.0)
            leaf_depths.append(depth)
            if not pending:
                break
            node, depth = pending.pop()
            continue
        depth += 1
        if depth > max_depth:
            raise TreeError("TREE_TOO_DEEP", f"the tree is deeper than {max_depth}")
        if not (
            0 <= left_child < n_nodes and 0 <= right_child < n_nodes and left_child != node != right_child
        ):
            raise _wrong_child(node, left_child, right_child, n_nodes)
        split = feature[node]
        if not 0 <= split < n_features:
            raise TreeError("TREE_FEATURE_RANGE", f"feature {split} of {n_features} at node {node}")
        limit = threshold[node]
        if not isfinite(limit):
            raise TreeError("TREE_THRESHOLD", f"the threshold of node {node} is {limit}")
        if missing_left is not None and missing_left[node]:
            missing |= 1 << len(thresholds)
        order.append(split)
        thresholds.append(limit + 0.0)
        pending.append((right_child, depth))
        node = left_child
    if len(order) != n_nodes:
        raise TreeError("TREE_UNREACHABLE", f"node {seen.index(0)} does not hang from the root")
    return Walked(order, thresholds, values, missing, max(leaf_depths))


def _wrong_child(node: int, left: int, right: int, n_nodes: int) -> TreeError:
    if NO_CHILD in (left, right):
        return TreeError("TREE_ONE_CHILD", f"node {node} has one child")
    if node in (left, right):
        return TreeError("TREE_SELF_CHILD", f"node {node} is its own child")
    return TreeError("TREE_CHILD_RANGE", f"children {left} and {right} of node {node} of {n_nodes}")


def _reached_twice(node: int, left: Sequence[int], right: Sequence[int]) -> TreeError:
    """Say whether the node is its own descendant or only has two parents: the walk alone cannot tell."""
    below: set[int] = set()
    pending = [left[node], right[node]]
    while pending:
        child = pending.pop()
        if child == node:
            return TreeError("TREE_CYCLE", f"node {node} is its own descendant")
        if 0 <= child < len(left) and child not in below:
            below.add(child)
            pending += (left[child], right[child])
    return TreeError("TREE_SHARED_CHILD", f"node {node} has two parents")
