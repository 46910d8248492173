"""`executor experiment`: the data, the paper's experiment, and the federation under attack."""

from pathlib import Path
from typing import Any

import click

from executor.experiment import options

docs_option = click.option(
    "--write-docs",
    "docs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also replace this experiment's part of results.md, and its figures, in this directory.",
)


@click.group()
def experiment() -> None:
    """Reproduce the paper, and see how the federation stands an attack."""


@experiment.command()
@options.refusals
def data() -> None:
    """Fetch the credit card data by hash, unless it is cached, and print where it is."""
    from executor.experiment.perform import fetch  # noqa: PLC0415 - slow, so on use

    fetch()


@experiment.command()
@options.data_option
@click.option("--synthetic", is_flag=True, help="Made-up rows instead, without a download.")
@click.option("--node", "nodes", multiple=True, required=True, help="A node that gets a part; for each one.")
@click.option("--seed", type=click.IntRange(0), default=45, show_default=True, help="Which split.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where to write."
)
@options.json_option
@options.refusals
def split(**chosen: Any) -> None:
    """Write one CSV file of private rows per node, and test.csv with rows that no node has.

    For a federation on the ledger: `executor launch --data DIRECTORY/{node}.csv`.
    """
    from executor.experiment.perform import perform_split  # noqa: PLC0415 - as above

    perform_split(**chosen)


@experiment.command()
@options.data_option
@click.option("--quick", is_flag=True, help="One seed and two rankings: under a minute on two cores.")
@options.seeds_option(5)
@click.option(
    "--fit",
    type=click.Choice(["plain", "regressor"]),
    default="plain",
    show_default=True,
    help="Classification trees, or regression trees on all features as in the authors' code.",
)
@options.jobs_option
@options.out_option
@options.json_option
@docs_option
@options.refusals
def paper(**chosen: Any) -> None:
    """Run the paper's experiment and print its tables beside ours.

    Three topologies on one set of trees per seed; the same trees under other rankings; every claim of the
    paper's section judged by the figures.
    """
    from executor.experiment.perform import perform_paper  # noqa: PLC0415 - as above

    perform_paper(**chosen)


@experiment.command()
@options.data_option
@click.option("--quick", is_flag=True, help="One seed, and no pooled forest beside it.")
@options.seeds_option(5)
@options.jobs_option
@options.out_option
@options.json_option
@docs_option
@options.refusals
def robust(**chosen: Any) -> None:
    """Put one hostile node among twenty and see what the honest ones lose.

    Four attacks against the paper's ranking, the shipped default with and without its defence, the home check
    and the naive union of all trees; and all of them, clean, beside other methods.
    """
    from executor.experiment.perform import perform_robust  # noqa: PLC0415 - as above

    perform_robust(**chosen)
