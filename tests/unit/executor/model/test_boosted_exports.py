"""Models of boosted estimators leave as JSON, npz and ONNX like those of trees, and come back the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.published import N, answers, values

from executor.model import export_check, npz
from executor.model.content import Model
from executor.model.errors import ModelError
from executor.model.files import Exported, from_json, to_json
from executor.model.graph import to_onnx
from learning.ensemble import Ensemble
from learning.fit import FitOptions, FitTask, fit
from learning.rows import Rows
from protocol.task.result import ensemble_digest
from protocol.trees.limits import TreeLimits


@pytest.fixture(scope="module")
def model() -> Model:
    X = values(300)
    rows = Rows.of(X, np.nan_to_num(X[:, 0]) > 1)
    options = FitOptions("boosted", rounds=5, leaves=4)
    made = [
        estimator
        for node, count in (("node01", 3), ("node06", 2))
        for estimator in fit(rows, FitTask(node, 0, 0, count, 7, options, TreeLimits(N, kind="boosted")))
    ]
    whole = answers().assemble()
    digest = ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in made])
    return Model(replace(whole.terms, digest=digest), Ensemble.of(made))


def test_json_and_npz_give_the_same_estimators_back(model: Model) -> None:
    assert from_json(to_json(Exported(model)), "model.json").model == model
    export_check.check_npz(npz.to_npz(model), model)


@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_onnx_scores_like_the_model(model: Model, vote: str, count: int) -> None:
    """With three estimators, too, by which a float32 cannot divide."""
    voting = replace(model.voting, vote=vote, threshold=0.5)
    some = Ensemble.of(list(model.ensemble)[:count])
    voted = replace(model, terms=replace(model.terms, voting=voting), ensemble=some)
    assert export_check.check_onnx(to_onnx(voted), voted) <= export_check.TOLERANCE


@pytest.mark.parametrize(
    ("name", "value"),
    [("base", 1e308), ("base", 0), ("roots", [0]), ("roots", [-1, 3]), ("roots", []), ("roots", ["0"])],
)
def test_d_a_boosted_export_with_another_base_or_other_roots_is_refused(
    model: Model, name: str, value: object
) -> None:
    record = json.loads(to_json(Exported(model)))
    record["estimators"][0][name] = value
    with pytest.raises(ModelError):
        from_json((json.dumps(record, indent=1) + "\n").encode(), "model.json")
