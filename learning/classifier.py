"""The scikit-learn face of an ensemble: what a data scientist cross-validates, tunes and compares."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from learning.actions import EMPTY, NodeState, fit, predictor
from learning.ensemble import Ensemble
from learning.fit_options import FitOptions
from learning.parameters import Parameters
from learning.rows import Rows
from protocol.defence import NOBODY, Membership

_NODE = "local"


class FederatedForestClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One node's ensemble as a classifier for two classes, the second of which is the anomalous one.

    `fit` trains `n_estimators` trees on the given rows by FIT alone; `from_ensemble` wraps what a federation
    arrived at. `threshold` applies to the probability of the anomalous class.
    """

    classes_: NDArray[Any]
    ensemble_: Ensemble
    node_: str
    members_: Membership

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        kind: str = "balanced",
        min_leaf: int = 1,
        threshold: float = 0.3,
        vote: str = "mean",
        vote_cap: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.kind = kind
        self.min_leaf = min_leaf
        self.threshold = threshold
        self.vote = vote
        self.vote_cap = vote_cap
        self.random_state = random_state

    @classmethod
    def from_ensemble(
        cls, ensemble: Ensemble, n_features: int, parameters: Parameters | None = None, node: str = _NODE
    ) -> Self:
        """Wrap what a node of a federation arrived at; its labels are 0 and 1."""
        parameters = Parameters() if parameters is None else parameters
        classifier = cls(
            parameters.n_max,
            kind=parameters.fit.kind,
            min_leaf=parameters.fit.min_leaf,
            threshold=parameters.threshold,
            vote=parameters.vote,
            vote_cap=parameters.vote_cap,
        )
        classifier.classes_ = np.array([0, 1])
        classifier.n_features_in_ = n_features
        classifier.ensemble_ = ensemble
        classifier.node_, classifier.members_ = node, parameters.members
        return classifier

    def fit(self, X: Any, y: Any) -> Self:
        """Train a new ensemble; the same random_state gives the same trees."""
        X, y = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}."
            )
        if len(self.classes_) == 1 and self.classes_[0] in (0, 1):
            labels = y.astype(np.int8)
        self.node_, self.members_ = _NODE, NOBODY
        parameters = self._parameters()
        seed = int(check_random_state(self.random_state).randint(2**31))
        self.ensemble_ = fit(NodeState(_NODE, seed, 0, EMPTY), Rows.of(X, labels), parameters).ensemble
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`."""
        check_is_fitted(self, "ensemble_")
        X = validate_data(self, X, dtype=np.float32, ensure_all_finite="allow-nan", reset=False)
        parameters = replace(self._parameters(), members=self.members_)
        voters = predictor(self.node_, self.ensemble_, parameters)
        anomalous = voters.scores(X) if self.vote == "mean" else voters.votes(X)
        if len(self.classes_) == 1:
            return np.ones((len(anomalous), 1))
        return np.column_stack([1.0 - anomalous, anomalous])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the anomalous class where its probability exceeds the threshold."""
        probability = self.predict_proba(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(probability))
        chosen: NDArray[Any] = self.classes_[(probability[:, 1] > self.threshold).astype(int)]
        return chosen

    def _parameters(self) -> Parameters:
        options = FitOptions(kind=self.kind, min_leaf=self.min_leaf)
        count = self.n_estimators
        shipped = Parameters(n_new=count, n_max=max(count, 1), n_share=0, fit=options)
        return replace(shipped, vote=self.vote, vote_cap=self.vote_cap, threshold=self.threshold)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags
