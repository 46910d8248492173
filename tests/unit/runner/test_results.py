"""The summary names every failed test with its command, and its last line is the sum."""

import json
import shlex
from pathlib import Path

from runner.rates import Rates, Turn
from runner.results import Test as Outcome
from runner.results import read, summary, total


def written(file: Path, *reports: tuple[str, str, str, float]) -> Path:
    lines = []
    for test, when, outcome, seconds in reports:
        lines.append(json.dumps({"id": test, "when": when, "outcome": outcome, "seconds": seconds}))
    file.write_text("\n".join(lines) + "\n")
    return file


def parts(test: str, setup: str, call: str | None, teardown: str) -> list[tuple[str, str, str, float]]:
    told = [("start", "", 0.0), ("setup", setup, 1.0)]
    told += [("call", call, 2.0)] if call else []
    return [(test, *part) for part in [*told, ("teardown", teardown, 0.5)]]  # type: ignore[misc]


def test_outcomes_are_judged_over_all_parts(tmp_path: Path) -> None:
    file = written(
        tmp_path / "r",
        *parts("a", "passed", "passed", "passed"),
        *parts("b", "passed", "failed", "passed"),
        *parts("c", "skipped", None, "passed"),
        *parts("d", "passed", "passed", "failed"),
        *parts("e", "failed", None, "passed"),
        ("f", "start", "", 0.0),
        ("g", "???", "failed", 0.0),
    )
    group = read("unit", file)
    outcomes = {test.id: test.outcome for test in group.tests.values()}
    assert outcomes == {
        "a": "passed", "b": "failed", "c": "skipped", "d": "failed", "e": "failed",
        "f": "unfinished", "g": "failed",
    }  # fmt: skip
    assert group.tests["a"].seconds == 3.5
    assert total([group]) == "1 passed, 5 failed, 1 skipped"


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path: Path) -> None:
    file = written(tmp_path / "r", *parts("a", "passed", "passed", "passed"))
    file.write_text(file.read_text() + '{"id": "b", "wh')
    assert list(read("unit", file).tests) == ["a"]


def test_each_failed_test_has_a_command_that_a_shell_takes(tmp_path: Path) -> None:
    name = "tests/unit/x.py::test_y[it's $HOME]"
    group = read("unit", written(tmp_path / "r", *parts(name, "passed", "failed", "passed")))
    (line,) = [line for line in summary([group]) if "scripts/test" in line]
    assert shlex.split(line) == ["scripts/test", name]


def test_the_closing_line_of_pytest_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "....\nFAILED tests/x.py::test_y - 3 in 4\n3660 passed, 2 skipped in 120.62s (0:02:00)\n\n"
    )
    assert read("unit", tmp_path / "none", log).closing == "3660 passed, 2 skipped in 120.62s (0:02:00)"


def test_rates_count_failures_and_go_on_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "raw.jsonl"
    turns = [Turn("tests/unit", number, 7 + number, loaded) for number in (0, 1) for loaded in (False, True)]
    rates = Rates(file)
    for turn, outcome in zip(turns, ["passed", "failed", "passed", "passed"], strict=True):
        assert not rates.has(turn)
        rates.add(turn, [Outcome("a", outcome), Outcome("b", "passed")], 0 if outcome == "passed" else 1)
    again = Rates(file)
    assert all(map(again.has, turns))
    assert list(again.failures()) == ["a"]
    assert "| `tests/unit` | 2 | 2 |" in again.table()
    assert "| `a` | 0/2 | 1/2 | `scripts/flaky 1 --load --seed 7 tests/unit` |" in again.table()


def test_results_of_another_file_are_counted_once(tmp_path: Path) -> None:
    first, second = Rates(tmp_path / "first.jsonl"), Rates(tmp_path / "second.jsonl")
    first.add(Turn("tests/e2e", 0, 1, True, busy=True), [Outcome("a", "passed")], 0)
    second.add(Turn("tests/e2e", 0, 2, True, busy=True), [Outcome("a", "failed")], 1)
    for _ in range(2):
        first.join(second.file)
    assert "| `a` | 0/0 | 1/2 | `scripts/flaky 1 --busy --seed 2 tests/e2e` |" in first.table()
    assert "| `tests/e2e` | 0 | 2 |" in first.table()


def test_pytest_that_dies_without_a_failed_test_is_a_failure(tmp_path: Path) -> None:
    rates = Rates(tmp_path / "raw.jsonl")
    rates.add(Turn("tests/unit", 0, 1, False), [], 3)
    assert list(rates.failures()) == ["tests/unit"]
