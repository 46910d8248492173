"""Who is whose neighbour in each iteration: undirected, among the nodes that take part then.

A topology is a rule, not a list of nodes: `ring` among twenty nodes becomes the ring of the other nineteen
when one leaves. Every party computes neighbours with this module, so nobody shares with the wrong node.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Self

from protocol import canonical
from protocol.errors import ProcessError
from protocol.identifiers import check_counter, parse_node
from protocol.values import dataclass

MAX_EDGES = 20_000


class Kind(StrEnum):
    """The rules there are."""

    DISCONNECTED = "disconnected"
    """No edges: every node learns alone."""
    RING = "ring"
    """Each node is joined to the one before and the one after it by name, and the last to the first."""
    FULL = "full"
    """Every node is every other's neighbour."""
    EXPLICIT = "explicit"
    """The edges as listed."""


@dataclass(frozen=True, slots=True)
class Topology:
    """One rule; the edges are ascending pairs in ascending order, and empty unless the kind is explicit."""

    kind: Kind
    edges: tuple[tuple[str, str], ...] = ()

    @classmethod
    def explicit(cls, edges: Iterable[tuple[str, str]]) -> Self:
        """Make the topology with these edges, each given once in either direction."""
        pairs = []
        for a, b in edges:
            if parse_node(a) == parse_node(b):
                raise ProcessError("TOPOLOGY_EDGE", f"an edge joins {a} to itself")
            pairs.append((min(a, b), max(a, b)))
        ordered = tuple(sorted(pairs))
        for first, second in pairwise(ordered):
            if first == second:
                raise ProcessError("TOPOLOGY_EDGE", f"the edge {first[0]} - {first[1]} is listed twice")
        if len(ordered) > MAX_EDGES:
            raise ProcessError("TOPOLOGY_EDGE", f"{len(ordered)} edges are more than {MAX_EDGES}")
        return cls(Kind.EXPLICIT, ordered)

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept `{"kind": ...}`, with `"edges": [[a, b], ...]` exactly when the kind is explicit."""
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            raise ProcessError("TOPOLOGY_KIND", "a topology is an object with a kind")
        try:
            kind = Kind(record["kind"])
        except ValueError:
            raise ProcessError("TOPOLOGY_KIND", f"no topology is called {record['kind'][:40]!r}") from None
        expected = {"kind", "edges"} if kind is Kind.EXPLICIT else {"kind"}
        if record.keys() != expected:
            raise ProcessError(
                "TOPOLOGY_KIND", f"topology {kind} has the fields {', '.join(sorted(expected))}"
            )
        return cls.explicit(_pairs(record["edges"])) if kind is Kind.EXPLICIT else cls(kind)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record in its one form."""
        record: dict[str, canonical.Record] = {"kind": self.kind.value}
        if self.kind is Kind.EXPLICIT:
            record["edges"] = [[a, b] for a, b in self.edges]
        return record

    def check_nodes(self, nodes: Collection[str]) -> None:
        """Refuse edges to nodes that the process does not have."""
        for edge in self.edges:
            for node in edge:
                if node not in nodes:
                    raise ProcessError("TOPOLOGY_EDGE", f"{node} is not a node of the process")

    def neighbours(self, node: str, active: Collection[str]) -> tuple[str, ...]:
        """Return the node's neighbours among the active nodes, ascending; none if it is not active itself."""
        if node not in active:
            return ()
        if self.kind is Kind.FULL:
            return tuple(sorted(other for other in active if other != node))
        if self.kind is Kind.RING:
            ring = sorted(active)
            return tuple(sorted(_beside(node, ring.index(node), ring)))
        joined = [b if a == node else a for a, b in self.edges if node in (a, b)]
        return tuple(sorted(other for other in joined if other in active))


class Neighbourhoods:
    """A topology's neighbours, for looking up those of many nodes: no edge is walked for each of them."""

    def __init__(self, topology: Topology) -> None:
        self._kind = topology.kind
        self._joined: dict[str, set[str]] = {}
        for a, b in topology.edges:
            self._joined.setdefault(a, set()).add(b)
            self._joined.setdefault(b, set()).add(a)

    def same(self, other: "Neighbourhoods", node: str, active: Mapping[str, int]) -> bool:
        """Whether a node has the same neighbours by another topology, among the active nodes.

        These are given in ascending order, each with its place in it.
        """
        own, others = self._of(node, active), other._of(node, active)
        if own is None or others is None:
            # Who has as many neighbours as there are other nodes has all of them.
            everybody = len(active) - 1
            sizes = {everybody if found is None else len(found) for found in (own, others)}
            return len(sizes) == 1
        return own == others

    def _of(self, node: str, active: Mapping[str, int]) -> set[str] | None:
        """Return an active node's neighbours; None for all others."""
        if self._kind is Kind.FULL:
            return None
        if self._kind is Kind.RING:
            return set(_beside(node, active[node], tuple(active)))
        return self._joined.get(node, set()) & active.keys()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Topologies by iteration: each holds from its iteration until the next one's."""

    first: Topology
    changes: tuple[tuple[int, Topology], ...] = ()

    def __post_init__(self) -> None:
        starts = [0, *(check_counter(start, "iteration") for start, _ in self.changes)]
        for earlier, later in pairwise(starts):
            if later <= earlier:
                raise ProcessError("TOPOLOGY_CHANGE", f"a change at iteration {later} follows {earlier}")

    def at(self, iteration: int) -> Topology:
        """Return the topology that holds in an iteration."""
        place = bisect_right(self.changes, iteration, key=lambda change: change[0])
        return self.changes[place - 1][1] if place else self.first

    def since(self, iteration: int) -> int:
        """Return the iteration from which the topology of an iteration holds."""
        place = bisect_right(self.changes, iteration, key=lambda change: change[0])
        return self.changes[place - 1][0] if place else 0

    def changed(self, iteration: int, topology: Topology) -> "Schedule":
        """Return the schedule with one more change; one at the same iteration is replaced."""
        others = [change for change in self.changes if change[0] != iteration]
        return Schedule(self.first, tuple(sorted([*others, (iteration, topology)], key=lambda c: c[0])))

    def neighbours(self, node: str, iteration: int, active: Collection[str]) -> tuple[str, ...]:
        """Return the node's neighbours in an iteration, ascending."""
        return self.at(iteration).neighbours(node, active)


def _beside(node: str, place: int, ring: Sequence[str]) -> set[str]:
    return {ring[place - 1], ring[(place + 1) % len(ring)]} - {node}


def _pairs(edges: object) -> list[tuple[str, str]]:
    if not isinstance(edges, list):
        raise ProcessError("TOPOLOGY_EDGE", "the edges are not a list")
    for edge in edges:
        if not isinstance(edge, list) or len(edge) != 2:
            raise ProcessError("TOPOLOGY_EDGE", "an edge is not a list of two nodes")
    return [(a, b) for a, b in edges]
