"""Work done in forks of this process, a few at a time, each with a limit and a folder of its own."""

import contextlib
import os
import resource
import select
import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

TIMED_OUT = -signal.SIGXCPU


class Work(ABC):
    """Something that a fork does, and what this process makes of it."""

    processor_seconds: int
    seconds: float

    @abstractmethod
    def run(self, folder: Path) -> int:
        """Do it, in the fork, and return its exit code; what is to be kept is written to the folder."""

    @abstractmethod
    def ended(self, folder: Path, code: int, seconds: float) -> None:
        """Take what it left; a code below zero is a signal's, TIMED_OUT if it took too long."""


@dataclass(frozen=True, slots=True)
class _Fork:
    work: Work
    process: int
    folder: Path
    started: float

    @property
    def deadline(self) -> float:
        return self.started + self.work.seconds


class Forks:
    """So many forks at a time. Leaving the context waits for the last of them."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._running: dict[int, _Fork] = {}

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for fork in self._running.values():
                os.killpg(fork.process, signal.SIGKILL)
        while self._running:
            self._wait()

    def start(self, work: Work) -> None:
        """Begin, as soon as there is room."""
        while len(self._running) >= self.jobs:
            self._wait()
        # A short path: a test may put a unix socket below it.
        folder = Path(tempfile.mkdtemp(prefix="fork-"))
        process = os.fork()
        if not process:
            os._exit(_child(work, folder))
        with contextlib.suppress(OSError):
            # Both do it, because either may be the first to need it.
            os.setpgid(process, process)
        self._running[os.pidfd_open(process)] = _Fork(work, process, folder, time.monotonic())

    def _wait(self) -> None:
        """Wait until one has ended, or end one that takes too long."""
        poll = select.poll()
        for handle in self._running:
            poll.register(handle, select.POLLIN)
        left = min(fork.deadline for fork in self._running.values()) - time.monotonic()
        for handle, _ in poll.poll(max(0, left) * 1000):
            fork = self._running.pop(handle)
            os.close(handle)
            self._reap(fork)
        for fork in self._running.values():
            if fork.deadline <= time.monotonic():
                os.killpg(fork.process, signal.SIGXCPU)

    def _reap(self, fork: _Fork) -> None:
        # What a test started and left belongs to the fork's group, whose number is nobody else's until here.
        os.killpg(fork.process, signal.SIGKILL)
        _, status, used = os.wait4(fork.process, 0)
        try:
            seconds = used.ru_utime + used.ru_stime
            fork.work.ended(fork.folder, os.waitstatus_to_exitcode(status), seconds)
        finally:
            shutil.rmtree(fork.folder, ignore_errors=True)


def _child(work: Work, folder: Path) -> int:
    """Do the work in a process group of its own, silently, with nothing of its temporary files elsewhere."""
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = str(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = work.processor_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    try:
        return work.run(folder)
    except BaseException:  # a fork ends here, whatever a mutant raised
        return 3
