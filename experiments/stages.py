"""One split and seed at a time: every federation with hostile members is measured on trees fitted once."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from joblib import Parallel, delayed

from experiments.data import DataTable, Floats
from experiments.engine import Advance, Engine
from experiments.kept import NOTHING, Kept
from experiments.scenes import Scene
from experiments.split import split
from learning.fit_cache import FitCache


def measured(stages: Sequence["Stage"], advance: Advance, jobs: int) -> Iterator[list[Floats]]:
    """Yield what is measured on each stage: a process has whole stages, whose trees it then makes once.

    Where there are fewer stages than processes, all of them work at one stage.
    """
    if jobs == 1 or len(stages) < jobs:
        for stage in stages:
            yield stage.all(advance, jobs)
            stage.engines.clear()
        return
    work = Parallel(n_jobs=jobs, return_as="generator")
    for stage, found in zip(stages, work(delayed(stage.all)(_untold) for stage in stages), strict=True):
        for _ in found:
            advance(stage.title)
        yield found


def _untold(_: str) -> None:
    """Leave it to the parent process to say what was done."""


@dataclass
class Stage:
    """One split and seed, on which scenes are measured; FIT once for all of equally many nodes."""

    table: DataTable
    part: int
    seed: int
    wanted: Sequence[Scene]
    kept: Kept = NOTHING
    made: str = ""
    engines: dict[int, Engine] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What to call it."""
        return f"split {self.part}, seed {self.seed}"

    def all(self, advance: Advance, jobs: int = 1) -> list[Floats]:
        """The metrics of every node in each scene that is wanted, in as many processes as there are jobs.

        Neighbours in the list share most trees, so that a process has a run of them.
        """
        if jobs == 1:
            return [self._told(scene, advance) for scene in self.wanted]
        self._prepare([scene for scene in self.wanted if not self.kept.has(*self._key(scene))], jobs)
        cuts = [len(self.wanted) * i // jobs for i in range(jobs + 1)]
        runs = [self.wanted[start:stop] for start, stop in itertools.pairwise(cuts)]
        found: list[Floats] = []
        for part in Parallel(n_jobs=jobs, return_as="generator")(delayed(self._part)(run) for run in runs):
            found += part
            for _ in part:
                advance(self.title)
        return found

    def _told(self, scene: Scene, advance: Advance) -> Floats:
        found = self.measured(scene)
        advance(self.title)
        return found

    def _part(self, run: Sequence[Scene]) -> list[Floats]:
        return [self.measured(scene) for scene in run]

    def _prepare(self, missing: Sequence[Scene], jobs: int) -> None:
        for nodes in {scene.nodes: None for scene in missing}:
            self._engine(nodes, jobs)

    def measured(self, scene: Scene) -> Floats:
        """The metrics of every node in a scene, measured now or before."""
        return self.kept.measured(*self._key(scene), partial(self._run, scene))

    def _key(self, scene: Scene) -> tuple[str, str]:
        name = f"robust-split{self.part}-seed{self.seed}-{scene.name}"
        return name, f"{scene.case()} {self.part} {self.seed} {self.made}"

    def _run(self, scene: Scene) -> Floats:
        return self._engine(scene.nodes).run(scene.case(), train=False, keep=False).test

    def _engine(self, nodes: int, jobs: int = 1) -> Engine:
        if nodes not in self.engines:
            engine = Engine(split(self.table, nodes, self.part), self.seed, FitCache())
            cases = [scene.case() for scene in self.wanted if scene.nodes == nodes]
            engine.cache.prepare(engine.fit_jobs(cases), jobs)
            self.engines[nodes] = engine
        return self.engines[nodes]
