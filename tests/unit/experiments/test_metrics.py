"""Metrics against scikit-learn and by hand, and the rules for calling something better."""

import numpy as np
import pytest
from sklearn import metrics as reference

from experiments.comparison import Difference, difference, resample, verdict
from experiments.metrics import Levels, ScoredModel, Weighting, measure

Y = np.array([0, 0, 1, 1, 0, 1, 0, 0], np.int8)


@pytest.mark.parametrize("seed", range(20))
def test_metrics_equal_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = (rng.random(200) < 0.2).astype(np.int8)
    scores = np.round(rng.random(200) * 0.6 + 0.3 * y, rng.integers(1, 4))  # rounding makes ties
    ours = measure(y, scores, 0.4)
    alarms = scores > 0.4
    assert ours.bacc == pytest.approx(reference.balanced_accuracy_score(y, alarms))
    assert ours.precision == pytest.approx(reference.precision_score(y, alarms, zero_division=0))
    assert ours.recall == pytest.approx(reference.recall_score(y, alarms))
    assert ours.ap == pytest.approx(reference.average_precision_score(y, scores))
    assert ours.roc == pytest.approx(reference.roc_auc_score(y, scores))
    curve = reference.precision_recall_curve(y, scores)
    best = max(2 * p * r / (p + r) if p + r else 0 for p, r in zip(curve[0], curve[1], strict=True))
    assert ours.f1 == pytest.approx(best)


def test_score_at_the_threshold_is_normal() -> None:
    assert measure(np.array([0, 1], np.int8), np.array([0.5, 0.5])).recall == 0


def test_no_alarm_has_precision_0() -> None:
    result = measure(Y, np.zeros(len(Y)))
    assert (result.precision, result.recall, result.bacc, result.roc) == (0, 0, 0.5, 0.5)


def test_one_class_alone_has_its_own_recall_as_balanced_accuracy() -> None:
    normal = measure(np.zeros(3, np.int8), np.array([0.0, 0.9, 0.1]))
    assert normal.bacc == pytest.approx(2 / 3)
    assert (normal.recall, normal.roc, normal.ap) == (0, 0.5, 0)
    assert measure(np.ones(4, np.int8), np.array([0.9, 0.8, 0.7, 0.1])).bacc == 0.75


def test_weights_count_rows_as_repeating_them_would() -> None:
    scores = np.array([0.1, 0.7, 0.8, 0.4, 0.4, 0.9, 0.0, 0.2])
    weights = np.array([[1, 0, 2, 1, 3, 1, 0, 1]]).T
    repeated = measure(np.repeat(Y, weights[:, 0]), np.repeat(scores, weights[:, 0]), 0.35)
    columns = Levels(scores).measure(Weighting(Y, weights), 0.35)
    assert [float(c[0]) for c in columns] == pytest.approx(
        [repeated.bacc, repeated.precision, repeated.recall, repeated.ap, repeated.roc, repeated.f1]
    )


def noisy(y: np.ndarray, strength: float, seed: int) -> ScoredModel:
    return ScoredModel(
        np.clip(strength * y + 0.4 * np.random.default_rng(seed).random(len(y)) ** 4, 0, 1), 0.5
    )


def test_clearly_stronger_scores_have_an_interval_above_0() -> None:
    y = (np.arange(800) % 20 == 0).astype(np.int8)
    results = resample(
        y, {"weak": [noisy(y * (np.arange(800) % 40 == 0), 0.8, 1)], "strong": [noisy(y, 0.8, 2)]}
    )
    gap = difference(results["strong"], results["weak"])["recall"]
    assert gap.mean == pytest.approx(0.5)
    assert 0 < gap.low < gap.mean < gap.high
    assert gap.sign == 1


def test_a_variant_against_itself_shows_no_difference() -> None:
    y = (np.arange(400) % 20 == 0).astype(np.int8)
    results = resample(y, {"a": [noisy(y, 0.8, 1)], "b": [noisy(y, 0.8, 1)]})
    assert difference(results["b"], results["a"])["ap"] == Difference(0, 0, 0)


def test_grouping_silent_rows_keeps_the_bootstrap_distribution() -> None:
    y = (np.arange(2000) % 40 == 0).astype(np.int8)
    scores = np.where(y == 1, np.arange(2000) % 80 == 0, 0) * 0.9
    spread = resample(y, {"a": [ScoredModel(scores, 0.5)]})["a"][1:, 2].std()
    assert spread == pytest.approx(np.sqrt(0.5 * 0.5 / y.sum()), rel=0.1)


def test_better_needs_two_splits_that_agree() -> None:
    up, down, none = Difference(0.1, 0.05, 0.2), Difference(-0.1, -0.2, -0.05), Difference(0.1, -0.1, 0.2)
    assert verdict([up, up]) == "better"
    assert verdict([down, down]) == "worse"
    assert verdict([up]) == "one split: no verdict"
    for mixed in ([up, none], [up, down], [none, none]):
        assert verdict(mixed) == "no difference shown"
