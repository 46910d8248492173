"""The paper's tables beside ours: what its experiment prints, writes and puts on the results pages."""

from pathlib import Path

import numpy as np

from experiments import figures, pages
from experiments.claims import claims_grid, goals_grid
from experiments.comparison import Difference
from experiments.metrics import (
    METRICS,
    PAPER_METRICS,
    PARTS,
    TITLES,
    Runs,
    all_gains,
    gains,
    metric,
    origin_shares,
    summary,
)
from experiments.pages import Grid, node_label, plain, signed, write_csv
from experiments.paper import PaperResult
from experiments.reference import PAPER_EXTREMES, PAPER_GAIN, PAPER_NAMES, PAPER_TABLE, PAPER_TEST
from experiments.split import Split

CAPTIONS = {
    "improvement": "Mean and median improvement over disconnected nodes; whiskers: deviation over seeds",
    "nodes": "Test improvement of each node over itself alone",
    "origins": "Who made the trees that a node holds at the end, mean over seeds",
}


def grids(result: PaperResult) -> list[Grid]:
    """Every table, in reading order."""
    return [
        claims_grid(result.claims()),
        extremes(result.paper),
        typical(result.paper),
        levels(result.paper),
        rankings(result.runs, result.disconnected, result.against),
        goals_grid("Goals of this project", result.goals()),
        sizes(result.split),
    ]


def paper_text(result: PaperResult) -> str:
    """All tables, one after the other, the claims as a list."""
    judged, *others = grids(result)
    return "\n".join([judged.listed(), *(grid.text() for grid in others), by_seed(result)])


def by_seed(result: PaperResult) -> str:
    """Say what each seed alone would miss, in words."""
    missed = result.missed_by_seed()
    total = len(result.goals())
    said = "; ".join(f"seed {seed}: {len(texts)} of {total}" for seed, texts in missed.items())
    names = dict.fromkeys(text for texts in missed.values() for text in texts)
    which = f" These are: {'; '.join(names)}." if names else ""
    warning = "**One seed may miss goals that the mean over seeds meets.**"
    return f"{warning} Goals missed by each seed alone: {said}.{which}"


def paper_json(result: PaperResult) -> dict[str, object]:
    """The results as one object for programs."""
    return {
        "table_exact": result.split.is_papers(),
        "fit": result.fit,
        "seeds": list(result.seeds),
        "gains": all_gains(result.paper),
        "claims": [vars(claim) for claim in result.claims()],
        "goals": [vars(goal) for goal in result.goals()],
        "missed_by_seed": {str(seed): texts for seed, texts in result.missed_by_seed().items()},
        "versions": pages.versions(),
    }


def write_paper(result: PaperResult, out: Path | None = None, docs: Path | None = None) -> None:
    """CSV, figures and a page into `out`; the page's part and its figures into `docs`."""
    if out is not None:
        write_tables(result, out)
        _draw(result, out / pages.FIGURES)
        (out / "paper.md").write_text(_section(result), encoding="utf-8")
    if docs is not None:
        _draw(result, docs / pages.FIGURES)
        pages.write_part(docs, _part(result), _section(result))


def _part(result: PaperResult) -> str:
    return "paper" if result.fit == "plain" else f"paper-{result.fit}"


def _section(result: PaperResult) -> str:
    command = f"executor experiment paper --seeds {len(result.seeds)}"
    if result.fit != "plain":
        command += f" --fit {result.fit}"
    pictures = [pages.figure(f"{_part(result)}-{name}", caption) for name, caption in CAPTIONS.items()]
    title = "The paper's experiment" + (
        "" if result.fit == "plain" else ", with the authors' regression trees"
    )
    tables = grids(result)
    blocks: list[Grid | str] = [
        tables[0],
        *pictures[:1],
        *tables[1:-1],
        by_seed(result),
        tables[-1],
        *pictures[1:],
    ]
    return pages.section(title, command, result.seeds, blocks)


def _draw(result: PaperResult, directory: Path) -> None:
    base = _part(result)
    figures.improvement_bars(result.paper, directory / f"{base}-improvement")
    figures.node_gains(result.paper, directory / f"{base}-nodes")
    figures.origin_maps(result.paper, directory / f"{base}-origins")


def write_tables(result: PaperResult, out: Path) -> None:
    """Write every node's metrics, the gains and the origins of the trees as CSV."""
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


