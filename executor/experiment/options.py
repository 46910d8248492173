"""Options and error handling that the experiment commands share."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from protocol.errors import AttestreeError

DATA_EXIT = 40

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A CSV file instead of the credit card data that is fetched by hash.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=lambda: len(os.sched_getaffinity(0)),
    show_default="all cores",
    help="Processes for FIT.",
)
out_option = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write tables (CSV) and figures here."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")


def seeds_option(default: int) -> Callable[[Any], Any]:
    """How many seeds, counted from 0; they vary the trees, never the split."""
    return click.option(
        "--seeds", type=click.IntRange(1, 1000), default=default, show_default=True, help="How many seeds."
    )


def refusals(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a refusal into one line on stderr and an exit code, never a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except AttestreeError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(getattr(error, "exit_code", DATA_EXIT))

    return wrapped
