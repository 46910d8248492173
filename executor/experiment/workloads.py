"""`executor experiment ieee-cis` and `shuttle`: data other than the paper's, fetched by hash."""

from pathlib import Path

import click

from executor.exits import json_option, reported
from executor.experiment.options import docs_option, jobs_option, out_option, seeds_option
from executor.output import Progress, answer, note


@click.command("ieee-cis")
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Your own copy of the table that is fetched by hash; checked by the same.",
)
@click.option("--quick", is_flag=True, help="One seed and two attacks: minutes on two cores.")
@seeds_option(5)
@jobs_option
@out_option
@json_option
@docs_option
@reported
def ieee_cis(
    *,
    data: Path | None,
    quick: bool,
    seeds: int,
    jobs: int,
    out: Path | None,
    as_json: bool,
    docs: Path | None,
) -> None:
    """Run forests and boosted models on card transactions that change over time.

    A node per address and a window of time per iteration: alone, federated and pooled, and beside a hostile
    organisation; order, alerts within a day's budget, and money.
    """
    from experiments import ieee, ieee_page  # noqa: PLC0415 - slow, so on use
    from experiments.transactions import load_transactions  # noqa: PLC0415
    from experiments.windows import windowed  # noqa: PLC0415

    parts = windowed(load_transactions(data, note))
    count = 1 if quick else seeds
    with Progress(ieee.pieces(count, quick=quick)) as progress:
        result = ieee.run_ieee(parts, range(count), progress.advance, quick=quick, jobs=jobs)
    ieee_page.write_ieee(result, out, docs)
    shown = ieee_page.ieee_json(result)
    answer(shown, lambda: ieee_page.ieee_text(result), as_json=as_json, indent=2)


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Your own copy of Shuttle.rda, checked by the same hash as the one that is fetched.",
)
@seeds_option(1)
@jobs_option
@json_option
@docs_option
@reported
def shuttle(*, data: Path | None, seeds: int, jobs: int, as_json: bool, docs: Path | None) -> None:
    """Run both kinds of estimators on a small data set: alone, joined, and under attack, in seconds."""
    from experiments import shuttle  # noqa: PLC0415 - as above
    from experiments.engine import pieces  # noqa: PLC0415
    from experiments.shuttle_data import load_shuttle  # noqa: PLC0415

    parts = shuttle.parts(load_shuttle(data, note))
    with Progress(pieces(parts, seeds, shuttle.cases())) as progress:
        result = shuttle.run_shuttle(parts, range(seeds), progress.advance, jobs=jobs)
    shuttle.write_shuttle(result, docs)
    shown = shuttle.shuttle_json(result)
    answer(shown, lambda: shuttle.shuttle_grid(result).text(), as_json=as_json, indent=2)
