"""Progress on stderr, so that stdout holds results alone: a bar on a terminal, lines elsewhere."""

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Advance = Callable[[str], None]
LINES = 10  # how many lines a run without a terminal prints


@contextmanager
def progress(total: int) -> Iterator[Advance]:
    """Yield a function to call after each of `total` pieces of work, with the name of what comes next."""
    if not sys.stderr.isatty():
        yield _Lines(total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=total)
        yield lambda what: display.update(task, advance=1, description=what)


class _Lines:
    """Progress for logs: one line per tenth of the work."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def __call__(self, what: str) -> None:
        self.done += 1
        before, now = (LINES * count // max(self.total, 1) for count in (self.done - 1, self.done))
        if now > before:
            say(f"{100 * self.done // max(self.total, 1):3d} %  {what}")


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def versions() -> dict[str, str]:
    """What a reader needs to run the same again."""
    packages = ("attestree", "numpy", "scikit-learn")
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        p: version(p) for p in packages
    }
