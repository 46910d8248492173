"""The kernel against its definition, and the order against the Gaussian process it stands for."""

from fractions import Fraction

import numpy as np
import pytest

from learning.compiled import implementation
from learning.errors import KernelError, ParameterError
from learning.fit import FitOptions, FitTask, fit
from learning.kernel import BEYOND_VALUES, KernelOptions, check_rankable, gram, p_greedy
from learning.rows import Rows
from protocol.trees.tree import Tree, TreeLimits

FORMS = ["numpy"] + (["compiled"] if implementation() == "compiled" else [])


def naive(a: Tree, b: Tree, decay=1.0, *, mu=None, sigma=None, number=float):
    """The definition, word for word, in any kind of number."""
    labels, lefts, rights = (
        [getattr(t, name).tolist() for t in (a, b)] for name in ("feature", "left", "right")
    )

    def node(v, w):
        if labels[0][v] < 0 or labels[0][v] != labels[1][w]:
            return 0
        return decay * (1 + node(lefts[0][v], lefts[1][w])) * (1 + node(rights[0][v], rights[1][w]))

    def x(tree):
        values = [number(value) for value in tree.threshold.tolist()]
        if mu is None:
            return values
        return [(value - mu[s]) / sigma[s] for value, s in zip(values, tree.feature, strict=True)]

    xa, xb = x(a), x(b)
    splits = [(v, w) for v, s in enumerate(labels[0]) for w, t in enumerate(labels[1]) if s >= 0 <= t]
    return sum((xa[v] * xb[w] * node(v, w) for v, w in splits), number(0))


def naive_order(K, k):
    """Take the largest posterior variance of a Gaussian process, solved anew each time."""
    chosen = []
    while len(chosen) < k:
        best, largest = None, 0.0
        for i in range(len(K)):
            if i in chosen:
                continue
            variance = K[i, i]
            if chosen:
                variance -= K[i, chosen] @ np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen, i])
            if variance > 1e-12 * K[i, i] and variance > largest:
                best, largest = i, variance
        if best is None:
            break
        chosen.append(best)
    return chosen


def relative(K, expected):
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    return np.abs(K - expected) / np.where(scale > 0, scale, 1.0)


@pytest.mark.parametrize("form", FORMS)
def test_gram_equals_the_naive_recursion_on_60_random_trees(random_trees, form):
    trees = random_trees(60, largest=15)
    upper = np.array(
        [[naive(a, b) if i <= j else 0.0 for j, b in enumerate(trees)] for i, a in enumerate(trees)]
    )
    expected = np.triu(upper) + np.triu(upper, 1).T
    assert relative(gram(trees, form=form), expected).max() < 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decay", [1.0, 0.5, 0.1])
def test_decay_and_scale_enter_as_defined(random_trees, form, decay):
    trees = random_trees(12, seed=3)
    mu, sigma = (0.5, -1.0, 0.0, 2.0), (2.0, 0.5, 1.0, 3.0)
    options = KernelOptions(decay=decay, mu=mu, sigma=sigma)
    expected = np.array([[naive(a, b, decay, mu=mu, sigma=sigma) for b in trees] for a in trees])
    assert relative(gram(trees, options, form=form), expected).max() < 1e-12


