"""A node's private data: accepted whole with a defined meaning, or refused with where and remedy."""

import contextlib
import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.data import Dataset, load, source
from executor.data import csv as csv_reader
from executor.data.columns import Columns
from executor.data.dataset import load_features
from executor.errors import DatasetError
from executor.exits import DATA_UNUSABLE, exit_code
from learning.fit import FitOptions, FitTask, fit
from learning.rows import Rows
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.task.commitment import data_commitment
from protocol.trees.limits import TreeLimits

GOOD = "a,b,Class\n1,2.5,0\n-3e-2,4,1\n"
ALL = "FORMAT VALUE LABEL COLUMN HEADER SIZE EMPTY"
MAXIMUM = 3.4028235677973366e38  # the first number that rounds to infinity in float32


@pytest.fixture
def csv(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "rows.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    def write(columns: dict[str, Any] | pa.Table, **options: Any) -> Path:
        path = tmp_path / "rows.parquet"
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
        return path

    return write


def refusal(path: Path, label: str = "Class", drop: tuple[str, ...] = ()) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        load(path, label, drop)
    assert path.name in caught.value.cause
    assert caught.value.remedy.endswith(".")
    assert exit_code(caught.value) == DATA_UNUSABLE
    return caught.value


def trained(data: Dataset) -> int:
    """How many trees FIT grows on the rows."""
    limits = TreeLimits(n_features=data.table.n_features)
    rows = Rows.of(data.table.X, data.table.y)
    return len(fit(rows, FitTask("node00", 0, 0, 3, 7, FitOptions(), limits)))


def test_csv_and_parquet_of_the_same_rows_are_the_same_table(csv: Any, parquet: Any) -> None:
    first = load(csv(GOOD), "Class")
    second = load(parquet({"a": [1.0, -0.03], "b": [2.5, 4.0], "Class": [0, 1]}), "Class")
    assert first.table == second.table
    assert first.table.X.tolist() == [[1, 2.5], [np.float32(-0.03), 4]]
    assert first.table.y.tolist() == [0, 1]
    assert first.schema == second.schema == FeatureSchema(("a", "b"), "Class")
    assert first.file == Digest.of(GOOD.encode())
    assert first.file != second.file


# --- G1 to G8


def test_g1_node_without_anomalies_takes_part(csv: Any, parquet: Any) -> None:
    for path in (csv("a,Class\n1,0\n2,0\n"), parquet({"a": [1, 2], "Class": [0, 0]})):
        data = load(path, "Class")
        assert data.table.y.tolist() == [0, 0]
        assert trained(data) == 3


def test_g2_node_with_one_row_takes_part(csv: Any, parquet: Any) -> None:
    for path in (csv("a,Class\n1,1\n"), parquet({"a": [1], "Class": [1]})):
        data = load(path, "Class")
        assert data.table.n_rows == 1
        assert trained(data) == 3


def test_g3_column_without_a_value_is_missing_throughout(csv: Any, parquet: Any) -> None:
    null = pa.nulls(2)
    for path in (csv("a,b,Class\n1,,0\n2,,1\n"), parquet({"a": [1, 2], "b": null, "Class": [0, 1]})):
        data = load(path, "Class")
        assert np.isnan(data.table.X[:, 1]).all()
        assert trained(data) == 3


def test_g4_missing_label_column_is_named_and_no_value_is(csv: Any, parquet: Any) -> None:
    for path in (csv(GOOD), parquet({"a": [1], "b": [2], "Class": [0]})):
        error = refusal(path, label="fraud")
        assert error.code == "DATA_COLUMN"
        assert "'fraud' among the 3" in error.cause


def test_g4_missing_label_names_the_row(csv: Any, parquet: Any) -> None:
    error = refusal(csv(GOOD + "1,2,\n"))
    assert (error.code, "line 4, column 'Class'" in error.cause) == ("DATA_LABEL", True)
    error = refusal(parquet({"a": [1, 2], "Class": [0, None]}))
    assert (error.code, "row 2, column 'Class'" in error.cause) == ("DATA_LABEL", True)


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999", "3.5e38", "-1e39", "card", "1_000", "0x1p3"])
def test_g5_text_infinity_or_a_number_beyond_float32_names_line_and_column(csv: Any, value: str) -> None:
    error = refusal(csv(GOOD + f"1,{value},0\n"))
    assert error.code == "DATA_VALUE"
    assert "line 4, column 'b'" in error.cause
    said = error.cause.partition("column 'b'")[2]
    assert said in {": not a number", ": infinite, or beyond float32"}  # where it stands, not what it is


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), 3.5e38, -1e39, MAXIMUM])
def test_g5_infinity_or_a_number_beyond_float32_names_row_and_column(parquet: Any, value: float) -> None:
    error = refusal(parquet({"a": [1.0, 2.0, value], "Class": [0, 1, 0]}))
    assert error.code == "DATA_VALUE"
    assert "row 3, column 'a'" in error.cause


