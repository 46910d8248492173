"""Exports: read back to the same model, altered ones refused, ONNX with the same scores."""

import io
import json
import pickle
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.published import SCHEMA, answers, estimators, values

from executor.model import export_check, files, npz
from executor.model.content import Model
from executor.model.errors import ModelError
from executor.model.files import Exported
from executor.model.graph import to_onnx
from experiments.pages import write_whole
from learning.ensemble import Ensemble
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

VOTES = [
    {},
    {"vote_cap": None},
    {"vote": "majority", "threshold": "0.6"},
    {"vote": "majority", "vote_cap": "0.3", "threshold": "0.5"},
]


# --- JSON and npz ---


def test_json_reads_back_to_the_same_model(model: Model) -> None:
    for exported in (Exported(model), Exported(model, SCHEMA, {"npz": Digest.of(b"arrays")})):
        raw = files.to_json(exported)
        assert files.from_json(raw, "model.json") == exported
        assert files.to_json(exported) == raw


def test_json_is_enough_to_score_without_our_code(model: Model) -> None:
    record = json.loads(files.to_json(Exported(model)))
    X = values(50, 5)
    total = np.zeros(len(X))
    for tree in record["estimators"]:
        for i, row in enumerate(X):
            node = 0
            while tree["feature"][node] >= 0:
                value = row[tree["feature"][node]]
                left = tree["missing_left"][node] if np.isnan(value) else value <= tree["threshold"][node]
                node = tree["left"][node] if left else tree["right"][node]
            total[i] += tree["weight"] * tree["value"][node]
    scores = total / sum(tree["weight"] for tree in record["estimators"])
    assert (scores == model.scores(X)).all()


def test_npz_reads_back_without_pickle_and_is_the_same_twice(model: Model) -> None:
    raw = npz.to_npz(model)
    assert npz.to_npz(model) == raw
    found = npz.trees_of_npz(raw)
    assert [Estimator(id_, tree) for id_, tree in found] == list(estimators())
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        assert {name for name in arrays.files if arrays[name].dtype == object} == set()
        assert str(arrays["digest"]) == str(model.digest)
        assert (arrays["weight"] == model.weights).all()
        assert float(arrays["decision_threshold"]) == 0.3
    export_check.check_npz(raw, model)


def test_an_npz_of_other_trees_is_not_kept(model: Model) -> None:
    fewer = replace(model, ensemble=Ensemble(model.ensemble.estimators[1:]))
    with pytest.raises(ModelError, match="MODEL_EXPORT"):
        export_check.check_npz(npz.to_npz(fewer), model)


def change(model: Model, *path: Any, to: Any) -> bytes:
    record = json.loads(files.to_json(Exported(model, SCHEMA)))
    *front, last = path
    place = record
    for part in front:
        place = place[part]
    place[last] = to
    return (json.dumps(record, indent=1) + "\n").encode()


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("estimators", 2, "value"), [0.0]),
        (("estimators", 2, "id"), "node01/0099"),
        (("estimators", 2, "digest"), f"sha256:{'0' * 64}"),
        (("estimators",), []),
        (("digest",), f"sha256:{'0' * 64}"),
        (("features",), ["a", "b", "c", "d", "e", "f"]),
        (("label",), "Other"),
        (("voting", "threshold"), 2.0),
        (("voting", "vote"), "loudest"),
        (("n_features",), 1),
        (("node",), "Node 1"),
    ],
)
def test_d_an_altered_export_is_refused(model: Model, path: tuple[Any, ...], to: Any) -> None:
    with pytest.raises(ModelError, match="MODEL_ALTERED"):
        files.from_json(change(model, *path, to=to), "model.json")


def test_d_an_altered_threshold_of_a_tree_is_refused(model: Model) -> None:
    thresholds = estimators()[2].tree.threshold.tolist()
    thresholds[0] += 0.001
    with pytest.raises(ModelError, match="node01/0002"):
        files.from_json(change(model, "estimators", 2, "threshold", to=thresholds), "model.json")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'"text"',
        b"\xff",
        b'{"format": "attestree-model", "version": 1}',
        b"[" * 100_000,
        pickle.dumps({"format": "attestree-model"}),
    ],
)
def test_d19_what_is_no_exported_model_is_refused(raw: bytes) -> None:
    with pytest.raises(ModelError, match="MODEL_FILE"):
        files.from_json(raw, "model.json")


def test_fields_of_the_wrong_kind_are_refused(model: Model) -> None:
    for path in (("voting",), ("estimators",), ("features",), ("n_features",)):
        for to in ("x", 7, None, {}):
            if path == ("features",) and to is None:
                continue
            with pytest.raises(ModelError):
                files.from_json(change(model, *path, to=to), "model.json")


def test_npz_holds_arrays_and_nothing_else(model: Model) -> None:
    with zipfile.ZipFile(io.BytesIO(npz.to_npz(model))) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())


