"""Models of every kind of estimators leave in every form, and come back the same."""

from dataclasses import replace

import numpy as np
import pytest
from support.published import N, answers, values

from executor.model import export_check, npz
from executor.model.content import Model
from executor.model.files import Exported, from_json, to_json
from executor.model.graph import to_onnx
from learning.ensemble import Ensemble
from learning.fit import FitOptions, FitTask, fit
from learning.fit_options import DEFAULT_WAYS
from learning.rows import Rows
from protocol.task.result import ensemble_digest
from protocol.trees.limits import KIND_NAMES, TreeLimits


@pytest.fixture(params=KIND_NAMES)
def model_of_kind(request: pytest.FixtureRequest) -> Model:
    X, kind = values(300), request.param
    rows = Rows.of(X, np.nan_to_num(X[:, 0]) > 1)
    task = FitTask("node01", 0, 0, 2, 7, FitOptions(DEFAULT_WAYS[kind]), TreeLimits(N, kind=kind))
    made = fit(rows, task)
    digest = ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in made])
    return Model(replace(answers().assemble().terms, digest=digest), Ensemble.of(made))


def test_json_gives_the_same_model_back(model_of_kind: Model) -> None:
    assert from_json(to_json(Exported(model_of_kind)), "model.json").model == model_of_kind


def test_npz_gives_the_same_estimators_back(model_of_kind: Model) -> None:
    export_check.check_npz(npz.to_npz(model_of_kind), model_of_kind)


def test_onnx_scores_like_the_model(model_of_kind: Model) -> None:
    assert export_check.check_onnx(to_onnx(model_of_kind), model_of_kind) <= export_check.TOLERANCE
