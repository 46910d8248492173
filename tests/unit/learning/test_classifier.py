"""The scikit-learn face: its conventions, and its agreement with the ensemble behind it."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from learning.actions import predictor
from learning.classifier import FederatedForestClassifier
from learning.ensemble import Ensemble
from learning.parameters import Parameters


@parametrize_with_checks([FederatedForestClassifier(n_estimators=5, threshold=0.5)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_same_random_state_gives_the_same_trees(make_rows):
    rows = make_rows()
    first, again, other = (
        FederatedForestClassifier(4, random_state=state).fit(rows.X, rows.y).ensemble_ for state in (7, 7, 8)
    )
    assert first == again
    assert first != other


def test_it_wraps_a_federations_ensemble(make_rows, random_trees, estimators):
    rows, ensemble = make_rows(d=4), Ensemble.of(estimators(random_trees(6)))
    parameters = Parameters(threshold=0.4, vote_cap=0.5)
    classifier = FederatedForestClassifier.from_ensemble(ensemble, 4, parameters, "node00")
    expected = predictor("node00", ensemble, parameters).scores(rows.X)
    assert (classifier.predict_proba(rows.X)[:, 1] == expected).all()
    assert (classifier.predict(rows.X) == (expected > 0.4)).all()


def test_majority_votes_and_missing_values(make_rows):
    rows = make_rows(missing=0.1)
    classifier = FederatedForestClassifier(9, vote="majority", threshold=0.5, random_state=0)
    votes = classifier.fit(rows.X, rows.y).predict_proba(rows.X)[:, 1]
    assert np.allclose(votes * 9, np.round(votes * 9))
    assert (classifier.predict(rows.X) == (votes > 0.5)).all()


def test_it_cross_validates(make_rows):
    rows = make_rows(n=400)
    scores = cross_val_score(
        FederatedForestClassifier(10, random_state=0), rows.X, rows.y, cv=3, scoring="average_precision"
    )
    assert scores.min() > 3 * rows.y.mean()


def test_three_classes_are_refused(make_rows):
    rows = make_rows()
    with pytest.raises(ValueError, match="Only binary"):
        FederatedForestClassifier().fit(rows.X, np.arange(len(rows)) % 3)
