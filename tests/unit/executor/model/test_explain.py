"""Explaining a scored row, and comparing models, on a machine without a network."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.published import SCHEMA, values

from executor.cli import main
from executor.model import files
from executor.model.compare import compared, comparison_text
from executor.model.content import Model
from learning.ensemble import Ensemble
from protocol.digest import Digest


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
