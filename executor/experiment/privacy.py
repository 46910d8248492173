"""`executor experiment privacy`: what shared estimators tell about the rows that trained them."""

from pathlib import Path

import click

from executor.exits import json_option, reported
from executor.experiment.options import data_option, docs_option, jobs_option, out_option, seeds_option
from executor.output import Progress, answer, note


@click.command()
@data_option
@click.option("--quick", is_flag=True, help="One seed, the shipped way to FIT, two floors: under a minute.")
@seeds_option(5)
@jobs_option
@out_option
@json_option
@docs_option
@reported
def privacy(
    *,
    data: Path | None,
    quick: bool,
    seeds: int,
    jobs: int,
    out: Path | None,
    as_json: bool,
    docs: Path | None,
) -> None:
    """Tell the rows that trained shared estimators from others, by way to FIT, `min_leaf` and rounding.

    The area under the curve of the better of two attacks on a node's membership, for all rows and for the
    anomalies alone, and what each floor costs on the ring.
    """
    from experiments import privacy, privacy_page  # noqa: PLC0415 - slow, so on use
    from experiments.data import load_fraud  # noqa: PLC0415
    from experiments.split import split  # noqa: PLC0415

    parts = split(load_fraud(data, note))
    with Progress(privacy.pieces(quick=quick)) as progress:
        result = privacy.run_privacy(
            parts, range(1 if quick else seeds), progress.advance, quick=quick, jobs=jobs
        )
    privacy_page.write_privacy(result, out, docs)
    shown = privacy_page.privacy_json(result)
    answer(shown, lambda: privacy_page.privacy_text(result), as_json=as_json, indent=2)
