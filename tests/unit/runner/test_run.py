"""A run fails where anything did or never ran; one that waits for the network leaves its holder alone."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from runner import leftovers, plan, surroundings
from runner.jobs import Ended, Job
from runner.run import Run
from runner.selection import Selection
from runner.surroundings import MARK, PROJECT, RefusedError

MakeRun = Callable[..., Run]


@pytest.fixture
def ended_marks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The marks whose processes a run has ended; none really is."""
    found: list[str] = []
    monkeypatch.setattr(leftovers, "end_processes", lambda mark: found.append(mark) or [])
    monkeypatch.setattr(leftovers, "remove", lambda _: [])
    return found


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended_marks: list[str]) -> MakeRun:
    def make(*groups: str) -> Run:
        monkeypatch.setattr(plan, "groups", lambda *_: list(groups))
        made = Run(Selection(chosen=True), tmp_path, [], keep=True)
        made.evidence = MagicMock()
        return made

    return make


def ended_well(run: Run, name: str, *lines: dict[str, object]) -> None:
    """Have a group's pytest end with 0, having written these lines."""
    run.groups.append(name)
    run.work.ended.append(Ended(Job(name, [], 1), 0, 0.0, run.logs / "log"))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    plan.results_file(name, run.logs).write_text(text)


START = {"id": "a", "when": "start"}
PASSED = {"id": "a", "when": "teardown", "outcome": "passed", "seconds": 0.1}
FAILED = {"id": "a", "when": "call", "outcome": "failed", "seconds": 0.1}
END = {"when": "end"}


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((START, PASSED, END), 0),
        ((START, PASSED), 1),
        ((START,), 1),
        ((START, FAILED, PASSED, END), 1),
        ((), 1),
    ],
    ids=["whole", "left before its end", "left in a test", "failed", "never began"],
)
def test_a_group_that_says_it_ended_well_has_to_have_run_all_of_its_tests(
    make: MakeRun, lines: tuple[dict[str, object], ...], code: int
) -> None:
    run = make()
    ended_well(run, "another", START, PASSED, END)
    ended_well(run, "unit", *lines)
    assert run._report() == code


def test_a_lane_that_ends_by_an_exception_fails_the_run(
    make: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    def lane() -> Iterator[Job]:
        raise OSError("no space left")
        yield Job("never", [], 1)

    run = make()
    ended_well(run, "unit", START, PASSED, END)
    run.work.side_by_side(lane())
    assert run._report() == 1
    assert "failed: OSError: no space left" in capsys.readouterr().out


def test_what_ends_a_part_early_does_not_keep_the_run_from_clearing_up(
    make: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared = []
    monkeypatch.setattr(surroundings, "one_at_a_time", contextlib.nullcontext)
    monkeypatch.setattr(Run, "_with_network", lambda _: 1 / 0)
    monkeypatch.setattr(Run, "_clear_up", lambda run: cleared.append(run.environment[MARK]))
    run = make(plan.SHARED)
    assert run.run() == 1
    assert cleared == [PROJECT]
    assert "ZeroDivisionError" in run.problem


@pytest.mark.parametrize(
    ("why", "code"), [(KeyboardInterrupt("SIGINT"), 130), (RefusedError("held too long"), 1)], ids=repr
)
def test_a_run_that_never_had_the_network_ends_nothing_of_the_run_that_has_it(
    make: MakeRun, monkeypatch: pytest.MonkeyPatch, ended_marks: list[str], why: BaseException, code: int
) -> None:
    @contextlib.contextmanager
    def held_by_another() -> Iterator[None]:
        raise why
        yield

    monkeypatch.setattr(surroundings, "one_at_a_time", held_by_another)
    run = make(plan.SHARED)
    assert run.run() == code
    assert ended_marks == [run.logs.parent.name]


def test_a_run_ends_what_is_left_of_it_while_it_holds_the_network(
    make: MakeRun, monkeypatch: pytest.MonkeyPatch, ended_marks: list[str]
) -> None:
    """The next one has the same mark, and begins as soon as it is let go."""
    at_release: list[list[str]] = []

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        yield
        at_release.append(list(ended_marks))

    monkeypatch.setattr(surroundings, "one_at_a_time", held)
    monkeypatch.setattr(Run, "_with_network", lambda _: None)
    run = make(plan.SHARED)
    run.run()
    assert at_release == [[PROJECT]]
    assert ended_marks == [PROJECT, run.logs.parent.name]


def test_a_search_for_tests_that_was_killed_is_no_selection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = subprocess.CompletedProcess([], -9)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: killed)
    with pytest.raises(RefusedError, match="signal 9"):
        plan.groups(Selection(e2e=["tests/e2e"], chosen=True), {}, tmp_path)
