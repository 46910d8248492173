"""A user's CSV file to experiment on: accepted whole, or refused with file, line and remedy."""

from pathlib import Path

import numpy as np
import pytest

from executor.errors import DatasetError
from executor.exits import DATA_UNUSABLE, exit_code
from executor.experiment.files import read_table
from protocol.errors import AttestreeError

GOOD = "a,b,Class\n1,2.5,0\n-3e-2,4,1\n"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "rows.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(tmp_path: Path, text: str | bytes, **options: object) -> AttestreeError:
    with pytest.raises(AttestreeError) as caught:
        read_table(written(tmp_path, text), **({"label": "Class"} | options))  # type: ignore[arg-type]
    assert "rows.csv" in caught.value.cause
    assert caught.value.remedy
    assert exit_code(caught.value) == DATA_UNUSABLE
    return caught.value


def test_values_labels_and_names_arrive(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, GOOD), "Class")
    assert table.X.tolist() == [[1, 2.5], [-0.03, 4]]
    assert table.y.tolist() == [0, 1]
    assert table.features == ("a", "b")


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("a,b,Class", '"a","b","Class"'),
        GOOD.replace(",0\n", ',"0"\n'),
        GOOD + "\n\n",
        GOOD.rstrip("\n"),
    ],
    ids=["bom", "crlf", "semicolon", "tab", "quoted-header", "quoted-cell", "blank-end", "no-newline"],
)
def test_g7_other_spellings_of_csv_read_the_same(tmp_path: Path, text: str | bytes) -> None:
    table = read_table(written(tmp_path, text), "Class")
    assert table.X.tolist() == [[1, 2.5], [-0.03, 4]]
    assert table.y.tolist() == [0, 1]


@pytest.mark.parametrize("missing", ["", "NA", "nan", "null", " n/a "])
def test_missing_values_become_nan(tmp_path: Path, missing: str) -> None:
    table = read_table(written(tmp_path, GOOD + f"{missing},7,0\n"), "Class")
    assert np.isnan(table.X[2, 0])
    assert table.X[2, 1] == 7


def test_g1_no_anomalous_row_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "a,Class\n1,0\n2,0\n").code == "DATA_ONE_CLASS"


def test_g2_one_row_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "a,Class\n1,0\n").code == "DATA_TOO_SMALL"


def test_g3_column_without_a_value_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, "a,b,Class\n1,,0\n2,,1\n")
    assert (error.code, error.remedy) == ("DATA_VALUE", "Use --drop b.")


def test_g3_column_without_a_value_can_be_dropped(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "a,b,Class\n1,,0\n2,,1\n"), "Class", ["b"]).features == ("a",)


def test_g4_missing_label_column_is_named_and_no_value_is(tmp_path: Path) -> None:
    error = refusal(tmp_path, GOOD, label="fraud")
    assert error.code == "DATA_COLUMN"
    assert "'fraud' among the 3" in error.cause


def test_g4_missing_label_cell_names_the_line(tmp_path: Path) -> None:
    error = refusal(tmp_path, GOOD + "1,2,\n")
    assert error.code == "DATA_LABEL"
    assert "line 4" in error.cause


@pytest.mark.parametrize("value", ["2", "yes", "0.5", "nan", "-1"])
def test_label_that_is_neither_0_nor_1_is_refused(tmp_path: Path, value: str) -> None:
    error = refusal(tmp_path, GOOD + f"1,2,{value}\n")
    assert error.code == "DATA_LABEL"
    assert "line 4" in error.cause


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999", "card", "1_000", "0x1p3", "1 2", "--1"])
def test_g5_string_or_infinite_value_names_line_and_column(tmp_path: Path, value: str) -> None:
    error = refusal(tmp_path, GOOD + f"1,{value},0\n")
    assert error.code == "DATA_VALUE"
    assert "line 4, column 'b'" in error.cause


def test_g5_decimal_comma_is_refused_with_the_remedy(tmp_path: Path) -> None:
    assert "decimal point" in refusal(tmp_path, "a;Class\n1,5;0\n2,5;1\n").remedy


def test_g5_string_column_can_be_dropped(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "who,a,Class\nann,1,0\nbob,2,1\n"), "Class", ["who"])
    assert table.X.tolist() == [[1], [2]]


def test_g6_duplicate_rows_are_kept(tmp_path: Path) -> None:
    assert len(read_table(written(tmp_path, GOOD + "1,2.5,0\n"), "Class").y) == 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "DATA_EMPTY"),
        (b"\n", "DATA_HEADER"),
        (b"a,Class\n", "DATA_EMPTY"),
        (b"1,2,0\n3,4,1\n", "DATA_HEADER"),
        (b"a,a,Class\n1,2,0\n3,4,1\n", "DATA_HEADER"),
        (b"Class\n0\n1\n", "DATA_COLUMN"),
        (b"a,Class\n1,0\n2\n", "DATA_ROW"),
        (b"a,Class\n1,0\n2,1,3\n", "DATA_ROW"),
        (b"PK\x03\x04rest", "DATA_FORMAT"),
        (b"\x1f\x8brest", "DATA_FORMAT"),
        (b"a,Class\n1,0\n\xff\xfe,1\n", "DATA_FORMAT"),
        (b",".join(b"c%d" % i for i in range(65_536)) + b",Class\n", "DATA_COLUMN"),
    ],
)
def test_g8_file_that_is_no_table_is_refused(tmp_path: Path, text: bytes, code: str) -> None:
    assert refusal(tmp_path, text).code == code


def test_absent_file_and_directory_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(DatasetError, match="DATA_FILE"):
            read_table(path, "Class")
