"""The hunt for tests that fail now and then: what it runs, by which seeds, and beside what."""

import sys
import time
from pathlib import Path

import pytest
from runner import flaky, plan, surroundings
from runner.jobs import Ended, Job
from runner.partner import Partner
from runner.rates import Rates, Turn
from runner.selection import select
from runner.shards import shuffled_shards
from support.scripted_engine import Engine

E2E_FILE = "tests/e2e/test_doctor.py"
# Tells by its exit code whether it was interrupted, and is ready to be once it has made the file.
ENDING = """
import pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
pathlib.Path(sys.argv[1]).touch()
sys.exit(0 if signal.sigtimedwait([signal.SIGINT], float(sys.argv[2])) else 3)
"""


def test_every_target_comes_with_and_without_load_by_seeds_that_count_up() -> None:
    selection = select(["tests/unit/runner", E2E_FILE], surroundings.ROOT)
    turns = flaky.turns_of(selection, 2, 40, [False, True])
    assert [(turn.seed, turn.loaded) for turn in turns] == [
        (40, False), (40, False), (40, True), (40, True), (41, False), (41, False), (41, True), (41, True),
    ]  # fmt: skip
    assert [turn.target for turn in turns[:2]] == ["tests/unit/runner", E2E_FILE]
    assert turns[3].command == f"scripts/flaky 1 --load --seed 40 {E2E_FILE}"


def test_end_to_end_tests_are_taken_file_by_file_and_all_at_once_when_busy() -> None:
    selection = select(["tests/e2e"], surroundings.ROOT)
    files = flaky.targets(selection)
    assert E2E_FILE in files
    assert "tests/e2e/sandbox/test_sandbox.py" in files
    (turn,) = flaky.turns_of(select([E2E_FILE], surroundings.ROOT), 1, 1, [True])
    assert flaky.parts(turn) == [[E2E_FILE]]
    (busy,) = flaky.busy_turns(select([E2E_FILE, "tests/e2e/sandbox"], surroundings.ROOT), 1, 7)
    assert busy.paths == [E2E_FILE, "tests/e2e/sandbox"]
    assert flaky.parts(busy) == [[*busy.paths, *plan.SIDE_BY_SIDE, "-m", "not alone"]]
    assert busy.command == f"scripts/flaky 1 --busy --seed 7 {E2E_FILE} tests/e2e/sandbox"


def test_unit_tests_are_busy_by_themselves_and_dealt_out_by_the_seed() -> None:
    unit, e2e = flaky.busy_turns(select(["tests"], surroundings.ROOT), 1, 7)
    assert (unit.target, e2e.target) == ("tests/unit", "tests/e2e")
    assert flaky.parts(unit) == shuffled_shards(["tests/unit"], 7)
    assert unit.command == "scripts/flaky 1 --busy --seed 7 tests/unit"


def test_what_cannot_be_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert flaky.main(["tests/none"]) == 2
    assert "scripts/flaky: " in capsys.readouterr().err


def test_the_partner_has_a_network_of_its_own_that_a_run_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mine, theirs in (
        ("attestree-test", "attestree-busy-test"),
        ("attestree-x-test", "attestree-xbusy-test"),
    ):
        monkeypatch.setattr("runner.partner.PROJECT", mine)
        partner = Partner(3, 9, ["tests/e2e"], tmp_path / "raw.jsonl")
        assert partner.environment["ATTESTREE_TEST_PROJECT"] == theirs
        monkeypatch.setattr(surroundings, "PROJECT", theirs)
        monkeypatch.setattr(surroundings, "PORTS", partner.environment["ATTESTREE_TEST_PORTS"])
        surroundings.check_names()
    assert partner.raw != tmp_path / "raw.jsonl"
    assert "--one-of-two" in partner.command, "or it would have a partner too"


def test_a_failed_turn_keeps_its_log_and_that_of_every_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine.make(tmp_path)
    engine.put(containers=f"1a peer {surroundings.PROJECT}\n2b theirs attestree\n")
    monkeypatch.setattr(surroundings, "environment", lambda _: engine.environment())
    (tmp_path / "pytest.log").write_text("one failed")
    hunt = flaky.Hunt([], Rates(tmp_path / "raw.jsonl"), tmp_path)
    ended = Ended(Job("pytest", [], 1), 1, 0.0, tmp_path / "pytest.log")
    hunt.keep_logs(Turn("tests/unit", 0, 6, True), [ended])
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["pytest.log"]
    hunt.keep_logs(Turn(E2E_FILE, 0, 7, True), [ended])
    assert {path.name for path in (tmp_path / "raw" / "containers-7").iterdir()} == {
        "peer.log",
        "docker-ps.txt",
    }


def played(folder: Path, seconds: float) -> Partner:
    partner = Partner(1, 1, ["tests/e2e"], folder / "raw.jsonl")
    partner.command = [sys.executable, "-c", ENDING, str(folder / "ready"), str(seconds)]
    return partner


def test_the_partner_is_waited_for_and_its_trouble_told(tmp_path: Path) -> None:
    with played(tmp_path, 0.1) as partner:
        pass
    assert "ended with 3" in partner.problem


def broken_off(partner: Partner, ready: Path) -> None:
    with partner:
        while not ready.exists():
            time.sleep(0.01)
        raise KeyboardInterrupt


def test_the_partner_stops_when_the_hunt_is_broken_off(tmp_path: Path) -> None:
    partner = played(tmp_path, 600)
    with pytest.raises(KeyboardInterrupt):
        broken_off(partner, tmp_path / "ready")
    assert partner.problem == ""
