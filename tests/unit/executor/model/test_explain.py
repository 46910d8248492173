"""Explaining a scored row, and comparing models, on a machine without a network."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.published import SCHEMA, N, values

from executor.cli import main
from executor.errors import UsageError
from executor.model import files
from executor.model.compare import compared, comparison_text, published
from executor.model.content import Model
from learning.ensemble import Ensemble
from learning.fit import FitOptions, FitTask, fit
from learning.rows import Rows
from protocol.digest import Digest
from protocol.task.result import ensemble_digest
from protocol.trees.limits import TreeLimits


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [",".join(SCHEMA.features)]
    for row in values(30, 9):
        lines.append(",".join("" if np.isnan(value) else repr(float(value)) for value in row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def explain(model: Model, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTESTREE_STATE", str(tmp_path / "nowhere"))
    path = tmp_path / "model.json"
    path.write_bytes(files.to_json(files.Exported(model, SCHEMA)))
    given = ["--model", str(path), "--digest", str(Digest.of(path.read_bytes()))]

    def run(*arguments: object) -> Result:
        words = ["model", "explain", "fraud", "node01", str(rows), *given, *map(str, arguments)]
        return CliRunner().invoke(main, words)

    return run


def test_contributions_add_up_to_the_score_of_the_row(explain, model: Model) -> None:
    found = json.loads(explain("--row", 4, "--top", 6, "--json").stdout)
    scores = model.scores(values(30, 9))
    assert found["score"] == scores[3] == pytest.approx(found["total"], abs=1e-12)
    assert found["expected"] == pytest.approx(scores.mean(), abs=1e-12)
    parts = [part["contribution"] for part in found["features"]]
    assert found["expected"] + sum(parts) == pytest.approx(found["total"], abs=1e-12)
    assert [abs(part) for part in parts] == sorted(map(abs, parts), reverse=True)


def test_without_a_row_the_highest_score_is_explained_as_a_table_and_a_plot(
    explain, model: Model, tmp_path: Path
) -> None:
    ran = explain("--top", 3, "--plot", tmp_path / "why.png")
    assert ran.exit_code == 0, ran.output
    assert f"Row {int(np.argmax(model.scores(values(30, 9)))) + 1}:" in ran.stdout
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_a_row_that_is_not_there_is_refused(explain) -> None:
    ran = explain("--row", 31, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (2, "EXPLAIN_ROW")


@pytest.mark.parametrize("plot", ["why.txt", "why", "missing/why.png", "why.txt/why.svg"])
def test_what_cannot_be_drawn_to_is_refused_before_the_model_is_read(
    explain, tmp_path: Path, plot: str
) -> None:
    (tmp_path / "why.txt").touch()
    (tmp_path / "model.json").write_text("", encoding="utf-8")
    ran = explain("--plot", tmp_path / plot, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (2, "EXPLAIN_PLOT")


def test_a_folder_that_nobody_may_write_to_is_refused(
    explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    ran = explain("--plot", tmp_path / "why.png", "--json")
    error = json.loads(ran.stdout)["error"]
    assert (ran.exit_code, error["code"]) == (2, "EXPLAIN_PLOT")
    assert "may write to" in error["remedy"]


def test_a_majority_of_boosted_estimators_is_not_explained(explain, model: Model, tmp_path: Path) -> None:
    X = values(300)
    options = FitOptions("boosted", rounds=3, leaves=4)
    task = FitTask("node01", 0, 0, 2, 7, options, TreeLimits(N, kind="boosted"))
    made = fit(Rows.of(X, np.nan_to_num(X[:, 0]) > 1), task)
    voting = replace(model.voting, vote="majority", threshold=0.5)
    digest = ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in made])
    boosted = Model(replace(model.terms, digest=digest, voting=voting), Ensemble.of(made))
    path = tmp_path / "boosted.json"
    path.write_bytes(files.to_json(files.Exported(boosted, SCHEMA)))
    ran = explain("--model", path, "--digest", Digest.of(path.read_bytes()), "--json")
    error = json.loads(ran.stdout)["error"]
    assert (ran.exit_code, error["code"]) == (2, "EXPLAIN_VOTE")
    assert "model predict" in error["remedy"]


def test_models_are_compared_on_the_same_rows(model: Model) -> None:
    few = replace(
        model, ensemble=Ensemble(model.ensemble.estimators[:2]), terms=replace(model.terms, node="node06")
    )
    X = values(200, 5)
    labels = (np.nan_to_num(X[:, 0]) > 1).astype(np.uint8)
    first, second = compared([model, few], X, labels)
    assert first["decided_otherwise"] == 0
    differ = model.decide(model.scores(X)) != few.decide(few.scores(X))
    assert second["decided_otherwise"] == int(differ.sum()) > 0
    assert set(first["metrics"]) >= {"AP", "Recall"}
    text = comparison_text("fraud", [first, second])
    assert "Unlike node01" in text
    assert "metrics" not in compared([model], X, None)[0]


Compare = Callable[..., Result]


@pytest.fixture
def compare(model: Model, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compares exported models of two nodes, whose files are node01.json and node06.json."""
    monkeypatch.setenv("ATTESTREE_STATE", str(tmp_path / "nowhere"))
    for node in ("node01", "node06"):
        exported = files.Exported(replace(model, terms=replace(model.terms, node=node)), SCHEMA)
        (tmp_path / f"{node}.json").write_bytes(files.to_json(exported))

    def run(*arguments: object) -> Result:
        words = ["model", "compare", "fraud", str(rows), *map(str, arguments)]
        return CliRunner().invoke(main, words)

    return run