def sizes(split: Split) -> Grid:
    """Samples and frauds per node, the paper's and ours."""
    ours = [*split.sizes(), (len(split.y_test), int(split.y_test.sum()))]
    names = [*(node_label(i) for i in range(len(split.nodes))), "Joint test set"]
    rows = [
        (name, f"{paper[0]:,}", f"{own[0]:,}", str(paper[1]), str(own[1]), "yes" if paper == own else "NO")
        for name, paper, own in zip(names, (*PAPER_TABLE, PAPER_TEST), ours, strict=True)
    ]
    columns = ("", "Samples, paper", "Samples, here", "Frauds, paper", "Frauds, here", "Equal")
    return Grid("Training sets and test set", columns, rows)


def extremes(runs: dict[str, Runs]) -> Grid:
    """Least and greatest test improvement with the node; ours averaged over seeds, with the seeds' range."""
    rows = []
    for topology in ("full", "ring"):
        for name in PAPER_METRICS:
            paper = PAPER_EXTREMES[topology][name]
            improvement = gains(runs[topology], runs["disconnected"], name)
            own = summary(improvement)
            rows.append(
                (
                    f"{PAPER_NAMES[topology]}, {TITLES[name]}",
                    f"{signed(paper.min)} {node_label(paper.min_node)}",
                    f"{signed(own['min'])} {node_label(int(own['min_node']))}",
                    _range(improvement.min(axis=1)),
                    f"{signed(paper.max)} {node_label(paper.max_node)}",
                    f"{signed(own['max'])} {node_label(int(own['max_node']))}",
                    _range(improvement.max(axis=1)),
                )
            )
    columns = ("Test improvement", "Least, paper", "here", "seeds", "Greatest, paper", "here", "seeds")
    note = "Here: the node with the least or greatest mean over seeds; seeds: that extreme by run, low..high."
    return Grid("Least and greatest improvement over the disconnected nodes", columns, rows, note)


def typical(runs: dict[str, Runs]) -> Grid:
    """Mean and median improvement over nodes, on test and on train."""
    rows = []
    for part in PARTS:
        paper = f"{PAPER_GAIN[0]} to {PAPER_GAIN[1]}" if part == "test" else "negative"
        for topology in ("ring", "full"):
            for name in PAPER_METRICS:
                improvement = gains(runs[topology], runs["disconnected"], name, part)
                means, medians = improvement.mean(axis=1), np.median(improvement, axis=1)
                cells = (f"{signed(v.mean())} ± {plain(v.std())}" for v in (means, medians))
                rows.append((f"{part}, {PAPER_NAMES[topology]}, {TITLES[name]}", paper, *cells))
    columns = ("Improvement", "Paper, mean and median", "Mean here", "Median here")
    note = "Over the nodes of a run, then the mean ± standard deviation over seeds."
    return Grid("Mean and median improvement over the disconnected nodes", columns, rows, note)


def levels(runs: dict[str, Runs]) -> Grid:
    """The metrics themselves, mean over nodes and the worst node."""
    rows = []
    for topology, kept in runs.items():
        values = [plain(metric(kept, name).mean()) for name in METRICS]
        worst = metric(kept, "recall").mean(axis=0)
        own = [plain(metric(kept, name, "train").mean()) for name in PAPER_METRICS]
        node = f"{plain(worst.min())} {node_label(int(worst.argmin()))}"
        rows.append((topology, *values, node, " / ".join(own)))
    columns = (
        "Topology",
        *(TITLES[name] for name in METRICS),
        "Worst recall",
        "Train BAcc / precision / recall",
    )
    return Grid("Metrics on the test set, mean over nodes and seeds", columns, rows)


def rankings(
    runs: dict[str, dict[str, Runs]], baseline: Runs, against: dict[str, dict[str, dict[str, Difference]]]
) -> Grid:
    """Gain by ranking, and the paired interval of its difference from the paper's kernel."""
    rows = []
    for ranking, by_topology in runs.items():
        for topology, kept in by_topology.items():
            improvement = gains(kept, baseline, "bacc").mean(axis=1)
            recall = gains(kept, baseline, "recall").mean(axis=1)
            gap = against[ranking][topology]["bacc"] if ranking in against else None
            interval = f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]" if gap else "reference"
            cells = (f"{signed(v.mean())} ± {plain(v.std())}" for v in (improvement, recall))
            rows.append((f"{ranking}, {topology}", *cells, interval))
    columns = ("Ranking, topology", "BAcc gain", "Recall gain", "BAcc against the kernel [95 %]")
    return Grid("Rankings on the same trees", columns, rows)


def _range(values: np.ndarray) -> str:
    return f"{signed(values.min())}..{signed(values.max())}"
