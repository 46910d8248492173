"""An export altered anywhere is refused, by its digest or by the ledger, and the place is named (H20)."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.published import SCHEMA, answers, small_model

from executor.caller import Caller
from executor.cli import main
from executor.ledger.chaincodes.proxies import Ledger
from executor.model import files, npz
from executor.model.content import Model, fetch_terms
from executor.model.errors import ModelError
from executor.model.files import Exported
from executor.model.graph import to_onnx
from executor.model.verify import verified, verify_forms
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.signing import SigningKey
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = small_model()
    forms = {"npz": npz.to_npz(model), "onnx": to_onnx(model, SCHEMA.features)}
    for kind, raw in forms.items():
        (tmp_path / f"model.{kind}").write_bytes(raw)
    exported = Exported(model, SCHEMA, {kind: Digest.of(raw) for kind, raw in forms.items()})
    (tmp_path / "model.json").write_bytes(files.to_json(exported))
    return tmp_path


def verify(folder: Path, digest: Digest) -> Result:
    arguments = ["model", "verify", "fraud", "node01", str(folder), "--digest", str(digest), "--json"]
    return CliRunner().invoke(main, arguments)


def digest_of(folder: Path) -> Digest:
    return Digest.of((folder / "model.json").read_bytes())


def test_an_unaltered_export_is_accepted(folder: Path) -> None:
    ran = verify(folder, digest_of(folder))
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["files"] == ["model.json", "model.npz", "model.onnx"]


@pytest.mark.parametrize("name", ["model.json", "model.npz", "model.onnx"])
def test_h20_a_flipped_byte_anywhere_is_refused(folder: Path, name: str) -> None:
    digest, path = digest_of(folder), folder / name
    exported = files.from_json((folder / "model.json").read_bytes(), "model.json")
    raw = path.read_bytes()
    for place in range(0, len(raw), max(1, len(raw) // 12)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(ModelError, match=name):
            check(folder, name, digest, exported)


def check(folder: Path, name: str, digest: Digest, exported: Exported) -> None:
    if name == "model.json":
        verified(folder / name, "fraud", "node01", str(digest), None)
    else:
        verify_forms(folder, exported, again=False)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value; of a list the first and the last, since all are alike."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for i in sorted({0, len(value) - 1}):
            yield from leaves(value[i], (*path, i))
    else:
        yield path


def other(value: Any) -> Any:
    """A value of the same kind that could stand in its place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 + 0.2
    if value is None:
        return 0.5
    return value[:-1] + ("1" if value[-1] != "1" else "2")


def test_h20_every_field_is_covered_by_the_digest(folder: Path) -> None:
    path, digest = folder / "model.json", digest_of(folder)
    original = path.read_text("utf-8")
    places = list(leaves(json.loads(original)))
    assert ("voting", "threshold") in places
    assert ("owner",) in places
    for place in places:
        record = json.loads(original)
        *front, last = place
        inner = record
        for part in front:
            inner = inner[part]
        inner[last] = other(inner[last])
        path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        ran = verify(folder, digest)
        # Another process or node is the model of somebody else.
        assert ran.exit_code == (2 if place in {("process",), ("node",)} else 14), place
        assert "model.json" in json.loads(ran.stdout)["error"]["cause"]


def test_h20_another_spelling_is_refused(folder: Path) -> None:
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_bytes())), "utf-8")
    with pytest.raises(ModelError, match="spelled otherwise"):
        verified(path, "fraud", "node01", str(digest_of(folder)), None)


def test_h20_a_form_that_the_manifest_does_not_name_is_refused(folder: Path) -> None:
    exported = files.from_json((folder / "model.json").read_bytes(), "model.json")
    with pytest.raises(ModelError, match=r"model.onnx: model.json does not name it"):
        verify_forms(folder, replace(exported, forms={"npz": exported.forms["npz"]}), again=False)
    (folder / "model.npz").unlink()
    with pytest.raises(ModelError, match=r"MODEL_FILE.*model.npz"):
        verify_forms(folder, exported, again=False)


# --- by the ledger ---


class Stored:
    """A ledger that answers about one model."""

    def __init__(self) -> None:
        self.found = answers()
        self.models = self.execution = self.orchestration = self
        self.transport = None

    def get(self, process: str, node: str | None = None) -> Any:
        return self.found.agreed if node is None else self.found.record

    def get_task(self, _: object) -> Any:
        return self.found.task

    def standing(self, *_: object) -> Any:
        return self.found.standing

    def __enter__(self) -> "Stored":
        return self

    def __exit__(self, *_: object) -> None:
        return


class StoredCaller(Caller):
    """A caller whose ledger is the one above."""

    def __init__(self) -> None:
        object.__setattr__(self, "stored", Stored())

    def ledger(self) -> Ledger:
        return self.stored  # type: ignore[attr-defined, no-any-return]


TERMS = {
    "owner": "Org2MSP",
    "iteration": 1,
    "result": Digest.of(b"other"),
    "specification_digest": Digest.of(b"other"),
    "parameters_digest": Digest.of(b"other"),
    "voting.threshold": 0.95,
    "voting.vote_cap": None,
}


