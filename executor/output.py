"""What commands show: answers on standard output, as text or one JSON object; progress on standard error.

Standard output holds results alone, so that it can be piped; progress moves on a terminal and is plain lines
elsewhere. Much of what is shown was written by other organisations: characters that would move the cursor,
turn the direction of text or stay unseen are shown by their numbers, so that nobody reads what is not there.
"""

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from experiments.pages import Grid

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import TaskID

LINES = 10
"""How many lines a count of pieces prints without a terminal."""

Say = Callable[[str], None]
"""Hears what is being done now."""


def plain(text: object) -> str:
    """Return one value as it can be shown on a line: what is no visible character by its number, \\u202e."""
    return "".join(sign if sign.isprintable() else _number(sign) for sign in str(text))


def echo(text: str, *, err: bool = False) -> None:
    """Print text of one or more lines, each of them plain."""
    click.echo("\n".join(plain(line) for line in text.split("\n")), err=err)


def _number(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"


def answer(
    shown: Mapping[str, Any], text: Callable[[], str], *, as_json: bool, indent: int | None = None
) -> None:
    """Print what a command found: the object for programs, or the text for people."""
    if as_json:
        click.echo(json.dumps(shown, indent=indent))
    else:
        echo(text())


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, figures: bool = True) -> str:
    """Return an aligned table; with `figures`, all columns but the first hold numbers and align right."""
    cells = [[plain(cell) for cell in row] for row in rows]
    return Grid(plain(title), columns, cells, figures=figures).text()


def note(text: str) -> None:
    """Print one line for the person who waits, if anybody is left: a closed terminal ends no task."""
    with contextlib.suppress(OSError):
        click.echo(plain(text), err=True)


class Progress:
    """What is being done now, told from any thread: by row, or piece by piece if there is a total of them."""

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._done = 0
        self._display = _display(total) if sys.stderr.isatty() else None
        self._rows: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self._display is not None:
            self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.stop()

    def say(self, text: str, row: str = "") -> None:
        """Show what is being done: on the row's own line, or as a line of its own without a terminal."""
        with self._lock:
            if self._display is None:
                note(text)
            else:
                self._display.update(self._row(row), description=plain(text))

    def advance(self, text: str) -> None:
        """Count one more of all pieces as done, and say what it was: every tenth part without a terminal."""
        with self._lock:
            before, self._done = self._done, self._done + 1
            if self._display is not None:
                self._display.update(self._row(""), advance=1, description=text)
                return
            total = max(self._total or 0, 1)
            if LINES * self._done // total > LINES * before // total:
                note(f"{100 * self._done // total:3d} %  {text}")

    def _row(self, name: str) -> "TaskID":
        if self._display is None:
            raise AssertionError("rows are for terminals")
        if name not in self._rows:
            self._rows[name] = self._display.add_task("", total=self._total)
        return self._rows[name]


def _display(total: int | None) -> "Display":
    """Make lines that vanish at the end: a spinner, what is being done, and a bar if the end is known."""
    from rich import progress  # noqa: PLC0415 - slow, and most commands need none of it
    from rich.console import Console  # noqa: PLC0415

    bar = () if total is None else (progress.BarColumn(), progress.MofNCompleteColumn())
    return progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        *bar,
        progress.TimeElapsedColumn(),
        console=Console(stderr=True, highlight=False, soft_wrap=True),
        transient=True,
    )
