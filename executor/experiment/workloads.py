"""`executor experiment ieee-cis` and `shuttle`: data other than the paper's, fetched by hash."""

from pathlib import Path

import click

from executor.exits import json_option, reported
from executor.experiment.options import (
    RunOptions,
    check_writable,
    docs_option,
    jobs_option,
    resume_option,
    run_options,
    seeds_option,
    workers,
)
from executor.output import Progress, answer, note

_table_option = click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Your own copy of the table that is fetched by hash; checked by the same.",
)


@click.command("ieee-cis")
@run_options("One seed and three attacks.", _table_option)
@resume_option
@click.option("--choose", is_flag=True, help="Try settings on windows 1 to 4 alone, and print which is best.")
def ieee_cis(run: RunOptions, *, resume: Path | None, choose: bool) -> None:
    """Run forests and boosted models on card transactions that change over time.

    A node per address and a window of time per iteration: alone, federated and pooled, and beside a hostile
    organisation; order, alerts within a day's budget, and money. With --choose nothing is reported: settings
    train on three windows and are tested on the fourth.
    """
    from experiments import ieee, ieee_choice, ieee_page  # noqa: PLC0415 - slow, so on use
    from experiments.kept import Kept  # noqa: PLC0415
    from experiments.transactions import load_transactions  # noqa: PLC0415
    from experiments.windows import windowed  # noqa: PLC0415

    table = load_transactions(run.data, note)
    if choose:
        with Progress(ieee_choice.pieces(run.seeds)) as progress:
            choice = ieee_choice.run_choice(
                windowed(table, last=ieee_choice.LAST),
                range(run.seeds),
                progress.advance,
                jobs=run.jobs,
                kept=Kept(resume),
            )
        tried = ieee_choice.choice_json(choice)
        answer(tried, lambda: ieee_choice.choice_grid(choice).text(), as_json=run.as_json, indent=2)
        return
    parts = windowed(table)
    with Progress(ieee.pieces(run.seeds, quick=run.quick)) as progress:
        result = ieee.run_ieee(
            parts,
            range(run.seeds),
            progress.advance,
            quick=run.quick,
            jobs=run.jobs,
            kept=Kept(resume),
            after=lambda so_far: ieee_page.write_ieee(so_far, run.out, run.docs),
        )
    shown = ieee_page.ieee_json(result)
    answer(shown, lambda: ieee_page.ieee_text(result), as_json=run.as_json, indent=2)


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

    check_writable(docs)
    parts = shuttle.parts(load_shuttle(data, note))
    with workers(), Progress(pieces(parts, seeds, shuttle.cases())) as progress:
        result = shuttle.run_shuttle(parts, range(seeds), progress.advance, jobs=jobs)
    shuttle.write_shuttle(result, docs)
    shown = shuttle.shuttle_json(result)
    answer(shown, lambda: shuttle.shuttle_grid(result).text(), as_json=as_json, indent=2)
