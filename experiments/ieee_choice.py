"""Choosing the settings of the card transactions by windows that are not reported.

The first three windows train and the fourth tests. Of each kind that setting is taken whose federation has
the highest AP; the pooled bound and a node alone stand beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from experiments.drift import COLUMNS, REFUSED
from experiments.engine import Advance
from experiments.ieee import ALONE, FEDERATED, POOLED, cases, measured
from experiments.ieee_settings import CHOSEN, SETTINGS, Setting
from experiments.kept import NOTHING, Kept
from experiments.pages import Grid, plain, versions
from experiments.windows import WindowedSplit
from learning.fit_cache import FitCache
from protocol.values import dataclass

LAST = 4
"""The window that tests."""
WAYS = (ALONE, FEDERATED)


@dataclass(frozen=True)
class Candidate:
    """What one setting reaches: AP, means over nodes and seeds."""

    kind: str
    setting: str
    alone: float
    federated: float
    pooled: float
    refused: float
    """Estimators that a node's home check refused in all iterations, on average; all nodes are honest."""


@dataclass(frozen=True)
class Choice:
    """Every setting that was tried."""

    seeds: tuple[int, ...]
    candidates: tuple[Candidate, ...]

    def best(self) -> dict[str, str]:
        """By kind, the setting whose federation has the highest AP; of equals the first."""
        kinds = dict.fromkeys(candidate.kind for candidate in self.candidates)
        return {kind: max(self.of(kind), key=lambda one: one.federated).setting for kind in kinds}

    def of(self, kind: str) -> list[Candidate]:
        """The settings of one kind."""
        return [candidate for candidate in self.candidates if candidate.kind == kind]


def run_choice(
    split: WindowedSplit,
    seeds: Sequence[int],
    advance: Advance,
    *,
    jobs: int = 1,
    kept: Kept = NOTHING,
    settings: Mapping[str, Mapping[str, Setting]] = SETTINGS,
) -> Choice:
    """Try every setting of every kind; those that train alike train once."""
    caches = {seed: FitCache() for seed in seeds}
    wanted = {way: case for way, case in cases(quick=True).items() if way in WAYS}
    found = []
    for kind, named in settings.items():
        for name, setting in named.items():
            runs: dict[str, list[np.ndarray]] = {}
            for seed in seeds:
                word = name.replace(", ", "-").replace(" ", "-")
                for way, values in measured(
                    split, setting, seed, wanted, f"choose-{kind}-{word}", kept, jobs, caches[seed]
                ):
                    runs.setdefault(way, []).append(values.mean(axis=0))
                    advance(f"{kind}, {name}, {way}, seed {seed}")
            means = {way: np.mean(rows, axis=0) for way, rows in runs.items()}
            alone, federated, pooled = (float(means[way][0]) for way in (*WAYS, POOLED))
            refused = float(means[FEDERATED][COLUMNS.index(REFUSED)])
            found.append(Candidate(kind, name, alone, federated, pooled, refused))
    return Choice(tuple(seeds), tuple(found))


def pieces(seeds: int) -> int:
    """How often `run_choice` will advance."""
    return seeds * (len(WAYS) + 1) * sum(map(len, SETTINGS.values()))


def choice_grid(choice: Choice) -> Grid:
    """Every setting, with the best and the one that ships marked."""
    best = choice.best()
    rows = []
    for one in choice.candidates:
        marks = ["best"] if best[one.kind] == one.setting else []
        marks += ["in use"] if CHOSEN.get(one.kind) == one.setting else []
        shares = (plain(one.federated / other) for other in (one.pooled, one.alone))
        cells = (plain(one.alone), plain(one.federated), plain(one.pooled), *shares, f"{one.refused:.1f}")
        rows.append((f"{one.kind}, {one.setting}", *cells, ", ".join(marks)))
    columns = ("Kind and setting", "Alone", "Federated", "Pooled", "Of pooled", "Of alone", "Refused", "")
    note = (
        f"AP on window {LAST} after windows 1 to {LAST - 1}; seeds {', '.join(map(str, choice.seeds))}. "
        "Refused: estimators that a node's home check did not take, all of them honest."
    )
    return Grid("Settings to choose from", columns, rows, note)


def choice_json(choice: Choice) -> dict[str, object]:
    """The choice as one object for programs."""
    return {
        "candidates": [asdict(candidate) for candidate in choice.candidates],
        "best": choice.best(),
        "in_use": CHOSEN,
        "seeds": list(choice.seeds),
        "versions": versions(),
    }
