"""Quota and vote cap by organisation: the part of the defence that anyone recomputes from the ledger alone.

Both need only who created which estimator and who belongs to whom, and nothing that a hostile member sends
changes the base they count on. Seen from one node, of k places in its ensemble or its SHARE

- another organisation takes at most ceil(c k / n) of n organisations, and never more than half;
- another node takes at most ceil(c q / s) of the q places of its organisation of s nodes;
- all others together leave at least one place to the node itself.

In the vote, no other organisation weighs more than the cap: what it would have beyond goes to all the rest,
in which the node's own trees always are.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

from protocol.errors import ProcessError, RecordError
from protocol.identifiers import EstimatorId
from protocol.values import dataclass

NO_GROUP = -1


@dataclass(frozen=True)
class Membership:
    """The nodes of a process with their organisations, as its record on the ledger has them.

    A creator that is no member, as in a model that another process published, counts as an organisation of
    its own.
    """

    nodes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, organisations: Mapping[str, str]) -> Self:
        """Take each node's organisation."""
        return cls(tuple(sorted(organisations.items())))

    @cached_property
    def organisations(self) -> dict[str, str]:
        """The organisation of each node."""
        return dict(self.nodes)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many nodes each organisation has."""
        return dict(Counter(self.organisations.values()))

    def organisation(self, creator: str) -> str:
        """Return the organisation of a creator; that of a stranger has a name no organisation can have."""
        return self.organisations.get(creator, f"/{creator}")


NOBODY = Membership()


@dataclass(frozen=True)
class Quota:
    """How many of k places the others may take in what one node holds or offers."""

    node: str
    members: Membership
    c: float

    def __post_init__(self) -> None:
        if not 1.0 <= self.c < math.inf:
            raise ProcessError("PROCESS_VALUE", f"quota {self.c} is not a finite number of at least 1")

    def organisation_places(self, k: int) -> int:
        """Return how many of k places another organisation may take."""
        count = max(len(self.members.sizes), 1)
        return min(math.ceil(self.c * k / count), max(k // 2, 1))

    def node_places(self, creator: str, k: int) -> int:
        """Return how many of k places another node may take."""
        size = self.members.sizes.get(self.members.organisation(creator), 1)
        return math.ceil(min(self.c / size, 1.0) * self.organisation_places(k))

    def places(self, ids: Sequence[EstimatorId], k: int) -> "Places":
        """Return the groups of each estimator, and how many of k places each group has."""
        rooms = [max(k - 1, 0)]
        numbers: dict[tuple[str, str], int] = {}

        def number(kind: str, name: str, room: int) -> int:
            if (kind, name) not in numbers:
                numbers[kind, name] = len(rooms)
                rooms.append(room)
            return numbers[kind, name]

        groups = []
        own = self.members.organisation(self.node)
        for id_ in ids:
            creator, organisation = id_.creator, self.members.organisation(id_.creator)
            of_node = of_organisation = all_others = NO_GROUP
            if creator != self.node:
                all_others = 0
                of_node = number("node", creator, self.node_places(creator, k))
                if organisation != own:
                    of_organisation = number("organisation", organisation, self.organisation_places(k))
            groups.append((all_others, of_organisation, of_node))
        return Places(tuple(groups), tuple(rooms))

    def check(self, ids: Sequence[EstimatorId], k: int) -> None:
        """Return if what a node holds or offers keeps its quota."""
        found = self.places(ids, k).within(range(len(ids)), len(ids))
        if len(found) < len(ids):
            first = ids[min(set(range(len(ids))) - set(found))]
            raise RecordError("QUOTA_EXCEEDED", f"{first} finds no room among the {k} of {self.node}")


@dataclass(frozen=True)
class Places:
    """To which groups each of some estimators belongs, and how many places each group has."""

    groups: tuple[tuple[int, int, int], ...]
    rooms: tuple[int, ...]

    @property
    def fit_all(self) -> bool:
        """Whether all of the estimators find room together."""
        taken = Counter(group for groups in self.groups for group in groups if group != NO_GROUP)
        return all(self.rooms[group] >= count for group, count in taken.items())

    def within(self, order: Iterable[int], k: int) -> list[int]:
        """Walk down an order and return the first k positions that find room in all their groups."""
        rooms = list(self.rooms)
        kept: list[int] = []
        for position in order:
            inside = [group for group in self.groups[position] if group != NO_GROUP]
            if len(kept) < k and all(rooms[group] > 0 for group in inside):
                kept.append(position)
                for group in inside:
                    rooms[group] -= 1
        return kept


def vote_weights(
    node: str, members: Membership, ids: Sequence[EstimatorId], cap: float | None
) -> list[float]:
    """Return the weight of each estimator in the vote of a node: no other organisation exceeds the cap.

    Estimators of organisations below the cap weigh 1. Only where the node holds nothing of its own
    organisation, and too few others to fill the vote, do those weigh alike and more than the cap.
    """
    if cap is None:
        return [1.0] * len(ids)
    if not 0.0 < cap <= 1.0:
        raise ProcessError("PROCESS_VALUE", f"vote cap {cap} is not in (0, 1]")
    own = members.organisation(node)
    places = [members.organisation(id_.creator) for id_ in ids]
    sizes = {place: size for place, size in sorted(Counter(places).items()) if place != own}
    capped: dict[str, int] = {}
    while True:
        free = len(ids) - sum(capped.values())
        whole = free / (1.0 - cap * len(capped)) if cap * len(capped) < 1.0 else math.inf
        over = {place: size for place, size in sizes.items() if place not in capped and size > cap * whole}
        if not over:
            break
        capped |= over
        if sum(capped.values()) == len(ids):
            return [1.0 / capped[place] for place in places]
    return [cap * whole / capped[place] if place in capped else 1.0 for place in places]


def greatest_share(
    node: str, members: Membership, ids: Sequence[EstimatorId], cap: float | None
) -> tuple[str, float]:
    """Return which other organisation weighs most in the vote of a node, and its share."""
    weights = vote_weights(node, members, ids, cap)
    shares: dict[str, float] = {}
    for id_, weight in zip(ids, weights, strict=True):
        place = members.organisation(id_.creator)
        shares[place] = shares.get(place, 0.0) + weight / sum(weights)
    others = [
        (share, place) for place, share in sorted(shares.items()) if place != members.organisation(node)
    ]
    share, place = max(others, default=(0.0, ""))
    return place, share
