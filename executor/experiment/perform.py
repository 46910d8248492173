"""What the experiment commands do once their options are read."""

import json
from pathlib import Path

import click

from executor.experiment.batch import pieces
from executor.experiment.data import fraud_csv, load_fraud
from executor.experiment.files import write_files
from executor.experiment.paper import QUICK_RANKINGS, RANKINGS, cases_for, run_paper
from executor.experiment.paper_page import print_paper, write_paper
from executor.experiment.pooled import PER_JOB, TREES, pooled_forest
from executor.experiment.progress import progress, say, versions
from executor.experiment.robust import cases_for as cases_for_robust
from executor.experiment.robust import run_robust
from executor.experiment.robust_page import print_robust, robust_json, write_robust
from executor.experiment.split import split
from executor.experiment.synthetic import synthetic as made_up


def fetch() -> None:
    """Fetch and check the data, and print where it is."""
    path = fraud_csv(say)
    if not split(load_fraud(say=say)).is_papers():
        raise click.ClickException("the split differs from the paper's table: another numpy or scikit-learn?")
    click.echo(path)


def perform_split(
    *, data: Path | None, synthetic: bool, nodes: tuple[str, ...], seed: int, out: Path, as_json: bool
) -> None:
    """Write the files of the nodes and say which."""
    table = made_up() if synthetic else load_fraud(data, say)
    paths = write_files(table, nodes, seed, out)
    click.echo(
        json.dumps({"files": [str(path) for path in paths]}) if as_json else "\n".join(map(str, paths))
    )


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
    with progress(pieces(parts, count, cases_for(fit, rankings))) as advance:
        result = run_paper(parts, range(count), advance, fit=fit, rankings=rankings, jobs=jobs)
    write_paper(result, out, docs)
    if as_json:
        click.echo(json.dumps(result.as_json() | {"versions": versions()}, indent=2))
    else:
        print_paper(result)


def perform_robust(
    *,
    data: Path | None,
    quick: bool,
    seeds: int,
    jobs: int,
    out: Path | None,
    as_json: bool,
    docs: Path | None,
) -> None:
    """Run every rule clean and under every attack; print it, and write what was asked for."""
    parts = split(load_fraud(data, say))
    count = 1 if quick else seeds
    total = pieces(parts, count, cases_for_robust(len(parts.nodes)))
    with progress(total + (0 if quick else TREES // PER_JOB)) as advance:
        result = run_robust(parts, range(count), advance, jobs=jobs)
        pooled = None if quick else pooled_forest(parts, "plain", 0.5, advance, jobs=jobs)
    write_robust(result, pooled, out, docs)
    if as_json:
        click.echo(json.dumps(robust_json(result, pooled) | {"versions": versions()}, indent=2))
    else:
        print_robust(result, pooled)
