"""The tree kernel and the P-greedy order, the paper's unsupervised way of telling trees apart.

k(D, D') is the sum over internal nodes v of D and w of D' of x(v) x(w) k_node(v, w), where k_node counts
the labelled subtrees rooted at both and x is the threshold in standardised units. P-greedy then takes,
again and again, the tree that the ones taken so far explain least. docs/adr/0101-compiled-kernel.md says
why there are two forms of each loop.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from learning import kernel_numpy
from learning.compiled import choose
from learning.errors import KernelError, ParameterError
from learning.kernel_numpy import Packed
from protocol.defence import NO_GROUP, Places
from protocol.trees.content import Content
from protocol.values import dataclass

Floats = NDArray[np.float64]

TOLERANCE = 1e-12
"""What of its own diagonal must be unexplained for a tree to be a candidate: diagonals span decades."""
MAX_INTERNAL = 2_047
"""The largest tree compared: scratch space grows with its square, and float64 overflows soon after."""
MAX_MAGNITUDE = 1e300
"""The largest k(|D|, |D|): Cauchy-Schwarz then keeps every entry, and every partial sum of it, finite."""

MANY_NODES = 40_000
"""From how many nodes on it pays to look for copies among the trees; honest candidates stay far below."""
BEYOND_VALUES = float(np.finfo(np.float32).max)
"""A threshold no row's value can exceed: the split tells missing from present, so its x is 0, not huge."""


@dataclass(frozen=True)
class KernelOptions:
    """What all nodes of a process must agree on to rank alike; the default is the paper's kernel.

    `mu` and `sigma` put thresholds into standardised units, one entry per feature; empty means 0 and 1.
    """

    decay: float = 1.0
    normalise: bool = False
    mu: tuple[float, ...] = ()
    sigma: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 < self.decay <= 1.0:
            raise ParameterError(f"decay {self.decay} is not in (0, 1]")
        if len(self.mu) != len(self.sigma):
            raise ParameterError(f"{len(self.mu)} values of mu and {len(self.sigma)} of sigma")
        if not all(map(math.isfinite, self.mu)) or not all(0 < s < math.inf for s in self.sigma):
            raise ParameterError("mu must be finite, sigma finite and greater than 0")


PAPER = KernelOptions()


def gram(trees: Sequence[Content], options: KernelOptions = PAPER, *, form: str | None = None) -> Floats:
    """Return k for every pair of the trees, or refuse them if one's k could overflow."""
    packed = _pack(trees, options)
    if len(packed.feature) > MANY_NODES and len(set(trees)) < len(trees):
        return _gram_of_copies(trees, options, form)
    if _may_overflow(packed):
        for tree in trees:
            check_rankable(tree, options)
    matrix = _gram(packed, options.decay, form)
    return _normalised(matrix) if options.normalise else matrix


def p_greedy(
    matrix: Floats,
    k: int,
    tolerance: float = TOLERANCE,
    *,
    places: Places | None = None,
    form: str | None = None,
) -> list[int]:
    """Return up to k positions in P-greedy order; what nothing tells apart comes last, in given order.

    With places, what finds no room is passed over at its turn, and fewer than min(k, n) may be returned.
    """
    n = len(matrix)
    k = min(k, n)
    groups = np.array(places.groups if places and n else np.full((n, 3), NO_GROUP), dtype=np.int32)
    rooms = np.array(places.rooms if places else (), dtype=np.int32)
    compiled = choose(form)
    if compiled is None:
        chosen = kernel_numpy.p_greedy(matrix, k, tolerance, groups, rooms)
    else:
        chosen = np.empty(k, dtype=np.int32)
        matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        chosen = chosen[: compiled.p_greedy(n, k, matrix, tolerance, len(rooms), groups, rooms, chosen)]
    order: list[int] = chosen.tolist()
    if len(order) < k:
        taken = set(order)
        rest = [i for i in range(n) if i not in taken]
        order = (order + rest)[:k] if places is None else places.within(order + rest, k)
    return order


def all_rankable(trees: Sequence[Content], options: KernelOptions = PAPER) -> bool:
    """Say at one glance that no tree can overflow; False means that each needs `check_rankable`."""
    largest = max((tree.n_internal for tree in trees), default=0)
    return largest <= MAX_INTERNAL and not _may_overflow(_pack(trees, options))


