"""The second workload: card transactions with many frauds and real drift, for two kinds of estimators.

Twenty nodes of four organisations, one per address; four iterations, one window of time each; the fifth
window tests. The settings are those of `experiments.ieee_settings`, which the window that is reported had no
part in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np

from experiments.alerts import ALERT_METRICS
from experiments.claims import Goal, at_least, at_most
from experiments.data import Floats
from experiments.drift import COLUMNS, REFUSED, REFUSED_HOSTILE, DriftCase, DriftEngine
from experiments.engine import Advance
from experiments.ieee_settings import Setting, chosen
from experiments.kept import NOTHING, Kept, made_by
from experiments.windows import WindowedSplit
from learning.fit_cache import FitCache

ALONE, RING, FEDERATED, POOLED = "alone", "ring", "federated", "pooled"
TOPOLOGIES = {ALONE: "disconnected", RING: "ring", FEDERATED: "full"}
HOSTILE = (5, 6, 7, 8, 9)
"""All nodes of the second organisation."""
ATTACKS = ("zero", "one", "grey", "noise", "main-leaf", "inverted")
QUICK_ATTACKS = ("zero", "main-leaf", "inverted")
OF_POOLED, OF_ALONE, LOSS = 0.95, 1.6, 0.10
MODULES = ("alerts", "drift", "engine", "metrics", "tree_scores", "variants", "windows")
"""The code of `experiments` that decides these figures."""


@dataclass(frozen=True)
class AttackRow:
    """What the honest nodes keep beside one hostile organisation: means over nodes and seeds."""

    kind: str
    attack: str
    ap: float
    clean_ap: float
    worst_ap: float
    refused: float
    """Estimators of honest nodes that an honest node's home check refused in all iterations, on average."""
    refused_hostile: float

    @property
    def loss(self) -> float:
        """The share of AP that is lost."""
        return 1.0 - self.ap / self.clean_ap


@dataclass
class IeeeResult:
    """Metrics by kind and way to learn or attack, one array of (nodes, metrics) per seed."""

    split: WindowedSplit
    seeds: tuple[int, ...]
    kinds: tuple[str, ...]
    quick: bool = False
    runs: dict[tuple[str, str], list[Floats]] = field(default_factory=dict)

    def mean(self, kind: str, way: str, metric: str = "ap") -> float:
        """One metric of one way to learn, averaged over nodes and seeds."""
        place = COLUMNS.index(metric)
        return float(np.mean([run[:, place].mean() for run in self.runs[kind, way]]))

    def spread(self, kind: str, way: str, metric: str = "ap") -> float:
        """How far the seeds' means lie apart, as a standard deviation; 0 for one seed."""
        place = COLUMNS.index(metric)
        return float(np.std([run[:, place].mean() for run in self.runs[kind, way]]))

    def attacks(self) -> list[AttackRow]:
        """Every attack on every kind."""
        found = []
        for (kind, way), runs in self.runs.items():
            if way in ATTACKS:
                honest = [place for place in range(len(runs[0])) if place not in HOSTILE]
                ap, clean = (
                    np.array([run[honest, 0] for run in kept]) for kept in (runs, self.runs[kind, FEDERATED])
                )
                worst = float(ap.mean(axis=0).min())
                refused, bad = (
                    float(np.mean([run[honest, COLUMNS.index(name)].mean() for run in runs]))
                    for name in (REFUSED, REFUSED_HOSTILE)
                )
                means = float(ap.mean()), float(clean.mean())
                found.append(AttackRow(kind, way, *means, worst, refused, bad))
        return found

    def goals(self) -> list[Goal]:
        """What was hoped for, met or missed."""
        goals = []
        for kind in self.kinds:
            federated = self.mean(kind, FEDERATED)
            text = f"{kind}: AP of the federation, as a share of pooled"
            goals.append(at_least(text, OF_POOLED, federated / self.mean(kind, POOLED)))
            text = f"{kind}: AP of the federation, as a multiple of alone"
            goals.append(at_least(text, OF_ALONE, federated / self.mean(kind, ALONE)))
            worst = max((row for row in self.attacks() if row.kind == kind), key=lambda row: row.loss)
            text = f"{kind}: share of AP lost to a hostile organisation, worst attack ({worst.attack})"
            goals.append(at_most(text, LOSS, worst.loss))
        return goals

    def as_dict(self) -> dict[str, object]:
        """The figures as one object: metric, kind, way."""
        ways = (*TOPOLOGIES, POOLED)
        return {
            **{
                metric: {kind: {way: self.mean(kind, way, metric) for way in ways} for kind in self.kinds}
                for metric in ALERT_METRICS
            },
            REFUSED: {kind: {way: self.mean(kind, way, REFUSED) for way in ways} for kind in self.kinds},
            "hostile": [{**asdict(row), "loss": row.loss} for row in self.attacks()],
            "goals": [vars(goal) for goal in self.goals()],
            "seeds": list(self.seeds),
            "sizes": self.split.sizes(),
        }


def cases(*, quick: bool) -> dict[str, DriftCase]:
    """The federations of each kind and seed."""
    attacks = QUICK_ATTACKS if quick else ATTACKS
    clean = {way: DriftCase(topology) for way, topology in TOPOLOGIES.items()}
    return clean | {attack: DriftCase("full", attack, HOSTILE) for attack in attacks}


def pieces(seeds: int, *, quick: bool) -> int:
    """How often `run_ieee` will advance."""
    return seeds * len(chosen()) * (len(cases(quick=quick)) + 1)


def run_ieee(
    split: WindowedSplit,
    seeds: Sequence[int],
    advance: Advance,
    *,
    quick: bool = False,
    jobs: int = 1,
    kinds: Mapping[str, Setting] | None = None,
    kept: Kept = NOTHING,
    after: Callable[[IeeeResult], None] = lambda _: None,
) -> IeeeResult:
    """Run every federation of every kind and seed, and the pooled bound; `after` is called for each seed."""
    settings = chosen() if kinds is None else kinds
    result = IeeeResult(split, (), tuple(settings), quick)
    wanted = cases(quick=quick)
    for seed in seeds:
        for kind, setting in settings.items():
            for way, values in measured(split, setting, seed, wanted, f"ieee-{kind}", kept, jobs):
                result.runs.setdefault((kind, way), []).append(values)
                advance(f"{kind}, {way}, seed {seed}")
        result.seeds = (*result.seeds, seed)
        after(result)
    return result


def measured(  # noqa: PLR0917
    split: WindowedSplit,
    setting: Setting,
    seed: int,
    wanted: Mapping[str, DriftCase],
    name: str,
    kept: Kept = NOTHING,
    jobs: int = 1,
    cache: FitCache | None = None,
) -> Iterator[tuple[str, Floats]]:
    """The figures of each federation in one setting, and of the pooled bound, measured now or before."""
    rows = split.past() if setting.past else split
    engine = DriftEngine(rows, seed, setting.parameters, jobs, cache)
    made = f"{setting} {seed} {rows.digest()} {made_by(*MODULES)}"
    ways: dict[str, Callable[[], Floats]] = {way: partial(engine.run, case) for way, case in wanted.items()}
    for way, measure in (ways | {POOLED: engine.pooled}).items():
        key = f"{name}-{way}-seed{seed}"
        yield way, kept.measured(key, f"{wanted.get(way)} {made}", measure)
