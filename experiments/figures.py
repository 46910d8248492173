"""The paper's figures from our runs, and the attacks: PNG and SVG, the same bytes for the same runs."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.metrics import PAPER_METRICS, TITLES, Runs, gains, origin_shares

# Okabe and Ito's palette: told apart with any kind of colour vision, and in print by lightness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#7F7F7F"
PALETTE = ("#56B4E9", "#CC79A7", "#F0E442", BLUE, ORANGE, "#D55E00", GREEN, "#999999")
TOPOLOGIES = {"ring": ("Pairwise (ring)", ORANGE), "full": ("Fully connected", BLUE)}
STYLE: Any = {  # matplotlib types its keys one by one
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "attestree",
}


def improvement_bars(runs: dict[str, Runs], base: Path) -> list[Path]:
    """Mean and median improvement over the disconnected nodes, on train and on test."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(7.6, 3.3, columns=2)
        for axis, part in zip(axes, ("test", "train"), strict=True):
            _bars(axis, runs, part)
        axes[0].set_ylabel("improvement over disconnected nodes")
        _legend(figure, axes[0])
        return _save(figure, base)


def _bars(axis: Any, runs: dict[str, Runs], part: str) -> None:
    width = 0.2
    for column, (topology, (title, colour)) in enumerate(TOPOLOGIES.items()):
        improvement = np.array([gains(runs[topology], runs["disconnected"], m, part) for m in PAPER_METRICS])
        kinds = {"mean": improvement.mean(axis=2), "median": np.median(improvement, axis=2)}
        for row, (kind, values) in enumerate(kinds.items()):
            position = np.arange(len(PAPER_METRICS)) + (2 * column + row - 1.5) * width
            axis.bar(
                position,
                values.mean(axis=1),
                width * 0.92,
                yerr=values.std(axis=1) if values.shape[1] > 1 else None,
                color=colour if kind == "mean" else "white",
                edgecolor=colour,
                hatch="" if kind == "mean" else "////",
                error_kw={"lw": 0.8, "capsize": 2, "ecolor": "black"},
                label=f"{title}, {kind}",
            )
    axis.axhline(0, color="black", lw=0.8)
    axis.set_xticks(range(len(PAPER_METRICS)), [TITLES[m] for m in PAPER_METRICS])
    axis.set_title("Joint test set" if part == "test" else "Own training rows")
    axis.grid(axis="y", lw=0.4, alpha=0.5)


def node_gains(runs: dict[str, Runs], base: Path) -> list[Path]:
    """Each node's test improvement in each metric, mean and range over seeds."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(7.6, 5.4, rows=3, sharex=True)
        count = len(runs["ring"][0].test)
        for axis, name in zip(axes, PAPER_METRICS, strict=True):
            for shift, (topology, (title, colour)) in zip((-0.14, 0.14), TOPOLOGIES.items(), strict=True):
                improvement = gains(runs[topology], runs["disconnected"], name)
                mean = improvement.mean(axis=0)
                spread = np.abs(np.array([improvement.min(axis=0), improvement.max(axis=0)]) - mean)
                axis.errorbar(
                    np.arange(count) + shift,
                    mean,
                    yerr=spread,
                    fmt="o" if topology == "ring" else "s",
                    ms=4,
                    lw=1,
                    color=colour,
                    label=title,
                )
            axis.axhline(0, color="black", lw=0.8)
            axis.set_ylabel(f"{TITLES[name]} gain")
            axis.grid(axis="y", lw=0.4, alpha=0.5)
        _legend(figure, axes[0])
        axes[-1].set_xticks(range(count))
        axes[-1].set_xlabel("node (points: mean over seeds; lines: least to greatest seed)")
        return _save(figure, base)


def origin_maps(runs: dict[str, Runs], base: Path) -> list[Path]:
    """Who made the trees that each node holds at the end, one map per topology."""
    with mpl.rc_context(STYLE):
        figure, axes = _figure(9.2, 3.5, columns=3, sharey=True)
        titles = {"disconnected": "Disconnected", "ring": "Pairwise (ring)", "full": "Fully connected"}
        norm = mpl.colors.PowerNorm(0.5, 0, 100)  # square root: small shares stay visible beside 100 %
        image: Any = None
        for axis, (topology, title) in zip(axes, titles.items(), strict=True):
            image = axis.imshow(100 * origin_shares(runs[topology]), norm=norm, cmap="Blues")
            axis.set_title(title)
            axis.set_xlabel("origin of the trees")
            count = len(runs[topology][0].test)
            ticks = range(0, count, 1 if count <= 10 else max(2, count // 10))
            axis.set_xticks(ticks)
            axis.set_yticks(ticks)
            axis.spines[:].set_visible(True)
        axes[0].set_ylabel("node that holds them")
        bar = figure.colorbar(image, ax=list(axes), fraction=0.025, pad=0.015)
        bar.set_ticks([0, 1, 5, 10, 25, 50, 100], labels=["0", "1", "5", "10", "25", "50", "100"])
        bar.set_label("% of the holder's trees")
        return _save(figure, base)


def stacked_parts(parts: dict[str, float], beside: dict[str, float], base: Path) -> list[Path]:
    """One bar of parts that add up, and single bars beside it, in seconds."""
    with mpl.rc_context(STYLE):
        figure, axis = _figure(7.6, 2.2)
        start = 0.0
        for place, (name, seconds) in enumerate(parts.items()):
            colour = PALETTE[place % len(PALETTE)]
            axis.barh(["ledger"], seconds, left=start, color=colour, edgecolor="white", lw=0.5, label=name)
            start += seconds
        for name, seconds in beside.items():
            axis.barh([name], seconds, color=GREY)
        axis.set_xlabel("seconds")
        axis.grid(axis="x", lw=0.4, alpha=0.5)
        _legend(figure, axis)
        return _save(figure, base)


def _figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **shared)


def _legend(figure: Figure, axis: Any) -> None:
    """One legend above all panels, where it hides nothing."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=len(labels), loc="outside upper center", fontsize=8)


def _save(figure: Figure, base: Path) -> list[Path]:
    base.parent.mkdir(parents=True, exist_ok=True)
    png, svg = base.with_suffix(".png"), base.with_suffix(".svg")
    figure.savefig(png, dpi=130, metadata={"Software": None})
    figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return [png, svg]
