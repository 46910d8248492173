"""Commands with a time limit and a log, in lanes: one after another within a lane, lanes side by side."""

import contextlib
import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .surroundings import ROOT

GRACE_SECONDS = 15


@dataclass(frozen=True)
class Job:
    """One command. A lane ends with a needed job that fails; others only make the run fail."""

    name: str
    command: Sequence[str]
    seconds: float
    needed: bool = False
    live: bool = False
    """Whether its output is shown as it comes; otherwise only that of a failed job is shown."""
    allowed: tuple[int, ...] = (0,)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """What came of a job."""

    job: Job
    code: int
    seconds: float
    log: Path
    timed_out: bool = False

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than it may."""
        return self.timed_out or self.code not in self.job.allowed

    @property
    def last_line(self) -> str:
        """What the job said last, which is often why it failed."""
        said = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return said[-1] if said else f"no word, exit code {self.code}"


class Work:
    """Runs jobs and keeps what came of them."""

    def __init__(self, environment: Mapping[str, str], logs: Path, say: Callable[[str], None]) -> None:
        self.environment = environment
        self.logs = logs
        self.ended: list[Ended] = []
        self.troubles: list[str] = []
        """Why a lane ended early otherwise than by a job that failed: what it had left never ran."""
        self._say = say
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._stopped = False

    def side_by_side(self, *lanes: Iterable[Job]) -> None:
        """Run lanes at the same time and return when all have ended."""
        threads = [threading.Thread(target=self._guarded, args=(lane,), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            # With a limit, so that a signal is handled at once and not when the thread ends.
            while thread.is_alive():
                thread.join(0.5)

    def _guarded(self, jobs: Iterable[Job]) -> None:
        """Run a lane in a thread of its own, where an exception would end it and nobody would hear of it."""
        try:
            self.lane(jobs)
        except Exception as error:
            self.troubles.append(f"{type(error).__name__}: {error}")
            self._say(traceback.format_exc().rstrip())

    def lane(self, jobs: Iterable[Job]) -> bool:
        """Run jobs one after another; return False if a needed one failed."""
        for job in jobs:
            ended = self.run(job)
            if ended is None or (ended.failed and job.needed):
                return False
        return True

    def run(self, job: Job, *, in_any_case: bool = False) -> Ended | None:
        """Run one job to its end; None if the run was stopped, unless the job clears up after it."""
        began = time.monotonic()
        log = self.logs / f"{job.name.replace(' ', '-').replace('/', '-')}.log"
        with log.open("wb") as output, self._lock:
            if self._stopped and not in_any_case:
                return None
            process = subprocess.Popen(
                job.command,
                cwd=ROOT,
                env={**self.environment, **job.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running[process.pid] = process
        timed_out = False
        follower = Follower(log, self._say) if job.live else None
        while True:
            try:
                code = process.wait(0.5)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - began > job.seconds and not timed_out:
                    timed_out = True
                    # Python prints the stack of every thread before it ends of this.
                    _signal_group(process, signal.SIGABRT)
                elif time.monotonic() - began > job.seconds + GRACE_SECONDS:
                    _signal_group(process, signal.SIGKILL)
            if follower:
                follower.forward()
        # What the command started in its group has no more to do.
        _signal_group(process, signal.SIGKILL)
        ended = Ended(job, code, time.monotonic() - began, log, timed_out)
        with self._lock:
            del self._running[process.pid]
            self.ended.append(ended)
        self._report(ended, follower)
        return ended

    def _report(self, ended: Ended, follower: "Follower | None") -> None:
        if follower:
            follower.forward(everything=True)
        elif ended.failed and not self._stopped:
            self._say(ended.log.read_text(errors="replace").rstrip())
        state = "ok"
        if ended.failed:
            state = f"not within {ended.job.seconds:.0f} s" if ended.timed_out else f"FAILED ({ended.code})"
        self._say(f"== {ended.job.name}: {state}, {ended.seconds:.0f} s")

    def stop(self) -> None:
        """End every job that runs, and let none begin."""
        with self._lock:
            self._stopped = True
            running = list(self._running.values())
        for process in running:
            # pytest then says where it was.
            _signal_group(process, signal.SIGINT)
        end = time.monotonic() + GRACE_SECONDS
        while any(process.poll() is None for process in running) and time.monotonic() < end:
            time.sleep(0.1)
        for process in running:
            _signal_group(process, signal.SIGKILL)


class Follower:
    """Shows a growing log by whole lines."""

    def __init__(self, log: Path, say: Callable[[str], None]) -> None:
        self._log, self._say, self._read = log, say, 0

    def forward(self, *, everything: bool = False) -> None:
        """Show what has come since; the last line only when it is complete, or at the end."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            fresh = file.read()
        shown = fresh if everything else fresh[: fresh.rfind(b"\n") + 1]
        self._read += len(shown)
        if shown.strip():
            self._say(shown.decode(errors="replace").rstrip("\n"))


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
