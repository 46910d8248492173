"""`executor experiment`: the data, the paper's experiment, and the federation under attack."""

from pathlib import Path

import click

from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.experiment.moving_command import moving
from executor.experiment.options import SPLIT_SEEDS, RunOptions, data_option, resume_option, run_options
from executor.experiment.privacy import privacy
from executor.experiment.workloads import ieee_cis, shuttle
from executor.output import Progress, answer, note


@click.group()
def experiment() -> None:
    """Reproduce the paper, and see how the federation stands an attack."""


experiment.add_command(ieee_cis)
experiment.add_command(moving)
experiment.add_command(privacy)
experiment.add_command(shuttle)


@experiment.command()
@reported
def data() -> None:
    """Fetch the credit card data by hash, unless it is cached, and print where it is."""
    from experiments.data import fraud_csv, load_fraud  # noqa: PLC0415 - slow, so on use
    from experiments.split import split as split_rows  # noqa: PLC0415

    path = fraud_csv(note)
    split_rows(load_fraud(say=note)).check_papers()
    click.echo(path)


@experiment.command()
@data_option
@click.option("--synthetic", is_flag=True, help="Made-up rows instead, without a download.")
@click.option("--node", "nodes", multiple=True, required=True, help="A node that gets a part; for each one.")
@click.option("--seed", type=SPLIT_SEEDS, default=45, show_default=True, help="Which split.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where to write."
)
@json_option
@reported
def split(
    *, data: Path | None, synthetic: bool, nodes: tuple[str, ...], seed: int, out: Path, as_json: bool
) -> None:
    """Write one CSV file of private rows per node, and test.csv with rows that no node has.

    For a federation on the ledger: `executor launch --data DIRECTORY/{node}.csv`.
    """
    from executor.experiment.files import write_files  # noqa: PLC0415 - as above
    from experiments.data import load_fraud  # noqa: PLC0415
    from experiments.data import synthetic as made_up  # noqa: PLC0415

    if synthetic and data is not None:
        raise UsageError("SPLIT_OPTIONS", "--synthetic and --data exclude each other")
    paths = write_files(made_up() if synthetic else load_fraud(data, note), nodes, seed, out)
    names = [str(path) for path in paths]
    answer({"files": names}, lambda: "\n".join(names), as_json=as_json)


@experiment.command()
@run_options("One seed and two rankings: under a minute on two cores.")
@click.option(
    "--fit",
    type=click.Choice(["plain", "regressor"]),
    default="plain",
    show_default=True,
    help="Classification trees, or regression trees on all features as in the authors' code.",
)
@click.option(
    "--ledger",
    is_flag=True,
    help="On the network of this host, one seed, every task in a container; --quick is four nodes.",
)
def paper(run: RunOptions, *, fit: str, ledger: bool) -> None:
    """Run the paper's experiment and print its tables beside ours.

    Three topologies on one set of trees per seed; the same trees under other rankings; every claim of the
    paper's section judged by the figures.
    """
    if ledger:
        from executor.experiment.paper_command import run_on_ledger  # noqa: PLC0415 - as above

        run_on_ledger(
            run.data, quick=run.quick, jobs=run.jobs, out=run.out, docs=run.docs, as_json=run.as_json
        )
        return
    from experiments import paper, paper_page  # noqa: PLC0415 - as above
    from experiments.data import load_fraud  # noqa: PLC0415
    from experiments.engine import pieces  # noqa: PLC0415
    from experiments.split import split as split_rows  # noqa: PLC0415

    parts = split_rows(load_fraud(run.data, note))
    rankings = paper.QUICK_RANKINGS if run.quick else paper.RANKINGS
    with Progress(pieces(parts, run.seeds, paper.cases_for(fit, rankings))) as progress:
        result = paper.run_paper(
            parts, range(run.seeds), progress.advance, fit=fit, rankings=rankings, jobs=run.jobs
        )
    paper_page.write_paper(result, run.out, run.docs)
    shown = paper_page.paper_json(result)
    answer(shown, lambda: paper_page.paper_text(result), as_json=run.as_json, indent=2)


@experiment.command()
@run_options("One split and seed of zero, one and accord by one organisation of four.")
@resume_option
def robust(run: RunOptions, *, resume: Path | None) -> None:
    """Put hostile nodes among the others and see what the honest ones lose.

    Twelve attacks by one node up to a whole organisation of four, by nodes of three of them, and around
    single nodes, on the full topology and the ring, and on the example's ring of four, on three splits; every
    goal for the shipped defence, met or missed. Tables and page are written after each seed.
    """
    from experiments import adversary, adversary_page  # noqa: PLC0415 - as above
    from experiments.data import load_fraud  # noqa: PLC0415
    from experiments.kept import Kept  # noqa: PLC0415
    from experiments.scenes import SPLITS  # noqa: PLC0415

    splits = SPLITS[:1] if run.quick else SPLITS
    with Progress(adversary.pieces(run.seeds, len(splits), quick=run.quick)) as progress:
        result = adversary.run_adversary(
            load_fraud(run.data, note),
            run.seeds,
            progress.advance,
            quick=run.quick,
            splits=splits,
            jobs=run.jobs,
            kept=Kept(resume),
            after=lambda so_far: adversary_page.write_adversary(so_far, run.out, run.docs),
        )
    shown = adversary_page.adversary_json(result)
    answer(shown, lambda: adversary_page.adversary_text(result), as_json=run.as_json, indent=2)


@experiment.command()
@run_options("One seed, and no pooled forest beside it.")
def methods(run: RunOptions) -> None:
    """Put what ships beside the paper's ranking, the naive union and other methods, without any attack."""
    from experiments import methods, methods_page  # noqa: PLC0415 - as above
    from experiments.data import load_fraud  # noqa: PLC0415
    from experiments.engine import pieces  # noqa: PLC0415
    from experiments.split import split as split_rows  # noqa: PLC0415

    parts = split_rows(load_fraud(run.data, note))
    total = pieces(parts, run.seeds, methods.cases_for(len(parts.nodes)))
    pooled = None
    with Progress(total + (0 if run.quick else methods.POOLED_TREES // methods.POOLED_PER_JOB)) as progress:
        result = methods.run_methods(parts, range(run.seeds), progress.advance, jobs=run.jobs)
        if not run.quick:
            pooled = methods.pooled_forest(parts, "plain", 0.5, progress.advance, jobs=run.jobs)
    methods_page.write_methods(result, pooled, run.out, run.docs)
    shown = methods_page.methods_json(result, pooled)
    answer(shown, lambda: methods_page.methods_text(result, pooled), as_json=run.as_json, indent=2)
