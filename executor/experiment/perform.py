"""What the experiment commands do once their options are read."""

import json
from pathlib import Path

import click

from executor.experiment.data import fraud_csv, load_fraud
from executor.experiment.paper import QUICK_RANKINGS, RANKINGS, pieces, run_paper
from executor.experiment.paper_page import print_paper, write_paper
from executor.experiment.progress import progress, say, versions
from executor.experiment.split import split


def fetch() -> None:
    """Fetch and check the data, and print where it is."""
    path = fraud_csv(say)
    if not split(load_fraud(say=say)).is_papers():
        raise click.ClickException("the split differs from the paper's table: another numpy or scikit-learn?")
    click.echo(path)


def perform_paper(
    *,
    data: Path | None,
    quick: bool,
    seeds: int,
    fit: str,
    jobs: int,
    out: Path | None,
    as_json: bool,
    docs: Path | None,
) -> None:
    """Run the paper's experiment; print it, and write what was asked for."""
    parts = split(load_fraud(data, say))
    count, rankings = (1, QUICK_RANKINGS) if quick else (seeds, RANKINGS)
    with progress(pieces(len(parts.nodes), count, len(rankings))) as advance:
        result = run_paper(parts, range(count), advance, fit=fit, rankings=rankings, jobs=jobs)
    write_paper(result, out, docs)
    if as_json:
        click.echo(json.dumps(result.as_json() | {"versions": versions()}, indent=2))
    else:
        print_paper(result)
