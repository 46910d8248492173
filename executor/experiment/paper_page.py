"""What the paper's experiment prints, writes and puts on the results page."""

from pathlib import Path

import click

from executor.experiment import claims, figures, goals, page, paper_tables
from executor.experiment.metrics import METRICS, PAPER_METRICS
from executor.experiment.outcome import PARTS, all_gains, origin_shares
from executor.experiment.paper import PaperResult
from executor.experiment.tables import Grid, write_csv

CAPTIONS = {
    "improvement": "Mean and median improvement over disconnected nodes; whiskers: deviation over seeds",
    "nodes": "Test improvement of each node over itself alone",
    "origins": "Who made the trees that a node holds at the end, mean over seeds",
}


def grids(result: PaperResult) -> list[Grid]:
    """Every table, in reading order."""
    return [
        claims.as_grid(result.claims()),
        paper_tables.extremes(result.paper),
        paper_tables.typical(result.paper),
        paper_tables.levels(result.paper),
        paper_tables.rankings(result.runs, result.disconnected, result.against),
        goals.as_grid("Goals of this project", result.goals()),
        paper_tables.sizes(result.split),
    ]


def print_paper(result: PaperResult) -> None:
    """All tables on stdout."""
    judged, *others = grids(result)
    click.echo("\n".join([judged.listed(), *(grid.text() for grid in others)]))


def write_paper(result: PaperResult, out: Path | None = None, docs: Path | None = None) -> None:
    """CSV, figures and a page into `out`; the page's part and its figures into `docs`."""
    if out is not None:
        _write_tables(result, out)
        _draw(result, out / page.FIGURES)
        (out / "paper.md").write_text(_section(result), encoding="utf-8")
    if docs is not None:
        _draw(result, docs / page.FIGURES)
        page.write_part(docs, _part(result), _section(result))


def _part(result: PaperResult) -> str:
    return "paper" if result.fit == "plain" else f"paper-{result.fit}"


def _section(result: PaperResult) -> str:
    command = f"executor experiment paper --seeds {len(result.seeds)}"
    if result.fit != "plain":
        command += f" --fit {result.fit}"
    pictures = [page.figure(f"{_part(result)}-{name}", caption) for name, caption in CAPTIONS.items()]
    title = "The paper's experiment" + (
        "" if result.fit == "plain" else ", with the authors' regression trees"
    )
    tables = grids(result)
    return page.section(title, command, result.seeds, [tables[0], *pictures[:1], *tables[1:], *pictures[1:]])


def _draw(result: PaperResult, directory: Path) -> None:
    base = _part(result)
    figures.improvement_bars(result.paper, directory / f"{base}-improvement")
    figures.node_gains(result.paper, directory / f"{base}-nodes")
    figures.origin_maps(result.paper, directory / f"{base}-origins")


def _write_tables(result: PaperResult, out: Path) -> None:
    runs = result.paper
    write_csv(
        out / "nodes.csv",
        ("topology", "seed", "node", "part", *METRICS),
        (
            (topology, run.seed, node, part, *values.tolist())
            for topology, kept in runs.items()
            for run in kept
            for part in PARTS
            for node, values in enumerate(run.part(part))
        ),
    )
    summary = all_gains(runs)
    write_csv(
        out / "gains.csv",
        ("topology", "part", "metric", "mean", "median", "min", "min_node", "max", "max_node"),
        (
            (topology, part, name, *summary[topology][part][name].values())
            for topology in summary
            for part in PARTS
            for name in PAPER_METRICS
        ),
    )
    write_csv(
        out / "origins.csv",
        ("topology", "holder", "origin", "share"),
        (
            (topology, holder, origin, share)
            for topology, kept in runs.items()
            for holder, shares in enumerate(origin_shares(kept).tolist())
            for origin, share in enumerate(shares)
        ),
    )
