"""What shared estimators give away: how well somebody tells the rows that trained them from others.

Each node learns from half of its rows. Somebody who has its estimators, and a row with its label, says how
likely it is that the row was among them: by how sure the estimators are of the row's label, and by how close
the row lies to the thresholds that it passes. Half of the rows were, half were not, so who guesses has an
area of one half under the curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import auc, roc_curve

from experiments.engine import Advance, Case, run_cases
from experiments.metrics import metric
from experiments.split import NodeData, Split
from experiments.variants import DEFAULT, Variant
from learning.fit import FitOptions, FitTask, fit
from learning.parameters import Defaults
from learning.predict import Predictor
from learning.rows import Rows
from learning.seeds import derive
from protocol.trees.content import Content

Floats = NDArray[np.float64]

WAYS = ("balanced", "plain", "extra", "boosted")
LEAVES = (1, 2, 5, 10, 20)
ROUNDED = (12, 8, 4)
QUICK_WAYS, QUICK_LEAVES = WAYS[:1], (1, 5)
FALSE_ALARMS = 0.01
ROWS, ANOMALIES = "rows", "anomalies"
"""Whose membership is asked for."""
QUALITY = ("precision", "recall", "ap")


@dataclass(frozen=True)
class Leak:
    """How well one group of rows is told from others like it."""

    auc: float
    """Of the better of the two attacks."""
    found: float
    """Members found where one other in a hundred is taken for one, by the better of the two."""


@dataclass(frozen=True)
class Setting:
    """Estimators to look at."""

    fit: FitOptions

    @property
    def name(self) -> str:
        """The setting in words."""
        bits = self.fit.threshold_bits
        told = "" if bits is None else f", thresholds of {bits} bits"
        return f"{self.fit.kind}, min_leaf {self.fit.min_leaf}{told}"


@dataclass
class PrivacyResult:
    """By setting, what leaks to whoever has a node's estimators, and what the federation is worth."""

    seeds: tuple[int, ...]
    leaks: dict[Setting, dict[str, Leak]] = field(default_factory=dict)
    quality: dict[Setting, dict[str, float]] = field(default_factory=dict)


def settings(*, quick: bool = False) -> list[Setting]:
    """Every way to FIT with every floor, and the shipped way with rounded thresholds."""
    ways, floors = (QUICK_WAYS, QUICK_LEAVES) if quick else (WAYS, LEAVES)
    found = [Setting(FitOptions(way, min_leaf=floor)) for way in ways for floor in floors]
    if not quick:
        found += [Setting(replace(Defaults.fit, threshold_bits=bits)) for bits in ROUNDED]
    return found


def run_privacy(
    split: Split, seeds: Sequence[int], advance: Advance, *, quick: bool = False, jobs: int = 1
) -> PrivacyResult:
    """Attack every setting, then run the ring with those of the shipped way; advance after each."""
    result = PrivacyResult(tuple(seeds))
    for setting in settings(quick=quick):
        tasks = [(node, seed) for node in split.nodes for seed in seeds]
        tried = Parallel(n_jobs=jobs)(delayed(attack)(node, setting.fit, seed) for node, seed in tasks)
        result.leaks[setting] = {group: joined([found[group] for found in tried]) for group in tried[0]}
        advance(f"attack {setting.name}")
    for setting in shipped_way(settings(quick=quick)):
        case = Case(Variant(DEFAULT, replace(Defaults, fit=setting.fit)), "ring")
        (runs,) = run_cases(split, seeds, [case], lambda _: None, jobs=jobs)
        result.quality[setting] = {name: float(metric(runs, name).mean()) for name in QUALITY}
        advance(f"ring {setting.name}")
    return result


def pieces(*, quick: bool) -> int:
    """How often a run advances."""
    asked = settings(quick=quick)
    return len(asked) + len(shipped_way(asked))


def shipped_way(asked: Sequence[Setting]) -> list[Setting]:
    """Those whose worth is measured, too: the way to FIT that ships."""
    return [setting for setting in asked if setting.fit.kind == Defaults.fit.kind]


Scored = tuple[Floats, NDArray[np.bool_]]
"""For each attack a row of scores, and whether each row was a member."""


def attack(node: NodeData, options: FitOptions, seed: int) -> dict[str, Scored]:
    """Fit on half of a node's rows, attack with the other half beside it."""
    members = halved(node.y, derive(seed, node.name, 0, "membership"))
    limits = replace(Defaults, fit=options).limits(node.X.shape[1])
    task = FitTask(node.name, 0, 0, Defaults.n_new, seed, options, limits)
    estimators = [made.tree for made in fit(Rows.of(node.X[members], node.y[members]), task)]
    scores = np.vstack([sureness(estimators, node), closeness(estimators, node.X)])
    return {
        ROWS: (scores, members),
        ANOMALIES: (scores[:, node.y == 1], members[node.y == 1]),
    }


def halved(y: NDArray[np.integer], seed: int) -> NDArray[np.bool_]:
    """Choose half of the rows of each class."""
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen = np.zeros(len(y), dtype=bool)
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        chosen[rng.permutation(rows)[: (len(rows) + 1) // 2]] = True
    return chosen


def sureness(estimators: Sequence[Content], node: NodeData) -> Floats:
    """How sure the estimators are of each row's label."""
    anomalous = Predictor.of(estimators).scores(node.X)
    return np.where(node.y == 1, anomalous, 1.0 - anomalous)


def closeness(estimators: Sequence[Content], X: Floats) -> Floats:
    """How close each row comes to the closest threshold on its way, in the features' deviations."""
    units = np.nanstd(X, axis=0)
    units[units == 0] = 1.0
    seen = X.astype(np.float32)
    nearest = [_nearest(content, root, seen, units) for content in estimators for root in content.roots]
    return np.asarray(-np.mean(np.log(np.maximum(nearest, 1e-12)), axis=0))


def _nearest(content: Content, root: int, X: NDArray[np.float32], units: Floats) -> Floats:
    """Walk all rows down a tree at once; return the least distance to a threshold."""
    at, rows = np.full(len(X), root), np.arange(len(X))
    nearest = np.full(len(X), np.inf)
    while len(rows := rows[~content.is_leaf[at[rows]]]):
        nodes = at[rows]
        features = content.feature[nodes]
        values, thresholds = X[rows, features], content.threshold[nodes]
        distance = np.abs(values - thresholds) / units[features]
        nearest[rows] = np.fmin(nearest[rows], distance)
        goes_left = np.where(np.isnan(values), content.missing_left[nodes], values <= thresholds)
        at[rows] = np.where(goes_left, content.left[nodes], content.right[nodes])
    return np.where(np.isfinite(nearest), nearest, 1.0)


def joined(parts: Sequence[Scored]) -> Leak:
    """Judge the attacks on all nodes' rows together."""
    scores = np.hstack([scores for scores, _ in parts])
    members = np.concatenate([members for _, members in parts])
    curves = [roc_curve(members, attack) for attack in scores]
    found = [float(np.interp(FALSE_ALARMS, false, true)) for false, true, _ in curves]
    return Leak(max(float(auc(false, true)) for false, true, _ in curves), max(found))
