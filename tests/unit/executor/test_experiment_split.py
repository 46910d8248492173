"""`executor experiment split` through its command line: files for a federation, or a refusal."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from executor.cli import main
from executor.data import load
from executor.exits import DATA_UNUSABLE, INVALID_PAYLOAD, OK, USAGE


def split(out: Path, *options: str) -> Result:
    command = ["experiment", "split", "--out", str(out), *options]
    return CliRunner().invoke(main, command, catch_exceptions=False)


def test_every_node_gets_a_file_and_nobody_the_test_rows(tmp_path: Path) -> None:
    out = tmp_path / "parts"
    result = split(out, "--synthetic", "--node", "a", "--node", "b", "--json")
    assert result.exit_code == OK
    assert json.loads(result.stdout) == {"files": [str(out / f"{name}.csv") for name in ("a", "b", "test")]}
    tables = [load(out / f"{name}.csv", "Class").table for name in ("a", "b", "test")]
    assert sum(len(table.y) for table in tables) == 20_000
    before = (out / "a.csv").stat().st_mtime_ns
    assert (
        split(out, "--synthetic", "--node", "a", "--node", "b").stdout
        == f"{out}/a.csv\n{out}/b.csv\n{out}/test.csv\n"
    )
    assert (out / "a.csv").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("options", "code", "number"),
    [
        (("--node", "a", "--node", "a"), "SPLIT_NODES", USAGE),
        (("--node", "test"), "SPLIT_NODES", USAGE),
        (("--node", "A b"), "NAME_SYNTAX", INVALID_PAYLOAD),
        (("--node", "a", "--data", "rows.csv"), "SPLIT_OPTIONS", USAGE),
    ],
)
def test_a_usage_error_of_split_exits_with_2_and_no_refusal_as_bad_data(
    tmp_path: Path, options: tuple[str, ...], code: str, number: int
) -> None:
    result = split(tmp_path / "parts", "--synthetic", *options)
    assert result.exit_code == number != DATA_UNUSABLE
    assert result.stderr.startswith(f"error: {code}: ")
    assert (
        json.loads(split(tmp_path / "parts", "--synthetic", *options, "--json").stdout)["error"]["code"]
        == code
    )
    assert not (tmp_path / "parts").exists()


def test_a_directory_that_no_split_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    result = split(tmp_path, "--synthetic", "--node", "a")
    assert result.exit_code == USAGE
    assert "SPLIT_DIRECTORY" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_data_that_is_not_the_papers_is_unusable(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("a,Class\n1,0\n2,1\n")
    result = split(tmp_path / "parts", "--data", str(rows), "--node", "a")
    assert result.exit_code == DATA_UNUSABLE
    assert "DATA_HASH" in result.stderr
