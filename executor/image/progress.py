"""Progress of long image work on stderr: a line that moves on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.markup import escape

Say = Callable[[str], None]


@contextmanager
def progress() -> Iterator[Say]:
    """Yield a function that shows what is being done now."""
    if not sys.stderr.isatty():
        yield lambda text: click.echo(text, err=True)
        return
    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(escape(text))
