"""The kernel's arithmetic in numpy: the readable statement of what _kernel.c does, and its stand-in.

Both forms add the same numbers in the same order, so they give the same bits and every machine ranks alike,
whether or not it could build the extension.

Writing k_node(v, w) = decay * (1 + a) * (1 + b), where a and b are the k_node of the left and of the right
children, the Gram matrix is the sum of two parts:

- every pair of nodes with equal labels contributes x(v) x(w) * decay: a product of (trees x labels) sums;
- the few pairs whose left or right children have equal labels too add x(v) x(w) * decay * (a + b + a b)
  more.

Only the second part needs the recursion. It runs over pairs found through sorted keys (label, child's
label), deepest first, in blocks that bound the memory whatever the trees.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.values import dataclass

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

BLOCK_NODES = 16_384
BLOCK_PAIRS = 2_000_000


class Packed(NamedTuple):
    """Trees laid end to end, tree i from offsets[i] to offsets[i + 1], and the scale of each feature."""

    offsets: Indices
    feature: NDArray[np.int32]
    threshold: Floats
    right: NDArray[np.int32]
    mu: Floats
    sigma: Floats


@dataclass(frozen=True)
class _Side:
    """The internal nodes whose child on one side is internal, sorted by (label, child's label, node)."""

    key: Indices  # node -> label * labels + child's label, or -1
    sorted_keys: Indices  # key * count + node, ascending
    position: Indices  # node -> where it stands there


@dataclass(frozen=True)
class _Forest:
    """The internal nodes of all trees, numbered through in preorder."""

    tree: Indices
    start: Indices
    label: Indices
    children: tuple[Indices, Indices]
    x: Floats
    depth: Indices
    sides: tuple[_Side, _Side]

    @property
    def count(self) -> int:
        return len(self.tree)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of nodes with equal labels and an equal label among their children."""

    v: Indices
    w: Indices
    split: int  # pairs before it were found through their left children, the others through their right ones
    fresh: NDArray[np.bool_]
    shift: tuple[Indices, Indices]  # by side: node v -> what to add to w's position for the pair's place


def gram(packed: Packed, decay: float) -> Floats:
    """Return the Gram matrix of the trees."""
    m = len(packed.offsets) - 1
    forest = _load(packed)
    labels = int(forest.label.max()) + 1 if forest.count else 0
    by_label = np.zeros((labels, m))
    np.add.at(by_label, (forest.label, forest.tree), forest.x)
    single = np.zeros((m, m))
    for column in by_label:
        single += column[:, None] * column[None, :]
    sums = np.zeros((2, m, m))
    for first, last in _blocks(forest.start, BLOCK_NODES):
        _match(forest, first, last, decay, sums)
    upper: Floats = (decay * single + sums[0]) + sums[1]
    rows, columns = np.triu_indices(m, 1)
    upper[columns, rows] = upper[rows, columns]
    return upper


def p_greedy(
    gram_matrix: Floats, k: int, tolerance: float, groups: NDArray[np.int32], rooms: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return up to k columns in the order in which each adds most to what the earlier ones cannot explain.

    A column is passed over while one of its groups has no room; each choice takes a place of its groups,
    and `rooms` is what is left.
    """
    m = len(gram_matrix)
    diagonal = np.diagonal(gram_matrix).copy()
    power = diagonal.copy()
    floor = tolerance * diagonal
    unused = np.ones(m, dtype=bool)
    basis = np.empty((k, m))
    chosen: list[int] = []
    while len(chosen) < k:
        full = (groups >= 0) & (rooms[groups] <= 0) if len(rooms) else np.zeros_like(groups, dtype=bool)
        candidates = unused & (power > floor) & ~full.any(axis=1)
        if not candidates.any():
            break
        best = int(np.argmax(np.where(candidates, power, -1.0)))
        known = basis[: len(chosen)]
        # Rows are added one after the other, as in the compiled form.
        total = np.add.reduce(known * known[:, best, None], axis=0) if chosen else 0.0
        row = (gram_matrix[best] - total) / np.sqrt(power[best])
        basis[len(chosen)] = row
        power -= row * row
        unused[best] = False
        chosen.append(best)
        rooms[groups[best][groups[best] >= 0]] -= 1
    return np.array(chosen, dtype=np.int32)


def _load(packed: Packed) -> _Forest:
    offsets, feature, threshold, right, mu, sigma = packed
    m = len(offsets) - 1
    internal = feature >= 0
    index = np.where(internal, np.cumsum(internal) - 1, -1)
    tree = np.repeat(np.arange(m), np.diff(offsets))[internal]
    base = offsets[tree]
    # Preorder: the left child follows its parent.
    children = (index[np.flatnonzero(internal) + 1], index[base + right[internal]])
    used, label = np.unique(feature[internal], return_inverse=True)
    x = (threshold[internal] - mu[used][label]) / sigma[used][label]
    start = np.searchsorted(tree, np.arange(m + 1))
    sides = (_side(label, children[0], len(used)), _side(label, children[1], len(used)))
    return _Forest(tree, start, label, children, x, _depths(children), sides)


def _side(label: Indices, child: Indices, labels: int) -> _Side:
    count = len(label)
    key = np.where(child >= 0, label * labels + label[child], -1) if count else np.zeros(0, dtype=np.int64)
    nodes = np.flatnonzero(key >= 0)
    order = nodes[np.argsort(key[nodes], kind="stable")]
    position = np.zeros(count, dtype=np.int64)
    position[order] = np.arange(len(order))
    return _Side(key, key[order] * count + order, position)


def _depths(children: tuple[Indices, Indices]) -> Indices:
    depth = np.zeros(len(children[0]), dtype=np.int64)
    root = np.ones(len(depth), dtype=bool)
    for side in children:
        root[side[side >= 0]] = False
    level = np.flatnonzero(root)
    for below in range(1, len(depth) + 1):
        level = np.concatenate([side[level] for side in children])
        level = level[level >= 0]
        if not len(level):
            break
        depth[level] = below
    return depth


def _blocks(start: Indices, most: int) -> list[tuple[int, int]]:
    """Split the trees into runs of at most `most` internal nodes (or of one tree)."""
    runs, first = [], 0
    for tree in range(1, len(start)):
        if tree == len(start) - 1 or start[tree + 1] - start[first] > most:
            runs.append((first, tree))
            first = tree
    return runs


def _match(forest: _Forest, first: int, last: int, decay: float, sums: Floats) -> None:
    """Add to sums what trees [first, last) share, beyond single nodes, with themselves and those before."""
    below, above = forest.start[first], forest.start[last]
    # Nodes in the order the sums are taken: tree by tree, children before parents.
    rows = np.arange(above)
    rows = rows[np.lexsort((-rows, forest.tree[rows]))]
    spans = [_spans(side, forest, rows, below, above) for side in forest.sides]
    pairs = np.concatenate([[0], np.cumsum(spans[0][1] + spans[1][1])])
    ends = forest.start[1 : last + 1]
    begin = 0
    while begin < len(rows):
        # At least one whole tree: its nodes need each other's values.
        limit = int(np.searchsorted(pairs[ends], pairs[begin] + BLOCK_PAIRS, side="right"))
        end = int(ends[max(limit - 1, forest.tree[rows[begin]])])
        found = _pairs(forest, rows[begin:end], [(low[begin:end], n[begin:end]) for low, n in spans])
        _sum_pairs(forest, found, decay, sums)
        begin = end


def _spans(side: _Side, forest: _Forest, rows: Indices, below: int, above: int) -> tuple[Indices, Indices]:
    """Where each row's partners stand among the sorted nodes, and how many they are."""
    count = forest.count
    key = side.key[rows]
    lowest = np.maximum(forest.start[forest.tree[rows]], below)
    low = np.searchsorted(side.sorted_keys, key * count + lowest)
    high = np.searchsorted(side.sorted_keys, key * count + above)
    return low, np.where(key >= 0, high - low, 0)


def _pairs(forest: _Forest, rows: Indices, spans: list[tuple[Indices, Indices]]) -> _Pairs:
    """List the pairs found on the left, then those found on the right."""
    count, total = forest.count, 0
    v, w, shift = [], [], []
    for side, (low, counts) in zip(forest.sides, spans, strict=True):
        begin = total + np.cumsum(counts) - counts
        total += int(counts.sum())
        place = np.repeat(low - begin, counts) + np.arange(total - int(counts.sum()), total)
        v.append(np.repeat(rows, counts))
        w.append(side.sorted_keys[place] % count)
        shift.append(np.zeros(count, dtype=np.int64))
        shift[-1][rows] = begin - low
    # A pair found on the left already is not taken again on the right.
    fresh = np.ones(total, dtype=bool)
    fresh[len(v[0]) :] = ~_equal_children(forest, 0, v[1], w[1])
    return _Pairs(np.concatenate(v), np.concatenate(w), len(v[0]), fresh, (shift[0], shift[1]))


def _sum_pairs(forest: _Forest, pairs: _Pairs, decay: float, sums: Floats) -> None:
    """Compute k_node of the pairs from the deepest upwards, and add what each is worth to its cell."""
    total = len(pairs.v)
    # k_node of all pairs, then the two constants a child pair may have instead.
    values = np.empty(total + 2)
    values[total:] = 0.0, decay
    left, right = _children(forest, pairs, 0), _children(forest, pairs, 1)
    extra = np.zeros(total)
    depth = np.where(pairs.fresh, forest.depth[pairs.v], -1)
    order = np.argsort(-depth, kind="stable")[: int(pairs.fresh.sum())]
    edges = np.flatnonzero(np.diff(depth[order], prepend=-1, append=-1))
    for begin, end in pairwise(edges):
        at = order[begin:end]
        a, b = values[left[at]], values[right[at]]
        values[at] = decay * ((1.0 + a) * (1.0 + b))
        extra[at] = decay * ((a + b) + a * b)
    terms = (forest.x[pairs.v] * forest.x[pairs.w]) * extra
    cells = (forest.tree[pairs.v], forest.tree[pairs.w])
    for side, part in enumerate((slice(0, pairs.split), slice(pairs.split, total))):
        taken = np.flatnonzero(pairs.fresh[part]) + part.start
        np.add.at(sums[side], (cells[0][taken], cells[1][taken]), terms[taken])


def _equal_children(forest: _Forest, side: int, v: Indices, w: Indices) -> NDArray[np.bool_]:
    """Which pairs with equal labels have internal children with equal labels on that side."""
    key = forest.sides[side].key
    equal: NDArray[np.bool_] = (key[v] >= 0) & (key[v] == key[w])
    return equal


def _children(forest: _Forest, pairs: _Pairs, side: int) -> Indices:
    """Where the k_node of each pair's children on that side stands among the values."""
    total = len(pairs.v)
    a, b = forest.children[side][pairs.v], forest.children[side][pairs.w]
    alike = (a >= 0) & (b >= 0)
    alike[alike] = forest.label[a[alike]] == forest.label[b[alike]]
    index = np.where(alike, total + 1, total)
    for grandchild in (1, 0):
        found = alike.copy()
        found[alike] = _equal_children(forest, grandchild, a[alike], b[alike])
        index[found] = pairs.shift[grandchild][a[found]] + forest.sides[grandchild].position[b[found]]
    return index