def test_g5_largest_number_of_float32_is_kept(csv: Any) -> None:
    below = np.nextafter(MAXIMUM, 0)
    data = load(csv(f"a,Class\n{float(below)!r},0\n1e-60,1\n"), "Class")
    assert data.table.X[0, 0] == np.finfo(np.float32).max
    assert data.table.X[1, 0] == 0  # too small to be told from zero


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", "y"]),
        pa.array(["x", "y"]).dictionary_encode(),
        pa.array([b"x", b"y"]),
        pa.array([[1.0], [2.0]]),
        pa.array([{"f": 1}, {"f": 2}]),
        pa.array([[(1, 2)], []], pa.map_(pa.int8(), pa.int8())),
        pa.array([0, 1], pa.timestamp("s")),
        pa.array([0, 1], pa.date32()),
        pa.array([0, 1], pa.duration("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_g5_column_that_is_no_number_is_refused_by_type_and_can_be_dropped(parquet: Any, column: Any) -> None:
    path = parquet({"a": [1, 2], "odd": column, "Class": [0, 1]})
    error = refusal(path)
    assert error.code == "DATA_VALUE"
    assert "'odd'" in error.cause
    assert "--drop" in error.remedy
    assert load(path, "Class", ["odd"]).schema.features == ("a",)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 3], pa.int8()),
        pa.array([0, 3], pa.uint64()),
        pa.array([0, 3], pa.float16()),
        pa.array([0, 3], pa.float32()),
        pa.array([0, 3], pa.decimal128(5, 2)),
        pa.array([0, 3], pa.int64()).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_every_type_of_number_is_read(parquet: Any, column: Any) -> None:
    data = load(parquet({"a": column, "Class": [True, False]}), "Class")
    assert data.table.X.ravel().tolist() == [0, 3]
    assert data.table.y.tolist() == [1, 0]


def test_nulls_of_parquet_are_missing_values(parquet: Any) -> None:
    columns = {
        "i": pa.array([1, None]),
        "f": [None, float("nan")],
        "d": pa.array([None, 2]).dictionary_encode(),
        "b": [True, None],
        "Class": [0, 1],
    }
    X = load(parquet(columns), "Class").table.X
    assert np.isnan(X).tolist() == [[False, True, True, False], [True, True, False, True]]


@pytest.mark.parametrize("label", [[0, 2], [0.5, 1.0], [-1, 1]])
def test_label_that_is_neither_0_nor_1_is_refused(parquet: Any, label: list[float]) -> None:
    assert refusal(parquet({"a": [1, 2], "Class": label})).code == "DATA_LABEL"


