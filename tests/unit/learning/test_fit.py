"""FIT: the trees it promises, replayable, within the limits, and nothing in them that should stay home."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from learning.errors import ParameterError, RowsError
from learning.fit import FitOptions, FitTask, fit
from learning.fit_options import WAYS
from learning.fit_tree import fit_tree, strip
from learning.kernel import gram
from learning.predict import Predictor
from learning.rows import Rows
from learning.seeds import derive, generator
from protocol.trees.tree import Tree, TreeLimits

TREE_WAYS = [way for way, kind in WAYS.items() if kind == "tree"]


def task(rows: Rows, **changes) -> FitTask:
    given = {
        "node": "node03",
        "iteration": 2,
        "first_counter": 20,
        "n_new": 3,
        "seed": 9,
        "options": FitOptions(),
        "limits": TreeLimits(rows.n_features),
    }
    return FitTask(**(given | changes))


@pytest.mark.parametrize("kind", TREE_WAYS)
def test_the_same_task_gives_the_same_bytes(make_rows, kind):
    rows = make_rows()
    first = fit(rows, task(rows, options=FitOptions(kind=kind)))
    again = fit(make_rows(), task(rows, options=FitOptions(kind=kind)))
    assert [e.tree.to_bytes() for e in first] == [e.tree.to_bytes() for e in again]
    assert [str(e.id) for e in first] == ["node03/0020", "node03/0021", "node03/0022"]


@pytest.mark.parametrize(
    "change", [{"node": "node04"}, {"iteration": 3}, {"seed": 10}, {"first_counter": 21}]
)
def test_another_node_iteration_seed_or_counter_gives_other_trees(make_rows, change):
    rows = make_rows()
    assert fit(rows, task(rows))[0].tree != fit(rows, task(rows, **change))[0].tree


def test_one_tree_is_replayed_without_the_others(make_rows):
    rows = make_rows()
    alone = fit_tree(rows, derive(9, "node03", 2, "fit:21"), FitOptions(), TreeLimits(rows.n_features))
    assert alone == fit(rows, task(rows))[1].tree


def test_seeds_separate_their_parts():
    seeds = [derive(1, "a", 2, "b"), derive(1, "a", 2, "c"), derive(12, "a", 2, "b"), derive(1, "a2", 2, "b")]
    assert len(set(seeds)) == len(seeds)
    assert derive(1, "a", 2, "b") == seeds[0]
    with pytest.raises(ValueError, match="NUL"):
        derive(1, "a\0", 2, "b")
    assert generator(1, "a", 2, "b").integers(100) == generator(1, "a", 2, "b").integers(100)


def test_the_golden_seed_never_changes():
    expected = "2d55a0a3e04c27468ee16a2b31809c91d9122fc4be869cf3a01b5f2eb4b1190a"
    assert f"{derive(45, 'node07', 3, 'fit:42'):064x}" == expected


@pytest.mark.parametrize("kind", TREE_WAYS)
@pytest.mark.parametrize("label", [0, 1])
def test_g1_rows_of_one_class_give_a_single_leaf(make_rows, kind, label):
    rows = make_rows()
    rows = Rows.of(rows.X, np.full(len(rows), label))
    tree = fit(rows, task(rows, options=FitOptions(kind=kind)))[0].tree
    assert tree.n_nodes == 1
    assert tree.value.tolist() == [label]


@pytest.mark.parametrize("kind", TREE_WAYS)
def test_g2_one_row_gives_a_single_leaf(kind):
    rows = Rows.of([[1.0, 2.0]], [1])
    assert fit(rows, task(rows, options=FitOptions(kind=kind)))[0].tree.value.tolist() == [1.0]


@pytest.mark.parametrize("kind", TREE_WAYS)
def test_g3_a_column_without_values_is_survived(make_rows, kind):
    rows = make_rows()
    X = rows.X.copy()
    X[:, 3] = np.nan
    rows = Rows.of(X, rows.y)
    trees = [e.tree for e in fit(rows, task(rows, options=FitOptions(kind=kind)))]
    assert max(tree.n_internal for tree in trees) > 0
    assert np.isfinite(gram(trees)).all()


def test_g6_duplicate_rows_with_contradicting_labels_share_a_leaf():
    rows = Rows.of(np.ones((10, 2)), [0, 1] * 5)
    tree = fit(rows, task(rows))[0].tree
    assert tree.n_nodes == 1
    assert 0 < tree.value[0] < 1


@pytest.mark.parametrize("kind", TREE_WAYS)
@pytest.mark.parametrize(
    "limits", [{"max_internal": 4}, {"max_depth": 2}, {"max_internal": 0}, {"max_depth": 0}]
)
def test_trees_never_exceed_the_limits_of_the_process(make_rows, kind, limits):
    rows = make_rows(n=600)
    bounds = TreeLimits(rows.n_features, **limits)
    for estimator in fit(rows, task(rows, options=FitOptions(kind=kind), limits=bounds)):
        assert Tree.from_bytes(estimator.tree.to_bytes(), bounds) == estimator.tree


def test_a_tree_at_its_limit_uses_what_it_may(make_rows):
    rows = make_rows(n=600)
    bounds = TreeLimits(rows.n_features, max_internal=4)
    assert {e.tree.n_internal for e in fit(rows, task(rows, limits=bounds))} == {4}


def test_regressors_stop_at_depth_ten_and_options_can_say_otherwise():
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.normal(size=(3000, 3)), rng.random(3000) < 0.5)
    regressors = fit(
        rows, task(rows, options=FitOptions(kind="regressor"), limits=TreeLimits(3, 30_000, 900))
    )
    assert {e.tree.depth for e in regressors} == {10}
    shallow = fit(rows, task(rows, options=FitOptions(max_depth=3)))
    assert {e.tree.depth for e in shallow} == {3}


def test_undersampling_keeps_all_anomalies_and_few_normals(make_rows, monkeypatch):
    rows = make_rows(n=2000)
    seen = []

    def spy(sample, *rest):
        seen.append(np.bincount(sample.y, minlength=2))
        return grow(sample, *rest)

    from learning import fit_tree as module

    grow = module._grow
    monkeypatch.setattr(module, "_grow", spy)
    fit(rows, task(rows, options=FitOptions(kind="undersampled", normals=3)))
    anomalies = int(rows.y.sum())
    assert [counts.tolist() for counts in seen] == [[3 * anomalies, anomalies]] * 3


def test_balanced_trees_weigh_both_classes_alike(make_rows):
    rows = make_rows(n=500)
    bounds = TreeLimits(rows.n_features, max_internal=0)
    tree = fit(rows, task(rows, options=FitOptions(kind="balanced"), limits=bounds))[0].tree
    assert tree.value[0] == pytest.approx(0.5)


def test_a_leaf_holds_at_least_min_leaf_distinct_rows(make_rows):
    rows = make_rows(n=500)
    for estimator in fit(rows, task(rows, options=FitOptions(min_leaf=15))):
        tree = estimator.tree
        reached = np.array([walk(tree, x) for x in rows.X])
        # Rows the bootstrap left out can only add to a leaf.
        assert np.bincount(reached, minlength=tree.n_nodes)[tree.is_leaf].min() >= 15


def walk(tree: Tree, x) -> int:
    node = 0
    while tree.feature[node] >= 0:
        goes_left = x[tree.feature[node]] <= tree.threshold[node]
        node = (tree.left if goes_left else tree.right)[node]
    return node


def test_no_count_or_impurity_leaves_the_node(make_rows):
    """Two forests with the same splits and leaves, from rows repeated a thousandfold, give the same bytes."""
    rows = make_rows(n=200)
    limits = TreeLimits(rows.n_features)
    once = DecisionTreeClassifier(random_state=0).fit(rows.X, rows.y)
    many = DecisionTreeClassifier(random_state=0).fit(
        rows.X, rows.y, sample_weight=np.full(len(rows), 1000.0)
    )
    assert (once.tree_.weighted_n_node_samples != many.tree_.weighted_n_node_samples).all()
    assert strip(once, limits).to_bytes() == strip(many, limits).to_bytes()


def test_the_bytes_hold_no_statistic_of_scikit_learns_tree(make_rows):
    rows = make_rows(n=400)
    fitted = DecisionTreeClassifier(random_state=1, max_depth=3).fit(rows.X, rows.y)
    raw = strip(fitted, TreeLimits(rows.n_features)).to_bytes()
    tree = fitted.tree_
    numbers = {float(x) for x in tree.impurity} | {float(x) for x in tree.weighted_n_node_samples}
    numbers |= {float(x) for x in tree.value[tree.children_left >= 0].ravel()}
    numbers -= {float(x) for x in tree.threshold} | {
        float(x) for x in tree.value[tree.children_left < 0].ravel()
    }
    secrets = {np.float64(x).tobytes() for x in numbers if x not in (0.0, 1.0)}
    assert len(secrets) > 10
    assert not [secret for secret in secrets if secret in raw]


def test_missing_values_go_where_scikit_learn_sent_them(make_rows):
    rows = make_rows(n=800, missing=0.2)
    fitted = DecisionTreeClassifier(random_state=0).fit(rows.X.copy(), rows.y)
    assert fitted.tree_.missing_go_to_left.any()
    tree = strip(fitted, TreeLimits(rows.n_features))
    expected = fitted.predict_proba(rows.X.copy())[:, 1]
    assert (Predictor.of([tree]).scores(rows.X) == expected).all()


def test_a_split_between_missing_and_present_has_a_finite_threshold():
    X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan], [np.nan]])
    y = np.array([0, 0, 0, 1, 1, 1])
    fitted = DecisionTreeClassifier(random_state=0).fit(X, y)
    tree = strip(fitted, TreeLimits(1))
    assert np.isfinite(tree.threshold).all()
    rows = np.array([[-1e30], [5.0], [3e38], [np.nan]])
    assert (Predictor.of([tree]).scores(rows) == fitted.predict_proba(rows)[:, 1]).all()
    assert np.isfinite(gram([tree])).all()


@pytest.mark.parametrize(
    "options", [{"kind": "deep"}, {"min_leaf": 0}, {"normals": 0}, {"max_depth": 0}], ids=str
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ParameterError):
        FitOptions(**options)


def test_d24_rows_with_another_number_of_features_are_refused(make_rows):
    rows = make_rows(d=5)
    with pytest.raises(ParameterError):
        fit(rows, task(rows, limits=TreeLimits(6)))


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([["a", "b"]], [0], "not all numbers"),
        ([[1.0, float("inf")]], [0], "row 0, column 1"),
        ([[1.0], [1e39]], [0, 1], "row 1, column 0"),
        ([[1.0]], [2], "row 0 has label 2"),
        ([[1.0]], [float("nan")], "row 0 has label nan"),
        ([[1.0]], ["1"], "not numbers"),
        ([[1.0]], [0, 1], "1 rows"),
        ([1.0], [0], "shape"),
        (np.zeros((0, 3)), [], "no rows"),
    ],
    ids=["text", "inf", "beyond-float32", "label-2", "label-nan", "label-text", "labels", "shape", "empty"],
)
def test_g5_g8_rows_that_cannot_be_used_name_row_and_remedy(X, y, words):
    with pytest.raises(RowsError, match=words) as refusal:
        Rows.of(X, y)
    assert refusal.value.code == "ROWS_INVALID"
    assert refusal.value.remedy


def test_rows_cannot_be_changed_behind_our_back(make_rows):
    X = np.ones((3, 2), dtype=np.float32)
    rows = Rows.of(X, [0, 1, 0])
    with pytest.raises(ValueError, match="read-only"):
        rows.X[0, 0] = 5
    assert X.flags.writeable


@pytest.mark.parametrize("kind", WAYS)
def test_rounded_thresholds_have_the_digits_that_were_agreed_on(make_rows, kind):
    rows = make_rows()
    options = FitOptions(kind=kind, threshold_bits=3)
    (estimator, *_) = fit(
        rows, task(rows, options=options, limits=TreeLimits(rows.n_features, kind=WAYS[kind]))
    )
    thresholds = estimator.tree.threshold[~estimator.tree.is_leaf]
    fraction, _ = np.frexp(thresholds)
    assert len(thresholds)
    assert (fraction * 8 == np.rint(fraction * 8)).all()


@pytest.mark.parametrize("bits", [0, 25])
def test_thresholds_of_no_digit_or_of_more_than_there_are_are_refused(bits):
    with pytest.raises(ParameterError, match="threshold_bits"):
        FitOptions(threshold_bits=bits)