@pytest.mark.parametrize("place", TERMS)
def test_h20_what_the_ledger_says_otherwise_is_refused_and_named(
    model: Model, tmp_path: Path, place: str
) -> None:
    outer, _, inner = place.partition(".")
    value = replace(model.voting, **{inner: TERMS[place]}) if inner else TERMS[place]
    altered = replace(model, terms=replace(model.terms, **{outer: value}))
    path = tmp_path / "model.json"
    path.write_bytes(files.to_json(Exported(altered)))
    with pytest.raises(ModelError, match=f"model.json: {place} is not what the ledger says"):
        verified(path, "fraud", "node01", None, StoredCaller())
    path.write_bytes(files.to_json(Exported(model)))
    assert verified(path, "fraud", "node01", None, StoredCaller()).model == model


def test_h20_a_file_whose_node_nobody_named_is_held_against_the_ledger_as_well(
    model: Model, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(files.to_json(Exported(model)))
    assert verified(path, "fraud", None, None, StoredCaller()).model == model
    altered = replace(model, terms=replace(model.terms, voting=replace(model.voting, threshold=0.95)))
    path.write_bytes(files.to_json(Exported(altered)))
    with pytest.raises(ModelError, match=r"voting\.threshold is not what the ledger says"):
        verified(path, "fraud", None, None, StoredCaller())
    path.write_bytes(files.to_json(Exported(replace(model, terms=replace(model.terms, node="node06")))))
    with pytest.raises(ModelError, match="was asked for"):
        verified(path, "fraud", None, None, StoredCaller())


def test_h20_a_graph_with_another_threshold_is_refused_by_the_ledger_alone(folder: Path) -> None:
    model = small_model()
    raw = to_onnx(replace(model, terms=replace(model.terms, voting=replace(model.voting, threshold=0.9))))
    (folder / "model.onnx").write_bytes(raw)
    exported = Exported(model, SCHEMA, {"onnx": Digest.of(raw)})
    (folder / "model.npz").unlink()
    with pytest.raises(ModelError, match=r"made again from model\.json"):
        verify_forms(folder, exported, again=True)


# --- what a peer answers about a model ---


def test_h1_another_model_than_was_asked_for_is_refused() -> None:
    for process, node in (("fraud", "node06"), ("other", "node01")):
        with pytest.raises(ModelError, match="was asked for"):
            fetch_terms(StoredCaller().ledger(), process, node)


@pytest.mark.parametrize("what", ["signature", "key", "result", "ensemble", "parameters", "owner", "none"])
def test_h1_a_model_that_no_task_signed_is_refused(what: str) -> None:
    found = answers()
    task = found.task
    assert task.outcome is not None
    assert task.opening is not None
    if what == "signature":
        signed = replace(task.outcome.signed, signature="00" * 64)
        found.task = replace(task, outcome=replace(task.outcome, signed=signed))
    elif what == "key":
        found.task = replace(task, opening=replace(task.opening, public_key=SigningKey(bytes(32)).verify_key))
    elif what == "result":
        found.record = replace(found.record, result=Digest.of(b"other"))
    elif what == "ensemble":
        found.task = replace(task, outcome=replace(task.outcome, ensemble_digest=Digest.of(b"other")))
    elif what == "parameters":
        found.agreed = answers(threshold="0.9").agreed
    elif what == "owner":
        found.record = replace(found.record, owner="Org2MSP")
    else:
        found.task = replace(task, outcome=None)
    with pytest.raises(ModelError, match=r"MODEL_ALTERED.*task"):
        found.assemble()


@pytest.mark.parametrize(
    "changes", [{"next_counter": 1}, {"next_counter": None}, {"iteration": 1}, {"node": "node06"}], ids=str
)
def test_h1_a_node_that_is_said_to_stand_elsewhere_has_no_model(changes: dict[str, Any]) -> None:
    found = answers()
    found.standing = replace(found.standing, **changes)
    with pytest.raises(ModelError, match="MODEL_ALTERED"):
        found.assemble()


def test_difference_names_the_place() -> None:
    assert files.difference({"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 2.5}]}) == "a[1].b"
    assert files.difference({"a": 1}, {"a": True}) == "a"
    assert files.difference({"a": 1}, {}) == "a"
    assert files.difference([1], [1, 2], "x") == "x"
    assert files.difference({"a": [None, "x"]}, {"a": [None, "x"]}) is None


def test_h20_a_tree_for_another_is_named(model: Model, tmp_path: Path) -> None:
    leaf = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
    trees = (Estimator(EstimatorId("node01", 0), leaf), *model.ensemble.estimators[1:])
    path = tmp_path / "model.json"
    path.write_bytes(files.to_json(Exported(replace(model, ensemble=type(model.ensemble)(trees)))))
    with pytest.raises(ModelError, match="its trees give the digest"):
        verified(path, "fraud", "node01", None, StoredCaller())


@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_model_that_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pipe" if kind == "pipe" else Path("/dev/zero")
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ModelError, match=r"MODEL_FILE.*not a file"):
        verified(path, "fraud", "node01", str(Digest.of(b"")), None)
