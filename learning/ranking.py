"""The rankings behind GET_TOP, by name, all deterministic.

kernel      the paper's: P-greedy order of the tree kernel
size        most internal nodes first; what the raw kernel comes to on fraud trees
random      a permutation drawn from the seed
newest      highest counter first
supervised  smallest class-balanced Brier score on the node's own rows
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from learning.errors import ParameterError
from learning.kernel import PAPER, KernelOptions, gram, p_greedy
from learning.predict import Predictor
from learning.rows import Rows
from learning.seeds import generator
from protocol.defence import Places
from protocol.trees.estimator import Estimator
from protocol.values import dataclass


class Ranking(Protocol):
    """An order of estimators."""

    def top(self, estimators: Sequence[Estimator], k: int, places: Places | None = None) -> list[int]:
        """Return the positions of the best k, or fewer, best first; ties go to the lower position.

        With places, an estimator that finds no room at its turn is passed over, as if it were not there.
        """
        ...


@dataclass(frozen=True)
class RankingContext:
    """What a ranking may look at besides the trees: whose it is, when, what for, and the node's own rows."""

    node: str
    iteration: int
    purpose: str
    seed: int
    kernel: KernelOptions = PAPER
    rows: Rows | None = None


@dataclass(frozen=True)
class KernelRanking:
    """The paper's ranking: each next tree is the one that those before it explain least."""

    options: KernelOptions = PAPER
    form: str | None = None

    def top(self, estimators: Sequence[Estimator], k: int, places: Places | None = None) -> list[int]:
        """Return the P-greedy order."""
        matrix = gram([estimator.tree for estimator in estimators], self.options, form=self.form)
        return p_greedy(matrix, k, places=places, form=self.form)


@dataclass(frozen=True)
class SizeRanking:
    """Most internal nodes first."""

    def top(self, estimators: Sequence[Estimator], k: int, places: Places | None = None) -> list[int]:
        """Return the order by size."""
        order = sorted(range(len(estimators)), key=lambda i: -estimators[i].tree.n_internal)
        return _first(order, k, places)


@dataclass(frozen=True)
class RandomRanking:
    """A permutation that depends only on the context's seed, node, iteration and purpose."""

    context: RankingContext

    def top(self, estimators: Sequence[Estimator], k: int, places: Places | None = None) -> list[int]:
        """Return the first k of the permutation."""
        at = self.context
        rng = generator(at.seed, at.node, at.iteration, f"ranking:{at.purpose}")
        return _first(rng.permutation(len(estimators)).tolist(), k, places)


@dataclass(frozen=True)
class NewestRanking:
    """Highest counter first: what each creator fitted last."""

    def top(self, estimators: Sequence[Estimator], k: int, places: Places | None = None) -> list[int]:
        """Return the order by counter."""
        order = sorted(range(len(estimators)), key=lambda i: -estimators[i].id.counter)
        return _first(order, k, places)


@dataclass(frozen=True)
class SupervisedRanking:
    """Best on the node's own rows, with both classes weighing the same; what the paper argues against."""

    rows: Rows

    def top(self, estimators: Sequence[Estimator], k: int, places: Places | None = None) -> list[int]:
        """Return the order by class-balanced Brier score."""
        y = self.rows.y.astype(np.float64)
        counts = np.bincount(self.rows.y, minlength=2)
        weight = 1.0 / np.maximum(counts, 1)[self.rows.y]
        scores = []
        for estimator in estimators:
            error = Predictor.of([estimator.tree]).scores(self.rows) - y
            scores.append(float(np.sum(weight * error * error)))
        order = sorted(range(len(estimators)), key=lambda i: scores[i])
        return _first(order, k, places)


def _first(order: list[int], k: int, places: Places | None) -> list[int]:
    return order[:k] if places is None else places.within(order, k)


def _supervised(context: RankingContext) -> Ranking:
    if context.rows is None:
        raise ParameterError("the supervised ranking needs the node's own rows")
    return SupervisedRanking(context.rows)


RANKINGS: dict[str, Callable[[RankingContext], Ranking]] = {
    "kernel": lambda context: KernelRanking(context.kernel),
    "size": lambda _: SizeRanking(),
    "random": RandomRanking,
    "newest": lambda _: NewestRanking(),
    "supervised": _supervised,
}


def make(name: str, context: RankingContext) -> Ranking:
    """Return the ranking of that name for that node and moment."""
    if name not in RANKINGS:
        raise ParameterError(f"no ranking is called {name!r}; there are {', '.join(RANKINGS)}")
    return RANKINGS[name](context)
