"""`executor experiment privacy`: what shared estimators tell about the rows that trained them."""

import click

from executor.experiment.options import RunOptions, run_options
from executor.output import Progress, answer, note


@click.command()
@run_options("One seed, the shipped way to FIT, two floors: under a minute.")
def privacy(run: RunOptions) -> None:
    """Tell the rows that trained shared estimators from others, by way to FIT, `min_leaf` and rounding.

    The area under the curve of the better of two attacks on a node's membership, for all rows and for the
    anomalies alone, and what each floor costs on the ring.
    """
    from experiments import privacy, privacy_page  # noqa: PLC0415 - slow, so on use
    from experiments.data import load_fraud  # noqa: PLC0415
    from experiments.split import split  # noqa: PLC0415

    parts = split(load_fraud(run.data, note))
    with Progress(privacy.pieces(quick=run.quick)) as progress:
        result = privacy.run_privacy(
            parts, range(run.seeds), progress.advance, quick=run.quick, jobs=run.jobs
        )
    privacy_page.write_privacy(result, run.out, run.docs)
    shown = privacy_page.privacy_json(result)
    answer(shown, lambda: privacy_page.privacy_text(result), as_json=run.as_json, indent=2)
