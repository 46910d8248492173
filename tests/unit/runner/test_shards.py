"""Unit tests are dealt out to processes: every file once, alike every time, or by a seed."""

from pathlib import Path

import pytest
from runner.shards import COSTS, cost, files_of, shards, shuffled_shards
from runner.surroundings import ROOT

WHOLE = ["tests/unit"]
TEST = "tests/unit/runner/test_shards.py::test_every_file_is_dealt_once"


@pytest.mark.parametrize("dealt", [shards(WHOLE, 3), shuffled_shards(WHOLE, 7, 3)])
def test_every_file_is_dealt_once(dealt: list[list[str]]) -> None:
    there = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests/unit").rglob("test_*.py"))
    assert sorted(file for files in dealt for file in files) == there
    assert len(dealt) == 3


def test_processes_have_about_the_same_to_do() -> None:
    costs = [sum(cost(file) for file in files) for files in shards(WHOLE, 3)]
    assert max(costs) < 1.1 * min(costs)


def test_places_that_cost_more_are_there() -> None:
    for place in COSTS:
        assert any(file.startswith(f"tests/unit/{place}") for file in files_of(WHOLE)), place


def test_neighbours_stay_together() -> None:
    first, second, third = shards(WHOLE, 3)
    assert [*first, *second, *third] == sorted(files_of(WHOLE))


def test_which_files_meet_depends_on_the_seed_alone() -> None:
    assert shards(WHOLE) == shards(WHOLE)
    assert shuffled_shards(WHOLE, 1) == shuffled_shards(WHOLE, 1)
    assert shuffled_shards(WHOLE, 1) != shuffled_shards(WHOLE, 2)


def test_no_process_is_left_without_a_file_since_pytest_would_run_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.shards.ROOT", tmp_path)
    for number in range(24):
        (tmp_path / f"test_{number:02}.py").write_text("#" * (10_000 if number == 0 else 1))
    dealt = shards(["."], 3)
    assert [len(files) for files in dealt] == [1, 23]


@pytest.mark.parametrize("few", [[TEST], ["tests/unit/runner/test_shards.py"], ["tests/unit/runner"]])
def test_a_few_tests_have_one_process(few: list[str]) -> None:
    assert shards(few) == [sorted(files_of(few))]
    assert len(shuffled_shards(few, 1)) == 1