def check_rankable(tree: Content, options: KernelOptions = PAPER) -> None:
    """Refuse a tree so large, or with thresholds so extreme, that its kernel could overflow."""
    if tree.n_internal > MAX_INTERNAL:
        raise KernelError(f"{tree.n_internal} internal nodes are more than {MAX_INTERNAL}")
    packed = _pack([tree], options)
    if not _may_overflow(packed):
        return
    split = np.maximum(packed.feature, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.abs((packed.threshold - packed.mu[split]) / packed.sigma[split])
        plain = packed._replace(threshold=x, mu=np.zeros_like(packed.mu), sigma=np.ones_like(packed.sigma))
        magnitude = float(_gram(plain, options.decay, None)[0, 0])
    if not magnitude <= MAX_MAGNITUDE:
        raise KernelError(f"the kernel of a tree with itself reaches {magnitude:g}, beyond {MAX_MAGNITUDE:g}")


def _pack(trees: Sequence[Content], options: KernelOptions) -> Packed:
    offsets = np.zeros(len(trees) + 1, dtype=np.int64)
    if not trees:
        none = np.zeros(0, dtype=np.int32)
        return Packed(offsets, none, np.zeros(0), none, np.zeros(0), np.ones(0))
    np.cumsum([tree.n_nodes for tree in trees], out=offsets[1:])
    feature = np.concatenate([tree.feature for tree in trees])
    n_features = max(int(feature.max()) + 1, 0)
    if not options.mu:
        mu, sigma = np.zeros(n_features), np.ones(n_features)
    elif n_features <= len(options.mu):
        mu, sigma = _scale(options)
    else:
        raise ParameterError(
            f"a tree splits feature {n_features - 1}, the scale has {len(options.mu)} features"
        )
    threshold = np.concatenate([tree.threshold for tree in trees])
    if max(-threshold.min(), threshold.max()) >= BEYOND_VALUES:
        threshold = np.where(np.abs(threshold) >= BEYOND_VALUES, mu[feature], threshold)
    return Packed(
        offsets,
        feature,
        threshold,
        np.concatenate([tree.right for tree in trees]),
        mu,
        sigma,
    )


@lru_cache(maxsize=64)
def _scale(options: KernelOptions) -> tuple[Floats, Floats]:
    mu, sigma = np.array(options.mu), np.array(options.sigma)
    mu.setflags(write=False)
    sigma.setflags(write=False)
    return mu, sigma


def _may_overflow(packed: Packed) -> bool:
    """Whether to look at each tree: no tree of n internal nodes has more than 4**n rooted subtrees."""
    if not len(packed.feature) or not len(packed.mu):
        return False
    internal = int(np.diff(packed.offsets).max()) // 2
    widest = max(-float(packed.threshold.min()), float(packed.threshold.max()))
    furthest = max(-float(packed.mu.min()), float(packed.mu.max()))
    reach = (widest + furthest) / float(packed.sigma.min())
    bound = 2 * math.log10(internal * reach + 1.0) + internal * math.log10(4.0)
    return not bound < math.log10(MAX_MAGNITUDE)


def _gram_of_copies(trees: Sequence[Content], options: KernelOptions, form: str | None) -> Floats:
    """Compare each tree once, so that sending copies of a huge one slows nobody down."""
    position = {tree: i for i, tree in enumerate(dict.fromkeys(trees))}
    matrix = gram(list(position), options, form=form)
    rows = np.array([position[tree] for tree in trees])
    repeated: Floats = matrix[np.ix_(rows, rows)]
    return repeated


def _gram(packed: Packed, decay: float, form: str | None) -> Floats:
    compiled = choose(form)
    if compiled is None:
        return kernel_numpy.gram(packed, decay)
    m = len(packed.offsets) - 1
    matrix = np.empty((m, m))
    compiled.gram(m, len(packed.feature), len(packed.mu), *packed, decay, matrix)
    return matrix


def _normalised(matrix: Floats) -> Floats:
    """Scale to a unit diagonal: exactly 1, or every first choice would be a tie decided by rounding."""
    scale = np.sqrt(np.diagonal(matrix))
    scale[~(scale > 0)] = np.inf
    matrix = matrix / scale[:, None] / scale[None, :]
    np.fill_diagonal(matrix, np.where(np.isfinite(scale), 1.0, 0.0))
    return matrix
