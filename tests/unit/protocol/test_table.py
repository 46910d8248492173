import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import TableError
from protocol.task.table import Table

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "table-v1.json").read_text(encoding="utf-8"))
TABLE = Table(np.array([[0.5, np.nan], [-1.0, 2.0]], np.float32), np.array([0, 1]))


def raw_table(values, labels, n_features=1, version=1, n_rows=None):
    """Write a table by docs/formats/table-v1.md; the values are given as bits."""
    header = struct.pack("<BIH", version, len(labels) if n_rows is None else n_rows, n_features)
    return header + struct.pack(f"<{len(values)}I", *values) + bytes(labels)


def refusal_of(raw):
    with pytest.raises(TableError) as refusal:
        Table.from_bytes(raw)
    return refusal.value.code


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_tables_keep_their_bytes(case):
    values = [[np.nan if text is None else float(text) for text in row] for row in case["X"]]
    table = Table(np.array(values, np.float32), np.array(case["y"]))
    assert table.to_bytes().hex() == case["bytes"]
    assert str(table.digest) == case["digest"]
    again = Table.from_bytes(bytes.fromhex(case["bytes"]))
    assert again == table
    assert np.array_equal(again.X, np.array(values, np.float32), equal_nan=True)
    assert again.y.tolist() == case["y"]


def test_values_are_aligned_and_nothing_can_be_written():
    for table in (TABLE, Table.from_bytes(TABLE.to_bytes())):
        assert table.X.flags.aligned
        assert table.X.flags.c_contiguous
        for array in (table.X, table.y):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(AttributeError):
            table.X = table.X


def test_the_given_arrays_stay_the_callers():
    X, y = np.zeros((2, 1), np.float32), np.array([0, 1])
    table = Table(X, y)
    X[0], y[0] = 7, 1
    assert (table.X[0, 0], table.y[0]) == (0, 0)


def test_every_nan_and_every_zero_gets_its_one_spelling():
    odd = np.array([[0x7FC00001], [0xFFC00000], [0x80000000]], np.uint32).view(np.float32)
    plain = Table(np.array([[np.nan], [np.nan], [0.0]], np.float32), np.array([0, 0, 1]))
    assert Table(odd, np.array([0, 0, 1])).to_bytes() == plain.to_bytes()


@pytest.mark.parametrize("bits", [0x7FC00001, 0xFFC00000, 0x7F800001, 0x80000000, 0x7F800000, 0xFF800000])
def test_second_spellings_and_infinities_are_refused(bits):
    assert refusal_of(raw_table([0x3F800000, bits], [0, 1])) == "TABLE_VALUE"


def test_a_refused_value_is_not_told():
    raw = raw_table([0x3F800000, 0x7F800000], [0, 1])
    with pytest.raises(TableError, match="row 1, column 0"):
        Table.from_bytes(raw)
    with pytest.raises(TableError) as refusal:
        Table.from_bytes(raw_table([0x3F800000], [77]))
    assert "77" not in str(refusal.value)


@pytest.mark.parametrize("label", [2, 255])
def test_labels_beyond_0_and_1_are_refused(label):
    assert refusal_of(raw_table([0], [label])) == "TABLE_LABEL"
    with pytest.raises(TableError) as refusal:
        Table(np.zeros((1, 1), np.float32), np.array([label]))
    assert refusal.value.code == "TABLE_LABEL"


def test_truncation_and_trailing_bytes_are_refused():
    raw = TABLE.to_bytes()
    assert refusal_of(raw + b"\0") == "TABLE_LENGTH"
    for length in range(len(raw)):
        assert refusal_of(raw[:length]) == "TABLE_LENGTH"


def test_counts_that_announce_more_than_there_is_are_refused_at_once():
    assert refusal_of(raw_table([0], [0], n_features=65_535, n_rows=2**32 - 1)) == "TABLE_LENGTH"


@pytest.mark.parametrize("raw", [raw_table([], []), raw_table([], [0], n_features=0)])
def test_a_table_without_rows_or_features_is_refused(raw):
    assert refusal_of(raw) == "TABLE_SHAPE"


@pytest.mark.parametrize("raw", [raw_table([0], [0], version=0), raw_table([0], [0], version=2), b"\x80" * 9])
def test_bytes_of_another_format_are_refused(raw):
    assert refusal_of(raw) == "TABLE_VERSION"


@pytest.mark.parametrize("raw", [None, "rows", bytearray(TABLE.to_bytes())])
def test_what_is_not_bytes_is_refused(raw):
    assert refusal_of(raw) == "TABLE_INPUT"


@pytest.mark.parametrize(
    ("X", "y", "code"),
    [
        ([[1.0]], np.array([0]), "TABLE_INPUT"),
        (np.zeros((1, 1)), np.array([0]), "TABLE_INPUT"),
        (np.zeros(1, np.float32), np.array([0]), "TABLE_INPUT"),
        (np.zeros((1, 1), np.float32), [0], "TABLE_INPUT"),
        (np.zeros((1, 1), np.float32), np.array([0.0]), "TABLE_INPUT"),
        (np.zeros((1, 1), np.float32), np.array([[0]]), "TABLE_INPUT"),
        (np.zeros((2, 1), np.float32), np.array([0]), "TABLE_SHAPE"),
        (np.zeros((0, 1), np.float32), np.array([], int), "TABLE_SHAPE"),
        (np.zeros((1, 65_536), np.float32), np.array([0]), "TABLE_SHAPE"),
        (np.full((1, 1), np.inf, np.float32), np.array([0]), "TABLE_VALUE"),
    ],
)
def test_other_arrays_are_refused(X, y, code):
    with pytest.raises(TableError) as refusal:
        Table(X, y)
    assert refusal.value.code == code


values = st.floats(width=32, allow_infinity=False)


@given(st.lists(st.tuples(values, values, st.booleans()), min_size=1, max_size=6))
def test_tables_survive_the_round_trip(rows):
    table = Table(np.array([row[:2] for row in rows], np.float32), np.array([row[2] for row in rows]))
    again = Table.from_bytes(table.to_bytes())
    assert again == table
    assert hash(again) == hash(table)
    assert again.to_bytes() == table.to_bytes()
    assert np.array_equal(again.X, table.X, equal_nan=True)


@given(st.binary(max_size=40), st.integers(0, 4), st.integers(0, 3))
def test_bytes_with_a_plausible_header_are_refused_or_are_a_table(rest, n_rows, n_features):
    raw = struct.pack("<BIH", 1, n_rows, n_features) + rest
    try:
        table = Table.from_bytes(raw)
    except TableError:
        return
    assert Table(table.X, table.y).to_bytes() == raw
