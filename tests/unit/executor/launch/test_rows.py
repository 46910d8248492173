"""Rows that several processes use: parsed once, and never taken for those of a file that has changed."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from executor.data import load
from executor.errors import DatasetError
from executor.launch import rows as rows_module
from executor.launch.rows import KnownRows
from executor.launch.source import DataSource

ROWS = "a,b,Class\n1,2,0\n3,4,1\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "node01.csv").write_text(ROWS)
    return tmp_path / "node01.csv"


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file that is parsed, in that order."""
    found: list[Path] = []

    def parsed(path: Path, *rest: object) -> object:
        found.append(path)
        return original(path, *rest)

    original = rows_module.parsed
    monkeypatch.setattr(rows_module, "parsed", parsed)
    return found


def test_a_node_of_three_processes_has_its_rows_parsed_once(file: Path, parses: list[Path]) -> None:
    known, source = KnownRows(), DataSource(str(file.parent / "{node}.csv"))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: source.load("node01", known), range(3)))
    assert parses == [file]
    assert found[0] is found[1] is found[2]
    whole = load(file, "Class")
    assert (found[0].file, found[0].schema, found[0].path) == (whole.file, whole.schema, whole.path)
    assert found[0].table.digest == whole.table.digest


def test_rows_swapped_between_two_processes_are_not_taken_for_the_old_ones(
    file: Path, parses: list[Path]
) -> None:
    known = KnownRows()
    before = known.load(file, "Class")
    times = file.stat()
    file.write_text(ROWS.replace("3,4", "3,5"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = known.load(file, "Class")
    assert len(parses) == 2
    assert after.file != before.file
    assert after.table.digest != before.table.digest


@pytest.mark.parametrize(("label", "drop"), [("a", ()), ("Class", ("b",))])
def test_another_reading_of_the_same_bytes_is_another_table(
    file: Path, label: str, drop: tuple[str, ...]
) -> None:
    file.write_text("a,b,Class\n1,2,0\n0,4,1\n")
    known = KnownRows()
    usual, other = known.load(file, "Class"), known.load(file, label, drop)
    assert usual.file == other.file
    assert usual.schema != other.schema
    assert other.table.digest == load(file, label, drop).table.digest


def test_rows_that_nobody_uses_are_let_go(file: Path, parses: list[Path]) -> None:
    known = KnownRows()
    known.load(file, "Class")
    known.load(file, "Class")
    assert len(parses) == 2


def test_a_file_that_cannot_be_read_is_refused_though_its_rows_are_known(file: Path) -> None:
    known = KnownRows()
    kept = known.load(file, "Class")
    file.unlink()
    with pytest.raises(DatasetError) as caught:
        known.load(file, "Class")
    assert caught.value.code == "DATA_FILE"
    assert len(kept.table.y) == 2
