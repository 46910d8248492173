"""What a run removes: the test network's own, by name and by mark, and nothing of another name."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from runner import evidence, leftovers, surroundings
from runner.load import load
from runner.surroundings import MARK, PROJECT, RefusedError
from support.scripted_engine import Engine


@pytest.mark.parametrize(
    ("name", "ours"),
    [(PROJECT, True), (f"{PROJECT}-small", True), (f"{PROJECT}s", False), ("attestree", False), ("", False)],
)
def test_only_the_test_networks_are_removed(name: str, ours: bool) -> None:
    assert leftovers.is_ours(name) is ours


@pytest.mark.parametrize(
    "name", ["attestree", "attestree-demo", "test", "attestree-testing", "attestree-Test"]
)
def test_the_name_of_a_users_network_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "PROJECT", name)
    with pytest.raises(RefusedError, match="attestree-test"):
        surroundings.check_names()


def test_a_consensus_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "CONSENSUS", "solo")
    with pytest.raises(RefusedError, match="raft or bft"):
        surroundings.check_names()


def test_a_process_of_a_dead_run_is_ended_by_its_mark() -> None:
    mark = f"unit test {os.getpid()}"
    command = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]
    left, other = (
        subprocess.Popen(command, env={**os.environ, MARK: value}, stdout=subprocess.PIPE)
        for value in (mark, f"{mark} of another")
    )
    try:
        for process in (left, other):
            assert process.stdout is not None
            process.stdout.readline()
        assert (left.pid, "python") in [(pid, name[:6]) for pid, name in leftovers.end_processes(mark)]
        assert left.wait(60) < 0
        assert other.poll() is None
    finally:
        for process in (left, other):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("owner", "left"), [(PROJECT, ""), (f"{PROJECT}-crash", ""), ("attestree", "peer attestree\n")]
)
def test_container_that_comes_back_is_removed_again_and_a_users_own_is_not(
    tmp_path: Path, owner: str, left: str
) -> None:
    engine = Engine.make(tmp_path)
    engine.put(containers=f"peer {owner}\n", restarting="")
    leftovers._remove_from_engine(engine.environment())
    assert engine.get("containers") == left


@pytest.mark.parametrize("returncode", [0, 30])
def test_second_engines_of_killed_runs_are_stopped_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returncode: int
) -> None:
    asked: list[tuple[str, ...]] = []

    def stop(variables: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
        asked.append((variables["ATTESTREE_PROJECT"], *command))
        return subprocess.CompletedProcess(command, returncode)

    monkeypatch.setattr(leftovers, "ENGINES", tmp_path)
    monkeypatch.setattr(leftovers, "_run", stop)
    used = tmp_path / f"{PROJECT}-engine-29"
    for path in (used, tmp_path / f"{PROJECT}-sandbox-gw0-engine-26", tmp_path / "attestree-engine-26"):
        path.mkdir()
    environment = {**os.environ, "DOCKER_HOST": f"unix://{used}/docker.sock"}
    told = [f"engine 26 of {PROJECT}-sandbox-gw0"] if returncode == 0 else []
    assert leftovers._stop_second_engines(environment) == told
    assert asked == [(f"{PROJECT}-sandbox-gw0", "scripts/engine", "26", "stop", "--purge")]


def test_folders_of_killed_runs_are_removed_and_held_ones_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = tmp_path / f"{PROJECT}.dead"
    dead.mkdir()
    (dead / ".held").touch()
    foreign = tmp_path / "somebody-elses"
    foreign.mkdir()
    with surroundings.temporary_folder() as first, surroundings.temporary_folder() as second:
        assert sorted(tmp_path.iterdir()) == sorted([first, second, foreign])
    assert list(tmp_path.iterdir()) == [foreign]


def test_the_folder_of_a_run_that_is_just_beginning_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    beginning = tmp_path / f"{PROJECT}.new"
    beginning.mkdir()
    with surroundings.temporary_folder():
        assert beginning.is_dir()


def test_the_environment_is_the_runs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ATTESTREE_STATE", "COMPOSE_FILE", "COLUMNS", "PYTEST_ADDOPTS", "FORCE_COLOR", "GIT_DIR"):
        monkeypatch.setenv(name, "foreign")
    monkeypatch.setenv("ATTESTREE_CACHE", "kept")
    made = surroundings.environment(tmp_path)
    assert "foreign" not in made.values()
    assert made["ATTESTREE_CACHE"] == "kept"
    assert made["PYTHONHASHSEED"].isdecimal()
    monkeypatch.setenv("PYTHONHASHSEED", "17")
    assert surroundings.environment(tmp_path)["PYTHONHASHSEED"] == "17"
    assert made["ATTESTREE_PROJECT"] == PROJECT


def test_secrets_do_not_reach_the_evidence() -> None:
    text = (
        "before\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\nafter\n"
        "https://registrar:hunter2@127.0.0.1:7054 pass: hunter3\n-----BEGIN PRIVATE KEY-----\ncut off"
    )
    kept = evidence.redacted(text)
    assert all(secret not in kept for secret in ("MHcCAQEE", "hunter2", "hunter3", "cut off"))
    assert "before" in kept
    assert "after" in kept


def test_load_ends_with_its_block() -> None:
    before = children()
    with load(2):
        busy = children() - before
        assert len(busy) == 2
    assert not children() & busy


def children() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdecimal()
                and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
            ):
                found.add(int(entry.name))
        except OSError:
            continue
    return found
