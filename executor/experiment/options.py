"""Options that several experiments have."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Your own copy of the credit card data that is fetched by hash; checked by the same.",
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
