"""What every kind of estimators can do: the places of `learning` in which each has to be known."""

import numpy as np
import pytest
from scipy.special import expit

from learning import attacks
from learning.explain import LOG_ODDS, explain
from learning.fit import FitTask, fit
from learning.fit_options import DEFAULT_WAYS, WAYS, FitOptions
from learning.kernel import gram
from learning.kinds import KINDS
from learning.options import from_step, to_options
from learning.predict import Predictor
from protocol.agreement import step
from protocol.digest import Digest
from protocol.trees.limits import KIND_NAMES, TreeLimits

every_kind = pytest.mark.parametrize("kind", KIND_NAMES)


@pytest.fixture
def rows(make_rows):
    return make_rows(d=4, n=300)


@pytest.fixture
def make(rows):
    def made(kind, count=1):
        limits = TreeLimits(rows.n_features, kind=kind)
        return fit(rows, FitTask("node00", 0, 0, count, 3, FitOptions(DEFAULT_WAYS[kind]), limits))

    return made


def test_every_kind_has_ways_to_fit_and_one_by_default():
    assert set(KINDS) == set(KIND_NAMES) == set(WAYS.values()) == set(DEFAULT_WAYS)
    assert all(WAYS[way] == kind for kind, way in DEFAULT_WAYS.items())


@every_kind
def test_every_kind_is_fitted_and_scores_better_than_chance(make, rows, kind):
    contents = [estimator.tree for estimator in make(kind, 3)]
    assert {content.kind for content in contents} == {kind}
    scores = Predictor.of(contents).scores(rows.X)
    assert 0.0 <= scores.min() <= scores.max() <= 1.0
    assert scores[rows.y == 1].mean() > scores[rows.y == 0].mean()
    assert np.isfinite(gram(contents)).all()


@every_kind
def test_options_of_every_way_are_written_out_and_read_back(kind):
    for way in (way for way, made in WAYS.items() if made == kind):
        limits = TreeLimits(4, kind=kind, format=2)
        agreed = step.StepParameters(2, 5, 2, 1, limits, Digest.of(b""), {"fit": way})
        read = from_step(agreed)
        assert read.fit == FitOptions(way)
        assert from_step(step.StepParameters(2, 5, 2, 1, limits, Digest.of(b""), to_options(read))) == read


@every_kind
def test_every_kind_is_explained(make, rows, kind):
    (estimator,) = make(kind)
    found = explain([estimator.tree], [1.0], rows.X[:5], rows.X[5:20])
    totals = expit(found.totals) if found.unit == LOG_ODDS else found.totals
    assert totals == pytest.approx(Predictor.of([estimator.tree]).scores(rows.X[:5]), abs=1e-9)


@every_kind
def test_hostile_estimators_are_of_every_kind(rows, kind):
    task = FitTask("node00", 0, 0, 1, 3, FitOptions(DEFAULT_WAYS[kind]), TreeLimits(4, kind=kind))
    (made,) = attacks.fit(attacks.Attack("one"), rows, task)
    assert made.tree.kind == kind
    assert Predictor.of([made.tree]).scores(rows.X) == pytest.approx(1.0, abs=1e-6)