def test_g6_duplicate_rows_are_kept(csv: Any) -> None:
    assert load(csv(GOOD + "1,2.5,0\n1,2.5,0\n"), "Class").table.n_rows == 4


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("a,b", '" a ","b"'),
        GOOD + "\n\n",
    ],
    ids=["bom", "crlf", "semicolon", "tab", "quoted", "blank-end"],
)
def test_g7_other_spellings_of_csv_are_other_files_with_the_same_rows(csv: Any, text: str | bytes) -> None:
    plain = load(csv(GOOD), "Class")
    other = load(csv(text), "Class")
    assert (other.table, other.schema) == (plain.table, plain.schema)
    assert other.file != plain.file


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "DATA_EMPTY"),
        (b"\n", "DATA_HEADER"),
        (b"\xef\xbb\xbf", "DATA_HEADER"),
        (b"a,Class\n", "DATA_EMPTY"),
        (b"1,2,0\n3,4,1\n", "DATA_HEADER"),
        (b"a,a,Class\n1,2,0\n", "DATA_HEADER"),
        (b",a,Class\n0,2,0\n", "DATA_HEADER"),
        (b"a\x01,Class\n0,0\n", "DATA_HEADER"),
        (b"Class\n0\n1\n", "DATA_COLUMN"),
        (b"a,Class\n1,0\n2\n", "DATA_ROW"),
        (b"a,Class\n1,0\n2,1,3\n", "DATA_ROW"),
        (b"PK\x03\x04rest", "DATA_FORMAT"),
        (b"PAR1rest", "DATA_COLUMN"),
        (b"\x00" * 100, "DATA_COLUMN"),
        (b"a,Class\n" + b'"' + b"x" * 200_000 + b'",0\n', "DATA_FORMAT"),
    ],
)
def test_g8_file_that_is_no_table_is_refused(csv: Any, text: bytes, code: str) -> None:
    assert refusal(csv(text)).code == code


def test_g8_bytes_that_are_no_text_name_the_line(csv: Any) -> None:
    error = refusal(csv(b"a,Class\n1,0\n\xff\xfe,1\n"))
    assert (error.code, "line 3" in error.cause) == ("DATA_FORMAT", True)


def test_g8_parquet_without_rows_is_refused(parquet: Any) -> None:
    assert (
        refusal(parquet({"a": pa.array([], pa.int8()), "Class": pa.array([], pa.int8())})).code
        == "DATA_EMPTY"
    )


# --- Names


def test_names_have_one_form(csv: Any) -> None:
    composed, decomposed = "d\u00e9bit", "de\u0301bit"
    assert load(csv(f"{decomposed},Class\n1,0\n"), "Class").schema.features == (composed,)
    assert load(csv(f"a,{decomposed}\n1,0\n"), composed).schema.label == composed


def test_index_that_pandas_wrote_is_not_taken_for_a_feature(parquet: Any) -> None:
    error = refusal(parquet({"a": [1], "Class": [0], "__index_level_0__": [7]}))
    assert error.remedy == "Use --drop __index_level_0__."


def test_dotted_names_of_parquet_are_told_apart(parquet: Any) -> None:
    data = load(parquet({"a.b": [1, 2], "a": [3, 4], "Class": [0, 1]}), "Class")
    assert data.table.X.tolist() == [[1, 3], [2, 4]]


def test_parquet_with_one_name_twice_is_refused(parquet: Any) -> None:
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([0])], names=["a", "a", "Class"])
    assert refusal(parquet(table)).code == "DATA_HEADER"


def test_rows_without_label_can_be_read_to_be_scored(csv: Any, parquet: Any) -> None:
    for path in (csv("a,who,b\n1,x,2\n"), parquet({"a": [1], "who": ["x"], "b": [2]})):
        X, names = load_features(path, ["who"])
        assert (X.tolist(), names) == ([[1, 2]], ("a", "b"))


# --- Hostile and damaged files

CELLS = (
    st.text("0123456789.+-eEnaifxN_ \"'\u0661\x0c\r", max_size=5) | st.floats().map(repr) | st.just("-nan")
)


@given(st.lists(st.tuples(CELLS, st.sampled_from(["0", "1", "1.0", " 1", "", "2"])), min_size=1, max_size=3))
def test_fast_reader_gives_what_the_checked_one_gives(rows: list[tuple[str, str]]) -> None:
    text = "".join(f"{cell},{label}\n" for cell, label in rows)
    columns = Columns(Path("rows.csv"), ["a", "Class"], "Class")
    fast = csv_reader._read_fast(io.StringIO(text, newline=""), ",", columns)
    if fast is not None:
        checked = csv_reader._read_checked(io.StringIO(text, newline=""), ",", columns)
        np.testing.assert_array_equal(fast, checked)


