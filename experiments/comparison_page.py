"""The comparison as tables, JSON, CSV and a part of the results page."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.comparison import Comparison, Gap
from experiments.metrics import METRICS, TITLES
from experiments.pages import Grid, plain, section, signed, versions, write_csv, write_part

COMPARED = ("bacc", "precision", "recall", "ap")


def level_grid(comparison: Comparison) -> Grid:
    """What each variant reaches."""
    attacked = any(level.attack != "clean" for level in comparison.levels)
    refused = any(level.refusals for level in comparison.levels)
    rows = []
    for level in comparison.levels:
        cells = [level.variant, level.topology]
        cells += [level.attack] if attacked else []
        cells += [plain(level.metrics[name]) for name in METRICS]
        cells += [plain(level.worst_recall), f"{level.share_bytes / 1e3:.1f}"]
        cells += [f"{level.refusals:.0f}"] if refused else []
        rows.append(cells)
    columns = ["Variant", "Topology", *(["Attack"] if attacked else []), *(TITLES[name] for name in METRICS)]
    columns += ["Worst recall", "SHARE, kB", *(["Refused"] if refused else [])]
    where = "honest nodes" if attacked else "nodes"
    note = f"Means over {where}, seeds and splits; worst recall: the worst node of the worst split."
    return Grid(_title(comparison), columns, rows, note)


def gap_grid(comparison: Comparison) -> Grid:
    """Each variant against the first, with the interval on every split and the verdict."""
    rows = [
        (
            f"{gap.variant} against {gap.reference}",
            gap.topology,
            TITLES[gap.metric],
            *(f"{signed(d.mean)} [{signed(d.low)}, {signed(d.high)}]" for d in gap.by_split),
            gap.verdict,
        )
        for gap in comparison.gaps
        if gap.metric in COMPARED
    ]
    columns = (
        "Clean",
        "Topology",
        "Metric",
        *(f"Split {seed}" for seed in comparison.split_seeds),
        "Verdict",
    )
    note = "Paired 95 % bootstrap intervals over test rows; better or worse only if every split says so."
    return Grid("Differences", columns, rows, note)


def grids(comparison: Comparison) -> list[Grid]:
    """The tables, in reading order."""
    return [level_grid(comparison), *([gap_grid(comparison)] if comparison.gaps else [])]


def comparison_text(comparison: Comparison) -> str:
    """All tables, one after the other."""
    return "\n".join(grid.text() for grid in grids(comparison))


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as one object for programs."""
    return {
        "data": comparison.source,
        "split_seeds": list(comparison.split_seeds),
        "seeds": list(range(comparison.seeds)),
        "nodes": comparison.nodes,
        "variants": [asdict(level) for level in comparison.levels],
        "differences": [asdict(gap) | {"verdict": gap.verdict} for gap in comparison.gaps],
        "versions": versions(),
    }


def write_comparison(comparison: Comparison, out: Path | None, docs: Path | None, command: str) -> None:
    """CSV and a page into `out`, the page's part into `docs`."""
    text = section("Ways to learn, compared", command, range(comparison.seeds), grids(comparison))
    if out is not None:
        _write_csv(comparison, out)
        (out / "simulate.md").write_text(text, encoding="utf-8")
    if docs is not None:
        write_part(docs, "fit", text)


def _write_csv(comparison: Comparison, out: Path) -> None:
    columns = ("variant", "topology", "attack", *METRICS, "worst_recall", "share_bytes", "refusals")
    rows = (
        (
            level.variant,
            level.topology,
            level.attack,
            *level.metrics.values(),
            level.worst_recall,
            level.share_bytes,
            level.refusals,
        )
        for level in comparison.levels
    )
    write_csv(out / "variants.csv", columns, rows)
    write_csv(
        out / "differences.csv",
        ("variant", "reference", "topology", "metric", "split", "mean", "low", "high", "verdict"),
        (row for gap in comparison.gaps for row in _gap_rows(gap, comparison.split_seeds)),
    )


def _gap_rows(gap: Gap, splits: tuple[int, ...]) -> list[tuple[object, ...]]:
    head = (gap.variant, gap.reference, gap.topology, gap.metric)
    pairs = zip(splits, gap.by_split, strict=True)
    return [(*head, seed, d.mean, d.low, d.high, gap.verdict) for seed, d in pairs]


def _title(comparison: Comparison) -> str:
    splits = ", ".join(map(str, comparison.split_seeds))
    return f"{comparison.nodes} nodes on {comparison.source}; splits {splits}; {comparison.seeds} seed(s)"
