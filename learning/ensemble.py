"""The ensemble and the paper's three operations on it: ADD, GET_TOP, CROP."""

from collections.abc import Collection, Iterable, Iterator
from typing import Self

from learning.errors import EnsembleError
from learning.ranking import Ranking
from protocol.defence import Quota
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A node's current estimators, sorted by id so that no order of arrival can change a result."""

    estimators: tuple[Estimator, ...] = ()

    @classmethod
    def of(cls, estimators: Iterable[Estimator]) -> Self:
        """Join estimators given in any order."""
        return cls().add(estimators)

    def add(self, estimators: Iterable[Estimator]) -> Self:
        """ADD: the union by id; one id with two contents is a lie and refused."""
        known = {estimator.id: estimator for estimator in self.estimators}
        for estimator in estimators:
            held = known.setdefault(estimator.id, estimator)
            if held.tree != estimator.tree:
                raise EnsembleError(
                    f"estimator {estimator.id} has digests {held.tree.digest} and {estimator.tree.digest}"
                )
        return type(self)(tuple(sorted(known.values(), key=_place)))

    def get_top(self, k: int, ranking: Ranking, quota: Quota | None = None) -> tuple[Estimator, ...]:
        """GET_TOP: the first k of the ranking, best first; all, by id, if there are no more than k.

        Under a quota fewer than k may come out: what finds no room is not taken for want of better.
        """
        places = None if quota is None else quota.places(self.ids, k)
        if len(self.estimators) <= k and (places is None or places.fit_all):
            return self.estimators
        return tuple(self.estimators[position] for position in ranking.top(self.estimators, k, places))

    def crop(self, n_max: int, ranking: Ranking, quota: Quota | None = None) -> Self:
        """CROP: keep the top n_max."""
        return type(self)(tuple(sorted(self.get_top(n_max, ranking, quota), key=_place)))

    def without(self, ids: Collection[EstimatorId]) -> Self:
        """Leave out some estimators."""
        return type(self)(tuple(e for e in self.estimators if e.id not in ids)) if ids else self

    def informed(self, node: str) -> Self:
        """Leave out the trees without a split, which tell no row from another.

        One of the node's own stays if it has no other, as a node's own trees are what the vote cap of the
        others is measured against.
        """
        telling = [estimator for estimator in self.estimators if estimator.tree.n_internal > 0]
        mute = [e for e in self.estimators if e.tree.n_internal == 0 and e.id.creator == node]
        if mute and all(estimator.id.creator != node for estimator in telling):
            telling.append(mute[-1])
        return type(self)(tuple(sorted(telling, key=_place)))

    @property
    def ids(self) -> tuple[EstimatorId, ...]:
        """The ids, ascending."""
        return tuple(estimator.id for estimator in self.estimators)

    def origins(self) -> dict[str, int]:
        """How many estimators each creator contributed, the biggest contribution first."""
        counts: dict[str, int] = {}
        for estimator in self.estimators:
            counts[estimator.id.creator] = counts.get(estimator.id.creator, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def __len__(self) -> int:
        return len(self.estimators)

    def __iter__(self) -> Iterator[Estimator]:
        return iter(self.estimators)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return any(estimator.id == id for estimator in self.estimators)


def _place(estimator: Estimator) -> tuple[str, int]:
    """The order of ids, as tuples because those compare several times faster."""
    return estimator.id.creator, estimator.id.counter
