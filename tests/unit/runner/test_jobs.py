"""Jobs end in time, with what they started; lanes go on after a failure unless the job was needed."""

import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from runner import jobs
from runner.jobs import Job, Work


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def work(tmp_path: Path, said: list[str]) -> Work:
    return Work({"PATH": "/usr/bin:/bin"}, tmp_path, said.append)


def python(name: str, code: str, seconds: float = 60, **options: object) -> Job:
    return Job(name, [sys.executable, "-c", code], seconds, **options)  # type: ignore[arg-type]


def test_a_failure_is_shown_and_the_lane_goes_on(work: Work, said: list[str]) -> None:
    assert work.lane([python("bad", "print('why'); raise SystemExit(3)"), python("good", "pass")])
    assert [(ended.job.name, ended.failed) for ended in work.ended] == [("bad", True), ("good", False)]
    assert "why" in said
    assert work.ended[0].last_line == "why"
    assert any("bad: FAILED (3)" in line for line in said)


def test_a_lane_ends_with_a_needed_job_that_fails(work: Work) -> None:
    assert not work.lane([python("bad", "raise SystemExit(1)", needed=True), python("good", "pass")])
    assert len(work.ended) == 1


def test_a_job_that_hangs_is_ended_with_the_stacks_of_its_threads(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "GRACE_SECONDS", 150)  # for a program to start on a busy machine, too
    # The signal may come before the program is up: it is kept back until somebody would print the stacks.
    hanging = """
import faulthandler, signal, threading
faulthandler.enable()
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGABRT])
threading.Event().wait()
"""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGABRT])
    try:
        ended = work.run(python("hanging", hanging, seconds=0.2))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert ended is not None
    assert ended.timed_out
    assert ended.failed
    assert "Fatal Python error: Aborted" in ended.log.read_text()


def test_what_a_job_left_running_ends_with_it(work: Work) -> None:
    started = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    ended = work.run(python("leaving", started))
    assert ended is not None
    pid = int(ended.log.read_text())
    gone_within(60, pid)


def gone_within(seconds: float, pid: int) -> None:
    end = time.monotonic() + seconds
    while running(pid):
        assert time.monotonic() < end, f"process {pid} still runs"
        time.sleep(0.05)


def running(pid: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_stop_ends_what_runs_and_lets_nothing_begin(work: Work) -> None:
    lane = threading.Thread(
        target=work.lane, args=([python("long", "import time; time.sleep(600)"), python("next", "pass")],)
    )
    lane.start()
    end = time.monotonic() + 60
    while not list(work.logs.glob("long.log")):
        assert time.monotonic() < end
        time.sleep(0.05)
    work.stop()
    lane.join(60)
    assert not lane.is_alive()
    assert "next" not in [ended.job.name for ended in work.ended]
    assert work.run(python("another", "pass")) is None
    last = work.run(python("last", "pass"), in_any_case=True)
    assert last is not None
    assert not last.failed


def test_lanes_run_side_by_side(work: Work, tmp_path: Path) -> None:
    """Each waits for a file that the other writes."""
    code = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.05)
"""
    jobs = [
        Job(name, [sys.executable, "-c", code, str(tmp_path / name), str(tmp_path / other)], 60)
        for name, other in (("a", "b"), ("b", "a"))
    ]
    work.side_by_side(*([job] for job in jobs))
    assert [ended.failed for ended in work.ended] == [False, False]


def test_a_live_job_is_shown_whole(work: Work, said: list[str]) -> None:
    work.run(python("live", "print('one'); print('two', end='')", live=True))
    assert "\n".join(said).startswith("one\ntwo")
