"""`executor simulate`: federations in memory; options that may be given several times are compared."""

import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from executor.errors import OptionError, UsageError
from executor.exits import json_option, reported
from executor.experiment.options import (
    SPLIT_SEEDS,
    check_writable,
    data_option,
    jobs_option,
    out_option,
    seeds_option,
    workers,
)
from executor.number_range import NumberRange
from executor.output import Progress, answer, note
from learning.errors import ParameterError

if TYPE_CHECKING:
    from experiments.comparison import ComparisonPlan
    from experiments.data import DataTable

FITS = ("plain", "balanced", "extra", "undersampled", "regressor", "boosted")
RANKINGS = ("kernel", "size", "random", "newest", "supervised")
ATTACKS = ("zero", "one", "grey", "noise", "mimic", "main-leaf", "inverted", "shadow", "accord", "murmur")
NONE = "none"


class NumberOr(click.ParamType[float | None]):
    """A number, or one word that stands for its absence; the word becomes None."""

    name = "number"

    def __init__(self, word: str) -> None:
        self.word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Read the number; ranges are checked where the parameter is used."""
        if value is None or isinstance(value, float) or value == self.word:
            return value if isinstance(value, float) else None
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {self.word!r}", param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Shown in --help."""
        return f"X|{self.word}"


def several(*names: str, **settings: Any) -> Callable[[Any], Any]:
    """An option whose values, if more than one, are compared."""
    return click.option(*names, multiple=True, **settings)


@click.command()
@several("--fit", type=click.Choice(FITS), help="How trees are trained. [default: balanced]")
@several("--ranking", type=click.Choice(RANKINGS), help="What GET_TOP goes by. [default: kernel]")
@several("--threshold", type=NumberOr("home"), help="Score above which a row is anomalous. [default: 0.3]")
@several("--quota", type=NumberOr(NONE), help="Places of an organisation, in equal parts. [default: 2]")
@several("--vote-cap", type=NumberOr(NONE), help="Greatest vote of another organisation. [default: 0.25]")
@several("--home-check/--no-home-check", default=None, help="Try foreign trees on the own rows first.")
@several("--n-new", type=click.IntRange(1, 10_000), help="Trees per FIT. [default: 10]")
@several("--n-max", type=click.IntRange(1, 10_000), help="Trees a node holds. [default: 50]")
@several("--n-share", type=click.IntRange(0, 10_000), help="Trees per SHARE. [default: 10]")
@several("--min-leaf", type=click.IntRange(1, 10_000), help="Rows per leaf at least. [default: 1]")
@several(
    "--topology", default=("ring", "full"), show_default=True, help="disconnected, ring, full, random:P."
)
@click.option("--paper", is_flag=True, help="Add the paper's algorithm as first row, or run it alone.")
@several("--attack", type=click.Choice(ATTACKS), help="Also run with a hostile node.")
@click.option(
    "--hostile", type=click.IntRange(0), default=8, show_default=True, help="Which node is hostile."
)
@click.option("--async", "asynchronous", is_flag=True, help="Nodes act one at a time, in a random order.")
@click.option("--iterations", type=click.IntRange(1, 1000), default=4, show_default=True)
@click.option("--nodes", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option(
    "--imbalance",
    type=NumberRange(0, 1),
    help="How far nodes' sizes stray from equal. [default: 0.7 as in the paper; other data 0.4]",
)
@data_option
@click.option("--label", default="Class", show_default=True, help="The label column of --data: 0 or 1.")
@several("--drop", help="A column of --data to leave out.")
@click.option("--synthetic", is_flag=True, help="Made-up data: seconds instead of minutes, no download.")
@seeds_option(1)
@several(
    "--split-seed",
    "--split-seeds",
    "split_seed",
    type=SPLIT_SEEDS,
    help="Splits. [default: 45; 46 too if comparing]",
)
@jobs_option
@out_option
@json_option
@click.option(
    "--write-docs",
    "docs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also replace the comparison on results.md in this directory.",
)
@reported
def simulate(**chosen: Any) -> None:
    """Run federations in memory: no Docker, no ledger, the same FIT, SHARE and GET.

    Options that allow several values are combined and compared in one table, each variant with the first by
    paired bootstrap intervals over test rows. "better" appears only where the intervals of two or more splits
    leave out 0 on one side.

    \b
    executor simulate --synthetic
    executor simulate --paper --fit balanced --fit undersampled
    executor simulate --ranking kernel --ranking random --topology ring
    executor simulate --data my.csv --label fraud --nodes 5
    """
    from experiments.comparison_page import (  # noqa: PLC0415 - slow, so on use
        comparison_json,
        comparison_text,
        write_comparison,
    )

    plan = _plan(chosen)
    check_writable(chosen["out"], chosen["docs"])
    table = _table(chosen)
    splits = plan.splits(table)
    with workers(), Progress(plan.pieces(splits)) as progress:
        comparison = plan.run(table.source, splits, progress.advance, jobs=chosen["jobs"])
    write_comparison(comparison, chosen["out"], chosen["docs"], " ".join(["executor", *_command()]))
    shown = comparison_json(comparison)
    answer(shown, lambda: comparison_text(comparison), as_json=chosen["as_json"], indent=2)


def _table(chosen: dict[str, Any]) -> "DataTable":
    """The rows that were asked for: made up, of a file, or the paper's."""
    from executor.experiment.files import read_table  # noqa: PLC0415 - as above
    from experiments.data import is_fraud, load_fraud, synthetic  # noqa: PLC0415

    data, drop = chosen["data"], chosen["drop"]
    if chosen["synthetic"] and data is not None:
        raise UsageError("SIMULATE_OPTIONS", "--synthetic and --data exclude each other")
    if chosen["synthetic"]:
        return synthetic()
    if data is None or (not drop and is_fraud(data)):
        return load_fraud(data, note)
    return read_table(data, chosen["label"], drop)


def _plan(chosen: dict[str, Any]) -> "ComparisonPlan":
    """What to compare; an option outside its range is wrong usage, and refused before any data is read."""
    from experiments.comparison import ComparisonPlan  # noqa: PLC0415 - as above
    from experiments.variants import Choices, compared  # noqa: PLC0415

    ways = {field.name: chosen[field.name] for field in fields(Choices) if field.name in chosen}
    try:
        return ComparisonPlan(
            variants=compared(ways, chosen["paper"]),
            topologies=chosen["topology"],
            attacks=chosen["attack"],
            hostile=chosen["hostile"],
            iterations=chosen["iterations"],
            schedule="asynchronous" if chosen["asynchronous"] else "synchronous",
            nodes=chosen["nodes"],
            imbalance=chosen["imbalance"],
            seeds=chosen["seeds"],
            split_seeds=chosen["split_seed"],
        )
    except ParameterError as error:
        raise OptionError(error.cause, case="option") from error


def _command() -> list[str]:
    """The command line as typed, without where results go."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if skip:
            skip = False
        elif word in {"--out", "--write-docs", "--jobs"}:
            skip = True
        elif word != "--json":
            words.append(word)
    return words
