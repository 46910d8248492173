"""The paper's tables beside ours."""

import numpy as np

from executor.experiment.compare import Difference
from executor.experiment.metrics import METRICS, PAPER_METRICS, TITLES
from executor.experiment.outcome import PARTS, Runs, gains, metric, summary
from executor.experiment.reference import PAPER_EXTREMES, PAPER_GAIN, PAPER_NAMES
from executor.experiment.split import PAPER_TABLE, PAPER_TEST, Split
from executor.experiment.tables import Grid, node_label, plain, signed


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