def test_files_are_written_whole(model: Model, tmp_path) -> None:
    write_whole(tmp_path / "model.json", b"old")
    write_whole(tmp_path / "model.json", b"new")
    assert (tmp_path / "model.json").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


# --- ONNX ---


@pytest.mark.parametrize("options", VOTES)
def test_onnx_gives_the_same_scores_and_decisions(options: dict[str, Any]) -> None:
    model = answers(**options).assemble()
    raw = to_onnx(model, SCHEMA.features)
    session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    for X in (values(3_000, 11), export_check.probes(model)):
        scores, anomalous = session.run(None, {"features": X})
        expected = model.scores(X)
        assert np.isnan(X).any()
        assert scores.dtype == np.float64
        assert np.abs(scores - expected).max() <= 1e-15
        assert (anomalous == (model.decide(expected) == 1)).all()
        assert 0 < anomalous.sum() < len(X)


def test_onnx_on_one_thread_is_bit_for_bit_the_same(model: Model) -> None:
    assert export_check.check_onnx(to_onnx(model), model) == 0.0


def test_onnx_is_deterministic_and_names_its_origin(model: Model) -> None:
    raw = to_onnx(model, SCHEMA.features)
    assert to_onnx(model, SCHEMA.features) == raw
    made = onnx.load_from_string(raw)
    onnx.checker.check_model(made, full_check=True)
    properties = {entry.key: entry.value for entry in made.metadata_props}
    assert properties["digest"] == str(model.digest)
    assert properties["features"].split("\n") == list(SCHEMA.features)


def test_the_probes_sit_on_thresholds_beside_them_and_on_missing_values(model: Model) -> None:
    X = export_check.probes(model)
    assert (export_check.probes(model) == X)[~np.isnan(X)].all()
    thresholds = {
        float(np.float32(t))
        for e in model.ensemble
        for f, t in zip(e.tree.feature, e.tree.threshold, strict=True)
        if f >= 0
    }
    on = np.isin(X, np.array(sorted(thresholds), dtype=np.float32))
    assert 0.3 < on.mean() < 0.7
    assert 0.05 < np.isnan(X).mean() < 0.15


@pytest.mark.parametrize("what", ["threshold", "missing", "weight", "decision"])
def test_a_graph_that_scores_otherwise_is_not_kept(model: Model, what: str) -> None:
    made = onnx.load_from_string(to_onnx(model))
    node = next(node for node in made.graph.node if node.op_type == "TreeEnsemble")
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if what == "threshold":
        splits = onnx.numpy_helper.to_array(attributes["nodes_splits"].t)
        # Thresholds lie between float32 values, so only a change that crosses one can be seen.
        attributes["nodes_splits"].t.CopyFrom(onnx.numpy_helper.from_array(splits - 1e-3, "s"))
    elif what == "missing":
        ints = attributes["nodes_missing_value_tracks_true"].ints
        ints[:] = [1 - value for value in ints]
    elif what == "weight":
        leaves = onnx.numpy_helper.to_array(attributes["leaf_weights"].t)
        attributes["leaf_weights"].t.CopyFrom(onnx.numpy_helper.from_array(leaves * 1.001, "l"))
    else:
        for tensor in made.graph.initializer:
            if tensor.name == "threshold":
                tensor.CopyFrom(onnx.numpy_helper.from_array(np.array(0.35), "threshold"))
    with pytest.raises(ModelError, match="MODEL_EXPORT"):
        export_check.check_onnx(made.SerializeToString(), model)


def test_extreme_thresholds_survive(model: Model) -> None:
    largest = float(np.finfo(np.float32).max)
    trees = [
        Tree.from_arrays([0, -1, -1], [t, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0.1, 0.9], [m, 0, 0])
        for t in (0.0, -0.0, 1e-300, largest, -largest, 1e300, 0.1)
        for m in (0, 1)
    ]
    made = tuple(Estimator(EstimatorId("node01", i), tree) for i, tree in enumerate(trees))
    digest = ensemble_digest([(e.id, e.tree.digest) for e in made])
    extreme = Model(replace(model.terms, digest=digest), Ensemble(made))
    assert export_check.check_onnx(to_onnx(extreme), extreme) == 0.0
    assert files.from_json(files.to_json(Exported(extreme)), "model.json").model == extreme


def test_a_model_without_trees_is_not_exported(model: Model) -> None:
    with pytest.raises(ModelError, match="no trees"):
        to_onnx(replace(model, ensemble=Ensemble()))


def test_the_schema_of_another_process_is_refused(model: Model) -> None:
    raw = files.to_json(Exported(model, FeatureSchema(tuple("abcdef"), "Class")))
    with pytest.raises(ModelError, match="schema's digest"):
        files.from_json(raw, "model.json")
