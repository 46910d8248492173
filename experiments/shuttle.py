"""A workload of seconds: the Shuttle data, both kinds of estimators, alone, joined and attacked."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from experiments import pages
from experiments.data import DataTable
from experiments.engine import Advance, Case, run_cases
from experiments.metrics import Runs, metric
from experiments.pages import Grid, plain
from experiments.split import Split, split
from experiments.variants import Variant
from learning.fit_options import FitOptions
from learning.parameters import Parameters
from protocol.values import dataclass

NODES, SEED, IMBALANCE = 8, 45, 0.4
HOSTILE = (2, 3)
"""The two nodes of the second organisation of four."""
KINDS = {
    "forest": Parameters(n_new=5, n_share=5),
    "boosted": Parameters(n_new=2, n_share=5, fit=FitOptions("boosted")),
}
TITLE = "Shuttle, a workload of seconds"
WORDS = """Eight nodes of four organisations; the five rare states are anomalous, the second most frequent is
left out. Under attack both nodes of one organisation send trees that say normal, or anomalous; the honest
nodes are measured, at the shipped defence."""


@dataclass(frozen=True)
class ShuttleRow:
    """Means over nodes and seeds of one kind in one federation."""

    kind: str
    topology: str
    attack: str
    ap: float
    precision: float
    recall: float


@dataclass(frozen=True)
class ShuttleResult:
    """The rows of the table, and what they were measured on."""

    sizes: tuple[tuple[int, int], ...]
    test: tuple[int, int]
    seeds: tuple[int, ...]
    rows: tuple[ShuttleRow, ...]


def parts(table: DataTable) -> Split:
    """Deal the rows out."""
    return split(table, NODES, SEED, IMBALANCE)


def cases() -> list[Case]:
    """Both kinds alone, on ring and full, and on full beside a hostile organisation."""
    found = []
    for kind, parameters in KINDS.items():
        variant = Variant(kind, parameters)
        found += [Case(variant, topology) for topology in ("disconnected", "ring", "full")]
        found += [Case(variant, "full", attack, HOSTILE) for attack in ("zero", "one")]
    return found


def run_shuttle(dealt: Split, seeds: Sequence[int], advance: Advance, *, jobs: int = 1) -> ShuttleResult:
    """Run every case."""
    chosen = cases()
    outcomes = run_cases(dealt, seeds, chosen, advance, jobs=jobs, train=False, keep=lambda _: False)
    rows = tuple(_row(case, runs) for case, runs in zip(chosen, outcomes, strict=True))
    test = (len(dealt.y_test), int(dealt.y_test.sum()))
    return ShuttleResult(dealt.sizes(), test, tuple(seeds), rows)


def _row(case: Case, runs: Runs) -> ShuttleRow:
    honest = [place for place in range(len(runs[0].test)) if place not in case.hostile]
    means = [float(np.mean(metric(runs, name)[:, honest])) for name in ("ap", "precision", "recall")]
    return ShuttleRow(case.variant.name, case.topology, case.attack or "none", *means)


def shuttle_grid(result: ShuttleResult) -> Grid:
    """Every case, in order."""
    cells = [
        (f"{row.kind}, {row.topology}", row.attack, plain(row.ap), plain(row.precision), plain(row.recall))
        for row in result.rows
    ]
    return Grid("Shuttle", ("Kind and topology", "Attack", "AP", "Precision", "Recall"), cells, _run(result))


def shuttle_json(result: ShuttleResult) -> dict[str, object]:
    """The results as one object for programs."""
    return {
        "rows": [asdict(row) for row in result.rows],
        "seeds": list(result.seeds),
        "versions": pages.versions(),
    }


def write_shuttle(result: ShuttleResult, docs: Path | None) -> None:
    """The page's part into `docs`."""
    if docs is not None:
        command = f"executor experiment shuttle --seeds {len(result.seeds)}"
        section = pages.section(TITLE, command, result.seeds, [WORDS, shuttle_grid(result)])
        pages.write_part(docs, "shuttle", section)


def _run(result: ShuttleResult) -> str:
    rows, anomalies = (sum(part) for part in zip(*result.sizes, strict=True))
    tested, found = result.test
    return f"{rows:,} rows with {anomalies:,} anomalies to train on, {tested:,} with {found:,} to test."
