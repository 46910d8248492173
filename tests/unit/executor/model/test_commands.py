"""Scoring rows with an exported file, on a machine without a network."""

import csv
import io
import json
import os
from errno import ENOSPC
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.published import SCHEMA, values

from executor.cli import main
from executor.model import files
from executor.model.content import Model
from protocol.digest import Digest


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTESTREE_STATE", str(tmp_path / "nowhere"))


@pytest.fixture
def exported(model: Model, tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_bytes(files.to_json(files.Exported(model, SCHEMA)))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [",".join((*SCHEMA.features, "name"))]
    for i, row in enumerate(values(40, 9)):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in row]
        lines.append(",".join((*cells, f"row {i}")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def predict(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["model", "predict", "fraud", "node01", *map(str, arguments)])


def given(exported: Path) -> tuple[str, ...]:
    """Name an exported file with the digest that came with it."""
    return ("--model", str(exported), "--digest", str(Digest.of(exported.read_bytes())))


def test_scores_and_decisions_on_stdout_a_summary_beside_them(
    model: Model, exported: Path, data: Path
) -> None:
    ran = predict(data, *given(exported), "--keep", "name")
    assert ran.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(ran.stdout)))
    scores = model.scores(values(40, 9))
    assert [float(row["score"]) for row in rows] == scores.tolist()
    assert [row["anomalous"] for row in rows] == [str(int(score > 0.3)) for score in scores]
    assert [row["name"] for row in rows] == [f"row {i}" for i in range(40)]
    assert [row["row"] for row in rows] == [str(i) for i in range(1, 41)]
    assert ran.stderr == f"40 rows, {(scores > 0.3).sum()} anomalous above 0.3\n"


def test_another_threshold_changes_decisions_alone(exported: Path, data: Path) -> None:
    shipped = json.loads(predict(data, *given(exported), "--json").stdout)
    strict = json.loads(predict(data, *given(exported), "--json", "--threshold", "0.9").stdout)
    assert strict["scores"] == shipped["scores"]
    assert strict["anomalous"] < shipped["anomalous"]
    assert strict["threshold"] == 0.9


def test_a_threshold_that_is_no_number_decides_nothing(exported: Path, data: Path) -> None:
    ran = predict(data, *given(exported), "--json", "--threshold", "nan")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "'nan' is not a number" in ran.stderr


def test_scores_that_cannot_be_written_are_one_error_and_no_answer(
    exported: Path, data: Path, tmp_path: Path
) -> None:
    ran = predict(data, *given(exported), "--json", "--out", data / "scores.csv")
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["error"]["code"] == "HOST_FAILED"
    out = tmp_path / "scores.csv"
    assert json.loads(predict(data, *given(exported), "--json", "--out", out).stdout)["out"] == str(out)
    assert len(out.read_text("utf-8").splitlines()) == 41
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]


def test_scores_take_the_place_of_a_file_whole_or_leave_it(
    exported: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, name = tmp_path / "scores.csv", tmp_path / "link.csv"
    out.write_text("old")
    name.symlink_to(out)

    def full(path: Path, raw: bytes) -> int:
        path.write_text(raw[: len(raw) // 2].decode())
        raise OSError(ENOSPC, os.strerror(ENOSPC), str(path))

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        assert predict(data, *given(exported), "--out", name).exit_code == 1
    assert out.read_text() == "old"
    assert predict(data, *given(exported), "--out", name).exit_code == 0
    assert name.is_symlink()
    assert out.read_text().startswith("row,score,anomalous\n1,")
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]


def test_scores_are_written_to_a_device_as_it_is(exported: Path, data: Path) -> None:
    assert predict(data, *given(exported), "--out", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_the_file_of_another_model_is_refused(exported: Path, data: Path) -> None:
    ran = CliRunner().invoke(
        main, ["model", "predict", "fraud", "node06", str(data), *given(exported), "--json"]
    )
    assert ran.exit_code == 2
    assert json.loads(ran.stdout)["error"]["code"] == "MODEL_OTHER"


def test_d_an_altered_file_is_refused_before_a_row_is_read(exported: Path, data: Path) -> None:
    digest = Digest.of(exported.read_bytes())
    record = json.loads(exported.read_text("utf-8"))
    record["estimators"].pop()
    exported.write_text(json.dumps(record), encoding="utf-8")
    data.write_text("", encoding="utf-8")
    ran = predict(data, "--model", exported, "--digest", digest)
    assert ran.exit_code == 14
    assert ran.stdout == ""
    assert "MODEL_ALTERED" in ran.stderr


def test_rows_without_the_features_are_refused(exported: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("V0,V1\n1,2\n", encoding="utf-8")
    ran = predict(other, *given(exported), "--json")
    assert ran.exit_code == 40
    assert json.loads(ran.stdout)["error"]["code"] == "DATA_COLUMN"


def test_the_ledger_needs_a_network(data: Path) -> None:
    assert predict(data).exit_code == 20


def test_h20_a_file_without_its_digest_is_for_the_ledger_to_confirm(exported: Path, data: Path) -> None:
    assert predict(data, "--model", exported).exit_code == 20


def test_a_digest_without_a_file_is_refused(exported: Path, data: Path) -> None:
    ran = predict(data, *given(exported)[2:], "--json")
    assert ran.exit_code == 2
    assert json.loads(ran.stdout)["error"]["code"] == "DIGEST_ALONE"
