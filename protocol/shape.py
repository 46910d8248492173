"""Arrays with any numbering of children, checked and put into preorder.

Input here is as hostile as bytes are: it may loop, share nodes, point outside or be a chain of any length.
The walk is a loop that visits each node once, and it ends at the first lie.
"""

import math
from collections.abc import Sequence

from protocol import wire
from protocol.errors import TreeError
from protocol.limits import TreeLimits

NO_CHILD = -1


def canonical_bytes(  # noqa: PLR0917
    feature: Sequence[int],
    threshold: Sequence[float],
    left: Sequence[int],
    right: Sequence[int],
    value: Sequence[float],
    missing_left: Sequence[int] | None,
    limits: TreeLimits,
) -> tuple[bytes, int]:
    """Return the byte string of the tree that hangs from node 0, and its depth."""
    n_nodes = len(feature)
    order: list[int] = []
    thresholds: list[float] = []
    values: list[float] = []
    missing = 0
    deepest = 0
    highest = 0
    seen = bytearray(n_nodes)
    pending = [(0, 0)]
    while pending:
        node, depth = pending.pop()
        if seen[node]:
            raise _reached_twice(node, left, right)
        seen[node] = 1
        left_child, right_child = left[node], right[node]
        if left_child == right_child == NO_CHILD:
            order.append(-1)
            values.append(_leaf_value(value[node], node))
            deepest = max(deepest, depth)
            continue
        if depth >= limits.max_depth:
            raise TreeError("TREE_TOO_DEEP", f"node {node} lies deeper than {limits.max_depth}")
        _check_children(node, left_child, right_child, n_nodes)
        split = feature[node]
        if not 0 <= split < limits.n_features:
            raise TreeError("TREE_FEATURE_RANGE", f"feature {split} of {limits.n_features} at node {node}")
        highest = max(highest, split)
        limit = threshold[node]
        if not math.isfinite(limit):
            raise TreeError("TREE_THRESHOLD", f"the threshold of node {node} is {limit}")
        if missing_left is not None and missing_left[node]:
            missing |= 1 << len(thresholds)
        order.append(split)
        # Adding zero turns -0.0 into 0.0: both send the same rows left, so they are one tree.
        thresholds.append(limit + 0.0)
        pending.append((right_child, depth + 1))
        pending.append((left_child, depth + 1))
    if len(order) != n_nodes:
        raise TreeError("TREE_UNREACHABLE", f"node {seen.index(0)} does not hang from the root")
    wide = highest >= wire.NARROW_LEAF
    leaf = wire.WIDE_LEAF if wide else wire.NARROW_LEAF
    features = [leaf if split < 0 else split for split in order]
    return wire.encode(features, thresholds, values, missing, wide=wide), deepest


def _check_children(node: int, left: int, right: int, n_nodes: int) -> None:
    if NO_CHILD in (left, right):
        raise TreeError("TREE_ONE_CHILD", f"node {node} has one child")
    for child in (left, right):
        if not 0 <= child < n_nodes:
            raise TreeError("TREE_CHILD_RANGE", f"child {child} of node {node} is not one of {n_nodes} nodes")
        if child == node:
            raise TreeError("TREE_SELF_CHILD", f"node {node} is its own child")


def _leaf_value(value: float, node: int) -> float:
    if not 0.0 <= value <= 1.0:
        raise TreeError("TREE_LEAF_VALUE", f"leaf {node} holds {value}")
    return value + 0.0


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