@given(st.binary(max_size=60), st.sampled_from([b"", b"a,Class\n1,0\n", b"a;b;Class\n", b"\xef\xbb\xbf"]))
def test_no_bytes_crash_the_reader(raw: bytes, start: bytes) -> None:
    with contextlib.suppress(DatasetError):
        csv_reader.parse(Path("rows.csv"), start + raw, "Class")


def test_size_is_refused_before_anything_is_read(csv: Any, parquet: Any, monkeypatch: Any) -> None:
    paths = [csv(GOOD), parquet({"a": np.zeros(1000), "Class": np.zeros(1000, np.int8)})]
    monkeypatch.setattr(source, "MAX_CELLS", 5)
    assert [refusal(path).code for path in paths] == ["DATA_SIZE", "DATA_SIZE"]
    monkeypatch.setattr(source, "MAX_CELLS", 10_000)
    monkeypatch.setattr(source, "MAX_FILE_BYTES", 20)
    assert [refusal(path).code for path in paths] == ["DATA_SIZE", "DATA_SIZE"]


def test_small_file_that_unpacks_to_much_is_refused(parquet: Any) -> None:
    long = "x" * 50_000_000
    path = parquet({"a": [1], "who": [long], "Class": [0]}, compression="zstd")
    assert path.stat().st_size < 100_000
    assert refusal(path, drop=("who",)).code == "DATA_SIZE"


def test_damaged_parquet_is_refused_or_read_but_never_crashes(parquet: Any, tmp_path: Path) -> None:
    rows = {"a": np.arange(300) / 7, "b": [None, 1.5] * 150, "Class": np.arange(300) % 2}
    raw = parquet(rows, compression="zstd").read_bytes()
    rng, path, codes = random.Random(5), tmp_path / "damaged.parquet", []
    for trial in range(300):
        broken = bytearray(raw if trial % 3 else raw[: rng.randrange(len(raw))])
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        path.write_bytes(broken)
        try:
            load(path, "Class")
        except DatasetError as error:
            codes.append(error.code)
    assert codes.count("DATA_FORMAT") > 100
    assert set(codes) <= {f"DATA_{word}" for word in ALL.split()}


@pytest.mark.parametrize("magic", [b"PARE", b"PAR1"])
def test_encrypted_or_cut_off_parquet_is_named(tmp_path: Path, magic: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(magic + b"x" * 50 + b"PARE")
    assert refusal(path).code == "DATA_FORMAT"


def test_absent_file_directory_pipe_and_device_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "none.csv", tmp_path, pipe, Path("/dev/zero"), Path("nul\0")):
        with pytest.raises(DatasetError, match="DATA_FILE"):
            load(path, "Class")


# --- The commitment, and change


@pytest.mark.parametrize("change", ["same size and time", "appended", "removed", "replaced by a directory"])
def test_file_that_changes_during_the_round_is_noticed(csv: Any, change: str) -> None:
    path = csv(GOOD)
    data = load(path, "Class")
    data.unchanged()
    before = path.stat()
    if change == "same size and time":
        path.write_text(GOOD.replace("2.5", "3.5"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
    elif change == "appended":
        path.write_text(GOOD + "1,2,0\n")
    else:
        path.unlink()
        if change != "removed":
            path.mkdir()
    with pytest.raises(DatasetError, match="DATA_CHANGED") as caught:
        data.unchanged()
    assert exit_code(caught.value) == DATA_UNUSABLE


def test_touched_file_with_the_same_bytes_is_unchanged(csv: Any) -> None:
    data = load(csv(GOOD), "Class")
    csv(GOOD)
    data.unchanged()


def test_commitment_of_a_dataset_binds_file_rows_schema_and_salt(csv: Any) -> None:
    salt = bytes(range(32))
    data = load(csv(GOOD), "Class")
    assert data.commitment(salt) == data_commitment(salt, data.file, data.table.digest, data.schema.digest)
    others = [
        load(csv(GOOD.replace("2.5", "2.50")), "Class"),
        load(csv(GOOD.replace("2.5", "2.6")), "Class"),
        load(csv(GOOD.replace("a,b", "b,a")), "Class"),
    ]
    commitments = [data.commitment(salt), data.commitment(bytes(32)), *(d.commitment(salt) for d in others)]
    assert len(set(commitments)) == len(commitments)
