"""Hostile members that adapt: every attack, by one node up to a whole organisation, against what ships.

The honest nodes are measured; `clean` is the same nodes in the same federation without an attack. Only the
first split was seen when the settings of the defence were chosen.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from experiments.claims import Goal, at_least, at_most
from experiments.data import DataTable
from experiments.engine import Advance, Case, Engine
from experiments.kept import NOTHING, Kept
from experiments.metrics import METRICS
from experiments.split import split
from experiments.variants import Variant
from learning.fit_cache import FitCache
from learning.parameters import Parameters

RING, FULL, ALONE = "ring", "full", "disconnected"
ATTACKS = ("zero", "one", "noise", "mimic", "shadow", "grey", "main-leaf")
QUICK_ATTACKS = ("zero", "one", "grey")
ECLIPSE = "eclipse"
CLEAN = "clean"
MANY, FEW = 20, 4
FEW_ITERATIONS = 3
HOSTILE = {1: (8,), 3: (7, 8, 9), 5: (5, 6, 7, 8, 9)}
"""By how many they are: a node in the middle of the ring, three of an organisation, all of it."""
VICTIM = 7
SPLITS = (45, 46, 47)
DEFAULT, NONE = "default", "none"
DEFENCES = {
    DEFAULT: Parameters(),
    NONE: Parameters(quota=None, vote_cap=None, home_check=None),
}
UNDEFENDED = ("zero", "one")
"""The attacks that are also run against no defence at all, which shows what they can do."""
BACC, PRECISION, RECALL = (METRICS.index(name) for name in ("bacc", "precision", "recall"))
WHOLE = 5


@dataclass(frozen=True)
class Scene:
    """One federation under attack, or clean."""

    attack: str
    hostile: tuple[int, ...]
    nodes: int
    topology: str
    defence: str

    def case(self) -> Case:
        """What the engine runs."""
        kind = {CLEAN: None, ECLIPSE: "main-leaf"}.get(self.attack, self.attack)
        iterations = 4 if self.nodes == MANY else FEW_ITERATIONS
        return Case(
            Variant(self.defence, DEFENCES[self.defence]), self.topology, kind, self.hostile, iterations
        )

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.attack}-{len(self.hostile)}-of-{self.nodes}-{self.topology}-{self.defence}"

    @property
    def honest(self) -> list[int]:
        """The nodes that are measured: the victim of an eclipse, else all that are not hostile."""
        if self.attack == ECLIPSE:
            return [VICTIM]
        return [node for node in range(self.nodes) if node not in self.hostile]

    @property
    def base(self) -> "Scene":
        """What it is compared with: the same federation without the attack, or the victim alone."""
        topology = ALONE if self.attack == ECLIPSE else self.topology
        return Scene(CLEAN, (), self.nodes, topology, self.defence)


def scenes(*, quick: bool = False) -> list[Scene]:
    """Every federation of the table."""
    found = []
    attacks, counts = (QUICK_ATTACKS, (WHOLE,)) if quick else (ATTACKS, tuple(HOSTILE))
    for topology, count, attack in itertools.product((FULL, RING), counts, attacks):
        found.append(Scene(attack, HOSTILE[count], MANY, topology, DEFAULT))
        if not quick and attack in UNDEFENDED and count == WHOLE:
            found.append(Scene(attack, HOSTILE[count], MANY, topology, NONE))
    if not quick:
        found.append(Scene(ECLIPSE, (VICTIM - 1, VICTIM + 1), MANY, RING, DEFAULT))
        found += [Scene(attack, (1,), FEW, RING, DEFAULT) for attack in ATTACKS]
        found.append(Scene(CLEAN, (), MANY, RING, NONE))
        found.append(Scene(CLEAN, (), MANY, FULL, NONE))
    return list(dict.fromkeys([*found, *(scene.base for scene in found)]))


@dataclass(frozen=True)
class Row:
    """What the honest nodes reach under one attack, over all splits and seeds."""

    attack: str
    hostile: int
    nodes: int
    topology: str
    defence: str
    recall: float
    precision: float
    worst_recall: float
    clean_recall: float
    clean_precision: float


@dataclass
class AdversaryResult:
    """The metrics of every node by scene, split and seed."""

    runs: dict[tuple[int, int], dict[Scene, np.ndarray]] = field(default_factory=dict)

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

    def worst(self, scene: Scene) -> float:
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
            self.mean(scene, honest, RECALL),
            self.mean(scene, honest, PRECISION),
            self.worst(scene),
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
            yield at_least(f"Worst honest node, {where}", 0.65, min(row.worst_recall for row in whole))
        few = [row for row in rows if row.nodes == FEW]
        if few:
            yield at_most("Recall lost, one node of four, ring", 0.05, _recall_lost(few))
            yield at_least("Precision, one node of four, ring", 0.75, min(row.precision for row in few))
        for row in rows:
            if row.attack == ECLIPSE:
                yield at_least(
                    "Both ring neighbours hostile: recall less that alone", 0.0, -_recall_lost([row]), True
                )
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
) -> AdversaryResult:
    """Run every scene on every split and seed; FIT once for each."""
    result = AdversaryResult()
    wanted = scenes(quick=quick)
    for seed, part in itertools.product(range(seeds), splits):
        stage = Stage(table, part, seed, wanted, jobs, kept)
        found = result.runs[part, seed] = {}
        for scene in wanted:
            found[scene] = stage.measured(scene)
            advance(f"split {part}, seed {seed}")
    return result


@dataclass
class Stage:
    """One split and seed, on which scenes are measured; FIT once for all of equally many nodes."""

    table: DataTable
    part: int
    seed: int
    wanted: Sequence[Scene]
    jobs: int = 1
    kept: Kept = NOTHING
    engines: dict[int, Engine] = field(default_factory=dict)

    def measured(self, scene: Scene) -> np.ndarray:
        """The metrics of every node in a scene, measured now or before."""
        name = f"robust-split{self.part}-seed{self.seed}-{scene.name}"
        return self.kept.measured(name, f"{DEFENCES[scene.defence]}", partial(self._run, scene))

    def _run(self, scene: Scene) -> np.ndarray:
        return self._engine(scene.nodes).run(scene.case(), train=False, keep=False).test

    def _engine(self, nodes: int) -> Engine:
        if nodes not in self.engines:
            engine = Engine(split(self.table, nodes, self.part), self.seed, FitCache())
            cases = [scene.case() for scene in self.wanted if scene.nodes == nodes]
            engine.cache.prepare(engine.fit_jobs(cases), self.jobs)
            self.engines[nodes] = engine
        return self.engines[nodes]


def pieces(seeds: int, splits: int, *, quick: bool) -> int:
    """How often `run_adversary` will advance."""
    return seeds * splits * len(scenes(quick=quick))
