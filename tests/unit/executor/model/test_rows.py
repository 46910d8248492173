"""Rows to be scored: columns found by name or by the process's schema, labels not needed."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from executor.errors import DatasetError
from executor.model import rows
from protocol.agreement.schema import FeatureSchema

SCHEMA = FeatureSchema(("a", "b"), "fraud")


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("header", ["a,b", "a,b,fraud", "fraud,a,b"])
def test_the_columns_of_the_process_are_recognised(tmp_path: Path, header: str) -> None:
    path = csv(tmp_path, f"{header}\n")
    assert rows.find_schema(path, "fraud", [], SCHEMA.digest) == SCHEMA


def test_columns_to_drop_are_no_features(tmp_path: Path) -> None:
    path = csv(tmp_path, "id,a,b\n")
    assert rows.find_schema(path, "fraud", ["id"], SCHEMA.digest) == SCHEMA


@pytest.mark.parametrize(
    ("header", "label"),
    [("b,a", "fraud"), ("a,b,c", "fraud"), ("a", "fraud"), ("a,b", "Class"), ("a,a", "fraud")],
)
def test_other_columns_are_refused(tmp_path: Path, header: str, label: str) -> None:
    with pytest.raises(DatasetError, match="DATA_SCHEMA"):
        rows.find_schema(csv(tmp_path, f"{header}\n"), label, [], SCHEMA.digest)


def test_features_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    path = csv(tmp_path, "id,b,fraud,a\nx7,1.5,0,0.25\ny8,,1,na\n")
    found = rows.read(path, SCHEMA, ["id", "fraud"])
    assert np.array_equal(found.X, np.array([[0.25, 1.5], [np.nan, np.nan]], np.float32), equal_nan=True)
    assert found.kept == (("x7", "0"), ("y8", "1"))


def test_parquet_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pyarrow.table({"id": ["x", None], "b": [1.5, 2.5], "a": [0.25, None]})
    pyarrow.parquet.write_table(table, path)
    found = rows.read(path, SCHEMA, ["id"])
    assert np.array_equal(found.X, np.array([[0.25, 1.5], [np.nan, 2.5]], np.float32), equal_nan=True)
    assert found.kept == (("x",), ("",))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a,c\n1,2\n", "DATA_COLUMN"),
        ("a,b\n", "DATA_EMPTY"),
        ("a,b\n1,x\n", "DATA_VALUE"),
        ("a,b\n1,inf\n", "DATA_VALUE"),
        ("a,b\n1\n", "DATA_ROW"),
        ("", "DATA_EMPTY"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(DatasetError) as caught:
        rows.read(csv(tmp_path, text), SCHEMA)
    assert caught.value.code == code


def test_labels_are_read_where_there_are_some(tmp_path: Path) -> None:
    found = rows.labels_of(csv(tmp_path, "id,a,b,fraud\n7,1,2,0\n8,3,4,1\n"), SCHEMA)
    assert found is not None
    assert found.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b,fraud\n1,2,maybe\n", "a,b,fraud\n1,2,\n"])
def test_rows_without_usable_labels_are_scored_all_the_same(tmp_path: Path, text: str) -> None:
    path = csv(tmp_path, text)
    assert rows.labels_of(path, SCHEMA) is None
    assert rows.read(path, SCHEMA).X.tolist() == [[1.0, 2.0]]
