"""Work in forks: limited, apart from this process, and cleared up."""

import contextlib
import os
import select
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from tests.runner.forks import TIMED_OUT, Forks, Work


class Told(Work):
    """Does what the test says, and remembers how it ended."""

    processor_seconds = 60

    def __init__(self, do: Callable[[Path], int], seconds: float = 60.0) -> None:
        self.do, self.seconds = do, seconds
        self.code: int | None = None
        self.said = ""
        self.folder = Path()

    def run(self, folder: Path) -> int:
        return self.do(folder)

    def ended(self, folder: Path, code: int, seconds: float) -> None:
        said = folder / "said"
        self.code, self.folder, self.said = code, folder, said.read_text() if said.is_file() else ""


def say(folder: Path) -> int:
    (folder / "said").write_text(tempfile.gettempdir())
    return 7


def hang(_: Path) -> int:
    threading.Event().wait()
    return 0


def fail(_: Path) -> int:
    raise KeyboardInterrupt


def leave(folder: Path) -> int:
    child = os.fork()
    if not child:
        signal.pause()
    (folder / "said").write_text(str(child))
    return 0


def test_a_fork_ends_with_its_code_and_its_temporary_files_are_gone() -> None:
    work = Told(say)
    with Forks(1) as forks:
        forks.start(work)
    assert (work.code, work.said) == (7, str(work.folder))
    assert not work.folder.exists()


def test_a_fork_that_hangs_is_ended_and_the_others_go_on() -> None:
    hanging, others = Told(hang, 0.2), [Told(say) for _ in range(3)]
    with Forks(2) as forks:
        for work in (hanging, *others):
            forks.start(work)
    assert hanging.code == TIMED_OUT
    assert [work.code for work in others] == [7, 7, 7]


def test_whatever_is_raised_ends_the_fork_and_not_this_process() -> None:
    work = Told(fail)
    with Forks(1) as forks:
        forks.start(work)
    assert work.code == 3


def test_what_a_fork_started_and_left_is_ended_too() -> None:
    work = Told(leave)
    with Forks(1) as forks:
        forks.start(work)
    with contextlib.suppress(ProcessLookupError):
        ending = select.poll()
        ending.register(os.pidfd_open(int(work.said)), select.POLLIN)
        assert ending.poll(60_000)


def test_an_interruption_leaves_no_fork_behind() -> None:
    work = Told(hang)
    with contextlib.suppress(KeyboardInterrupt), Forks(1) as forks:
        forks.start(work)
        raise KeyboardInterrupt
    assert work.code == -signal.SIGKILL
