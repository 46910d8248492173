"""Options that several experiments have."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from executor.errors import UsageError
from executor.exits import json_option, reported
from protocol.values import dataclass

SPLIT_SEEDS = click.IntRange(0, 2**32 - 1)
"""What numpy's legacy generator, which deals the rows, takes."""


def _cores() -> int:
    return len(os.sched_getaffinity(0))


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Your own copy of the credit card data that is fetched by hash; checked by the same.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=_cores,
    show_default="all cores",
    callback=lambda _context, _option, jobs: min(jobs, _cores()),
    help="Processes for FIT and for federations, at most one per core.",
)
out_option = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write tables (CSV) and figures here."
)
resume_option = click.option(
    "--resume",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep in this directory what is measured, and do not measure again what is there.",
)
docs_option = click.option(
    "--write-docs",
    "docs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also replace this experiment's part of results.md, and its figures, in this directory.",
)


def seeds_option(default: int) -> Callable[[Any], Any]:
    """How many seeds, counted from 0; they vary the trees, never the split."""
    return click.option(
        "--seeds", type=click.IntRange(1, 1000), default=default, show_default=True, help="How many seeds."
    )


def check_writable(*directories: Path | None) -> None:
    """Return if these can be written to, or made; asked before anything is measured that would be lost."""
    for directory in directories:
        if directory is not None:
            whole = directory.absolute()
            there = next(folder for folder in (whole, *whole.parents) if folder.exists())
            if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
                raise UsageError("OUT_DIRECTORY", f"{directory} cannot be written to")


@contextmanager
def workers() -> Iterator[None]:
    """Have worker processes leave Ctrl-C to this one, which ends them, and print no tracebacks of theirs."""
    from joblib import parallel_config  # noqa: PLC0415 - slow, so on use

    quiet = (signal.SIGINT, signal.SIG_IGN)
    with parallel_config(backend="loky", initializer=signal.signal, initargs=quiet):
        yield


@dataclass(frozen=True)
class RunOptions:
    """What an experiment was asked for; quick is one seed."""

    data: Path | None
    quick: bool
    seeds: int
    jobs: int
    out: Path | None
    as_json: bool
    docs: Path | None


def run_options(quick: str, data: Callable[[Any], Any] = data_option) -> Callable[[Any], Any]:
    """Give a command the options of an experiment of several seeds, as one argument; `quick` is the help."""
    shown = (
        data,
        click.option("--quick", is_flag=True, help=quick),
        seeds_option(5),
        jobs_option,
        out_option,
        json_option,
        docs_option,
    )

    def decorated(command: Callable[..., None]) -> Any:
        @wraps(command)
        def called(**given: Any) -> None:
            found = {name: given.pop(name) for name in RunOptions.__dataclass_fields__}
            if found["quick"]:
                found["seeds"] = 1
            check_writable(found["out"], found["docs"])
            with workers():
                command(RunOptions(**found), **given)

        made: Any = reported(called)
        for option in reversed(shown):
            made = option(made)
        return made

    return decorated