def exported(*paths: Path) -> list[str]:
    """Name exported files, each with the digest that came with it."""
    named = [("--model", str(path), "--digest", str(Digest.of(path.read_bytes()))) for path in paths]
    return [word for words in named for word in words]


def test_exported_models_are_compared_without_a_network(compare: Compare, tmp_path: Path) -> None:
    ran = compare(*exported(tmp_path / "node01.json", tmp_path / "node06.json"), "--json")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)["models"]
    assert [entry["node"] for entry in found] == ["node01", "node06"]
    assert [entry["rows"] for entry in found] == [30, 30]


def test_an_altered_file_is_not_compared(compare: Compare, tmp_path: Path) -> None:
    given = exported(tmp_path / "node01.json", tmp_path / "node06.json")
    record = json.loads((tmp_path / "node06.json").read_text("utf-8"))
    record["estimators"].pop()
    (tmp_path / "node06.json").write_text(json.dumps(record), encoding="utf-8")
    ran = compare(*given, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (14, "MODEL_ALTERED")


def test_a_model_with_the_digest_of_another_is_not_compared(compare: Compare, tmp_path: Path) -> None:
    given = exported(tmp_path / "node01.json", tmp_path / "node06.json")
    given[3], given[7] = given[7], given[3]
    ran = compare(*given, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (14, "MODEL_ALTERED")


def test_a_model_of_another_process_is_not_compared(compare: Compare, model: Model, tmp_path: Path) -> None:
    other = replace(model, terms=replace(model.terms, process="other"))
    (tmp_path / "other.json").write_bytes(files.to_json(files.Exported(other, SCHEMA)))
    ran = compare(*exported(tmp_path / "node01.json", tmp_path / "other.json"), "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (2, "MODEL_OTHER")


def test_models_of_other_features_are_not_compared(compare: Compare, model: Model, tmp_path: Path) -> None:
    other = replace(model, terms=replace(model.terms, schema_digest=Digest.of(b"other features")))
    (tmp_path / "other.json").write_bytes(files.to_json(files.Exported(other)))
    ran = compare(*exported(tmp_path / "node01.json", tmp_path / "other.json"), "--json")
    error = json.loads(ran.stdout)["error"]
    assert (ran.exit_code, error["code"]) == (2, "COMPARE_MODELS")
    assert "other features" in error["cause"]


def test_exported_models_without_digests_are_for_the_ledger_to_confirm(
    compare: Compare, tmp_path: Path
) -> None:
    ran = compare("--model", tmp_path / "node01.json", "--model", tmp_path / "node06.json")
    assert ran.exit_code == 20


def test_published_models_are_listed_and_two_are_needed() -> None:
    class OneModel:
        """A ledger with one model of the process."""

        def __init__(self) -> None:
            self.models = self

        def list(self, process: str) -> list[SimpleNamespace]:
            return [SimpleNamespace(process=process, node="node01")]

        def __enter__(self) -> "OneModel":
            return self

        def __exit__(self, *_: object) -> None:
            return

    caller: Any = SimpleNamespace(ledger=OneModel)
    for nodes in ((), ("node06", "node06")):
        with pytest.raises(UsageError, match="1 model of fraud"):
            published(caller, "fraud", nodes)


@pytest.mark.parametrize(
    ("counts", "more", "code"),
    [
        ((0, 2), (), "DIGEST_ALONE"),
        ((1, 1), (), "COMPARE_MODELS"),
        ((2, 1), (), "COMPARE_MODELS"),
        ((2, 2), ("--node", "node01"), "COMPARE_MODELS"),
    ],
)
def test_files_and_digests_that_do_not_belong_together_are_refused(
    compare: Compare, tmp_path: Path, counts: tuple[int, int], more: tuple[str, ...], code: str
) -> None:
    paths = (tmp_path / "node01.json", tmp_path / "node06.json")
    given = [word for path in paths[: counts[0]] for word in ("--model", path)]
    given += [word for path in paths[: counts[1]] for word in ("--digest", Digest.of(path.read_bytes()))]
    ran = compare(*given, *more, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (2, code)