@pytest.mark.skipif(implementation() != "compiled", reason="the extension is not built here")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 33, 90])
@pytest.mark.parametrize("n_features", [1, 3, 30])
def test_compiled_and_numpy_forms_give_the_same_bits(random_trees, count, n_features):
    trees = random_trees(count, seed=count, largest=40, n_features=n_features)
    options = KernelOptions(decay=0.7)
    compiled = gram(trees, options, form="compiled")
    assert compiled.tobytes() == gram(trees, options, form="numpy").tobytes()
    for k in (0, 1, count // 2, count):
        assert p_greedy(compiled, k, form="compiled") == p_greedy(compiled, k, form="numpy")


@pytest.mark.skipif(implementation() != "compiled", reason="the extension is not built here")
def test_blocks_of_the_numpy_form_do_not_change_a_bit(random_trees, monkeypatch):
    trees = random_trees(30, largest=30, n_features=2)
    whole = gram(trees, form="numpy")
    monkeypatch.setattr("learning.kernel_numpy.BLOCK_NODES", 50)
    monkeypatch.setattr("learning.kernel_numpy.BLOCK_PAIRS", 100)
    assert gram(trees, form="numpy").tobytes() == whole.tobytes()


def test_gram_is_symmetric_and_positive_semidefinite(random_trees):
    K = gram(random_trees(80, seed=1))
    assert (K == K.T).all()
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * np.trace(K)
    assert (K < 0).any(), "negative entries are normal and must not be clipped"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_order_equals_the_repeated_solve_of_the_gaussian_process(random_trees, form, normalise, seed):
    K = gram(random_trees(40, seed=seed, largest=12), KernelOptions(normalise=normalise), form=form)
    assert p_greedy(K, 25, form=form) == naive_order(K, 25)


def test_order_equals_exact_rational_arithmetic(random_trees):
    trees = random_trees(10, seed=5, largest=8)
    exact = [[naive(a, b, decay=1, number=Fraction) for b in trees] for a in trees]
    assert p_greedy(gram(trees), 8) == rational_order(exact, 8)


def rational_order(K, k):
    K = [row[:] for row in K]
    chosen = []
    for _ in range(k):
        best = max((i for i in range(len(K)) if i not in chosen), key=lambda i: (K[i][i], -i))
        chosen.append(best)
        pivot = [K[i][best] / K[best][best] for i in range(len(K))]
        row = K[best][:]
        K = [[K[i][j] - pivot[i] * row[j] for j in range(len(K))] for i in range(len(K))]
    return chosen


def test_single_leaves_are_zero_and_come_last_in_order(random_trees, leaf):
    trees = [leaf(0.0), *random_trees(3), leaf(1.0)]
    K = gram(trees)
    assert (K[0] == 0).all()
    assert (K[-1] == 0).all()
    assert p_greedy(K, 5)[-2:] == [0, 4]
    assert sorted(p_greedy(K, 5)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("form", FORMS)
def test_empty_zero_and_small_cases(random_trees, leaf, form):
    assert gram([], form=form).shape == (0, 0)
    assert p_greedy(np.zeros((0, 0)), 3, form=form) == []
    assert p_greedy(gram([leaf(0.0)] * 3, form=form), 2, form=form) == [0, 1]
    assert p_greedy(gram(random_trees(1), form=form), 1, form=form) == [0]
    assert p_greedy(gram(random_trees(4), form=form), 0, form=form) == []
    assert len(p_greedy(gram(random_trees(4), form=form), 9, form=form)) == 4


def test_copies_rank_behind_everything_they_copy(random_trees):
    trees = random_trees(15, seed=2)
    order = p_greedy(gram(trees + trees), 30)
    assert sorted(order[:15]) == list(range(15))
    assert order[15:] == list(range(15, 30))


def test_a_zero_threshold_adds_nothing_itself_but_counts_inside_its_parent():
    root = Tree.from_arrays([0, -1, -1], [2.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1])
    deeper = Tree.from_arrays(
        [0, 1, -1, -1, -1], [2.0, 0.0, 0, 0, 0], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], [0, 0, 0, 0, 1]
    )
    assert gram([root, deeper]).tolist() == [[4.0, 4.0], [4.0, 8.0]]


def test_all_zero_thresholds_rank_like_a_leaf():
    flat = Tree.from_arrays([0, -1, -1], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1])
    assert gram([flat, flat]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("options", [KernelOptions(), KernelOptions(mu=(3.0,) * 6, sigma=(2.0,) * 6)])
@pytest.mark.parametrize("kind", ["balanced", "boosted"])
def test_splits_that_part_missing_values_decide_no_ranking(make_rows, kind, options):
    """Their threshold is the largest float32, which means no value: its x is 0, not 3.4e38."""
    rows = make_rows(n=400, missing=0.4)
    missing = np.isnan(rows.X[:, 5])
    rows = Rows.of(rows.X, rows.y | missing)
    settings = FitOptions(kind)
    limits = TreeLimits(6, kind=settings.estimator_kind, format=2)
    fitted = [e.tree for e in fit(rows, FitTask("a", 0, 0, 6, 1, settings, limits))]
    beyond = [np.abs(tree.threshold) >= BEYOND_VALUES for tree in fitted]
    assert any(marks.any() for marks in beyond)
    K = gram(fitted, options)
    assert 0 < np.diag(K).max() < 1e12
    if kind == "balanced":
        mu = options.mu[0] if options.mu else 0.0
        flat = [
            Tree.from_arrays(
                tree.feature, np.where(marks, mu, tree.threshold), tree.left, tree.right, tree.value
            )
            for tree, marks in zip(fitted, beyond, strict=True)
        ]
        assert (gram(flat, options) == K).all()


def test_normalised_diagonal_is_exactly_one(random_trees, leaf):
    K = gram([*random_trees(30), leaf(0.0)], KernelOptions(normalise=True))
    assert np.diag(K).tolist() == [1.0] * 30 + [0.0]
    assert np.abs(K).max() <= 1.0 + 1e-12


def test_children_are_ordered():
    left = Tree.from_arrays(
        [0, 1, -1, -1, -1], [1.0, 1, 0, 0, 0], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], [0] * 5
    )
    right = Tree.from_arrays(
        [0, -1, 1, -1, -1], [1.0, 0, 1, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0] * 5
    )
    K = gram([left, right])
    assert K[0, 0] == 3.0
    assert K[0, 1] == 2.0


def test_scale_must_cover_the_features(random_trees):
    with pytest.raises(ParameterError):
        gram(random_trees(3), KernelOptions(mu=(0.0,), sigma=(1.0,)))


@pytest.mark.parametrize(
    "options",
    [
        {"decay": 0.0},
        {"decay": 1.1},
        {"decay": float("nan")},
        {"mu": (0.0,)},
        {"mu": (0.0,), "sigma": (0.0,)},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ParameterError) as refusal:
        KernelOptions(**options)
    assert refusal.value.code == "PARAMETER_RANGE"
    assert refusal.value.remedy


def test_an_unknown_form_is_refused(random_trees):
    with pytest.raises(ParameterError):
        gram(random_trees(1), form="fortran")


def test_a_tiny_scale_that_overflows_is_refused(random_trees):
    options = KernelOptions(mu=(0.0,) * 4, sigma=(1e-200,) * 4)
    with pytest.raises(KernelError) as refusal:
        check_rankable(random_trees(1)[0], options)
    assert refusal.value.code == "KERNEL_OVERFLOW"
    with pytest.raises(KernelError):
        gram(random_trees(2), options)
