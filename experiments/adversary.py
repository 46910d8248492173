"""Hostile members that adapt: every attack, by one node up to a whole organisation, against what ships.

The honest nodes are measured; `clean` is the same nodes in the same federation without an attack. Only the
first split was seen when the settings of the defence were chosen.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from experiments.claims import Goal, at_least, at_most
from experiments.data import DataTable, Floats
from experiments.engine import Advance
from experiments.kept import NOTHING, Kept, made_by, rows_digest
from experiments.metrics import METRICS
from experiments.scenes import (
    CLEAN,
    DEFAULT,
    FEW,
    FULL,
    MANY,
    NONE,
    RING,
    SPLITS,
    WHOLE,
    Scene,
    scenes,
)
from experiments.stages import Stage, measured

BACC, PRECISION, RECALL = (METRICS.index(name) for name in ("bacc", "precision", "recall"))
MODULES = ("adversary", "engine", "metrics", "scenes", "split", "stages", "tree_scores", "variants")
"""The code of `experiments` that decides these figures."""


@dataclass(frozen=True)
class Row:
    """What the honest nodes reach under one attack, over all splits and seeds."""

    attack: str
    hostile: int
    nodes: int
    topology: str
    defence: str
    spread: bool
    """Whether the hostile nodes are of several organisations."""
    victim: int | None
    """The node that is surrounded in an eclipse."""
    recall: float
    precision: float
    worst_recall: float
    worst_mean_recall: float
    worst_precision: float
    clean_recall: float
    clean_precision: float


@dataclass
class AdversaryResult:
    """The metrics of every node by scene, split and seed."""

    asked: int
    """How many seeds were asked for; fewer have been run until it is done."""
    quick: bool = False
    runs: dict[tuple[int, int], dict[Scene, Floats]] = field(default_factory=dict)

    @property
    def seeds(self) -> dict[int, tuple[int, ...]]:
        """Which seeds were run, by split."""
        found: dict[int, list[int]] = {}
        for part, seed in self.runs:
            found.setdefault(part, []).append(seed)
        return {part: tuple(seeds) for part, seeds in found.items()}

    def mean(self, scene: Scene, honest: Sequence[int], metric: int) -> float:
        """The mean of a metric over nodes, seeds and splits."""
        return float(np.mean([run[scene][honest, metric] for run in self.runs.values()]))

    def worst(self, scene: Scene, metric: int) -> float:
        """The least that an honest node had in any single run: one that was harmed is harmed."""
        return min(float(run[scene][scene.honest, metric].min()) for run in self.runs.values())

    def worst_mean(self, scene: Scene) -> float:
        """The recall of the worst honest node of any split, averaged over the seeds."""
        return min(
            float(
                np.mean([self.runs[part, seed][scene][scene.honest, RECALL] for seed in seeds], axis=0).min()
            )
            for part, seeds in self.seeds.items()
        )

    @property
    def scenes(self) -> list[Scene]:
        """What was run."""
        return list(next(iter(self.runs.values())))

    def rows(self) -> list[Row]:
        """One row per attack."""
        return [self._row(scene) for scene in self.scenes if scene.attack != CLEAN]

    def _row(self, scene: Scene) -> Row:
        honest, base = scene.honest, scene.base
        return Row(
            scene.attack,
            len(scene.hostile),
            scene.nodes,
            scene.topology,
            scene.defence,
            scene.spread,
            scene.victim,
            self.mean(scene, honest, RECALL),
            self.mean(scene, honest, PRECISION),
            self.worst(scene, RECALL),
            self.worst_mean(scene),
            self.worst(scene, PRECISION),
            self.mean(base, honest, RECALL),
            self.mean(base, honest, PRECISION),
        )

    def goals(self) -> list[Goal]:
        """The goals for what ships, each held against the worst attack."""
        return list(self._goals())

    def _goals(self) -> Iterator[Goal]:
        rows = [row for row in self.rows() if row.defence == DEFAULT]
        for topology in (FULL, RING):
            one = [r for r in rows if (r.nodes, r.topology, r.hostile) == (MANY, topology, 1)]
            if one:
                where = f"one node of twenty, {topology}"
                yield at_most(f"Recall lost, {where}", 0.01, _recall_lost(one))
                yield at_most(f"Precision lost, {where}", 0.01, _precision_lost(one))
            whole = [r for r in rows if (r.nodes, r.topology, r.hostile) == (MANY, topology, WHOLE)]
            where = f"one organisation of four, {topology}"
            yield at_most(f"Recall lost, {where}", 0.03, _recall_lost(whole))
            yield at_least(f"Precision, {where}", 0.85, min(row.precision for row in whole))
            yield at_least(
                f"Worst honest node of any run, {where}", 0.65, min(row.worst_recall for row in whole)
            )
            spread = [r for r in rows if r.spread and r.topology == topology]
            if spread:
                where = f"a node in each of three organisations, {topology}"
                yield at_most(f"Recall lost, {where}", 0.03, _recall_lost(spread))
                yield at_least(f"Precision, {where}", 0.85, min(row.precision for row in spread))
        few = [row for row in rows if row.nodes == FEW]
        if few:
            yield at_most("Recall lost, one node of four, ring", 0.05, _recall_lost(few))
            yield at_least("Precision, one node of four, ring", 0.75, min(row.precision for row in few))
        surrounded = [row for row in rows if row.victim is not None]
        if surrounded:
            where = "Both ring neighbours hostile, worst of the victims"
            yield at_least(f"{where}: recall less that alone", 0.0, -_recall_lost(surrounded), True)
            yield at_most(f"{where}: precision lost against alone", 0.05, _precision_lost(surrounded))
        for topology in (FULL, RING):
            plain = Scene(CLEAN, (), MANY, topology, NONE)
            if plain in self.scenes:
                nodes = range(MANY)
                cost = self.mean(plain, nodes, BACC) - self.mean(
                    Scene(CLEAN, (), MANY, topology, DEFAULT), nodes, BACC
                )
                yield at_most(f"BAcc that the defence costs without attack, {topology}", 0.005, cost)


def _recall_lost(rows: Sequence[Row]) -> float:
    return max(row.clean_recall - row.recall for row in rows)


def _precision_lost(rows: Sequence[Row]) -> float:
    return max(row.clean_precision - row.precision for row in rows)


def run_adversary(
    table: DataTable,
    seeds: int,
    advance: Advance,
    *,
    quick: bool = False,
    splits: Sequence[int] = SPLITS,
    jobs: int = 1,
    kept: Kept = NOTHING,
    after: Callable[[AdversaryResult], None] = lambda _: None,
) -> AdversaryResult:
    """Run every scene on every split and seed, FIT once for each; `after` is called after each seed."""
    result = AdversaryResult(seeds, quick)
    wanted = scenes(quick=quick)
    made = f"{rows_digest(table.X, table.y)} {made_by(*MODULES)}"
    stages = [Stage(table, part, seed, wanted, kept, made) for seed in range(seeds) for part in splits]
    for stage, found in zip(stages, measured(stages, advance, jobs), strict=True):
        result.runs[stage.part, stage.seed] = dict(zip(wanted, found, strict=True))
        if stage.part == splits[-1]:
            after(result)
    return result


def pieces(seeds: int, splits: int, *, quick: bool) -> int:
    """How often `run_adversary` will advance."""
    return seeds * splits * len(scenes(quick=quick))
