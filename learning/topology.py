"""Who is whose neighbour in each round: undirected, and free to change with time.

A topology is asked for one node's neighbours at a time, as in the paper: no node needs to know the whole
graph.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol

from learning.errors import ParameterError
from learning.seeds import generator


class Topology(Protocol):
    """The neighbours of a node in a round."""

    def neighbours(self, node: str, round_: int) -> tuple[str, ...]:
        """Return the neighbours' names, ascending."""
        ...


def check_nodes(nodes: Iterable[str]) -> tuple[str, ...]:
    """Return the names, refusing one that occurs twice."""
    names = tuple(nodes)
    if len(set(names)) != len(names):
        raise ParameterError("a node occurs twice in the topology")
    return names


@dataclass(frozen=True)
class Disconnected:
    """No edges: every node learns alone."""

    nodes: tuple[str, ...]

    def neighbours(self, node: str, round_: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return no neighbours."""
        return ()


@dataclass(frozen=True)
class Full:
    """Every node is every other's neighbour."""

    nodes: tuple[str, ...]

    def neighbours(self, node: str, round_: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return all others."""
        return tuple(sorted(other for other in self.nodes if other != node))


@dataclass(frozen=True)
class Explicit:
    """The edges as given, each once, in either direction."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        known = set(self.nodes)
        for a, b in self.edges:
            if a == b or not {a, b} <= known:
                raise ParameterError(f"edge {a!r} - {b!r} does not join two nodes of the process")

    @cached_property
    def _adjacent(self) -> dict[str, tuple[str, ...]]:
        adjacent: dict[str, set[str]] = {node: set() for node in self.nodes}
        for a, b in self.edges:
            adjacent[a].add(b)
            adjacent[b].add(a)
        return {node: tuple(sorted(others)) for node, others in adjacent.items()}

    def neighbours(self, node: str, round_: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return those an edge joins to the node."""
        return self._adjacent.get(node, ())


@dataclass(frozen=True)
class Random:
    """Each pair joined with the given probability, drawn from the seed: once, or anew for each round."""

    nodes: tuple[str, ...]
    probability: float
    seed: int
    every_round: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise ParameterError(f"edge probability {self.probability} is not in [0, 1]")

    def neighbours(self, node: str, round_: int) -> tuple[str, ...]:
        """Return those drawn as the node's neighbours in that round."""
        drawn = self._graphs.get(at := round_ if self.every_round else 0)
        if drawn is None:
            drawn = self._graphs[at] = self._draw(at)
        return drawn.neighbours(node, round_)

    @cached_property
    def _graphs(self) -> dict[int, Explicit]:
        return {}

    def _draw(self, round_: int) -> Explicit:
        pairs = list(combinations(sorted(self.nodes), 2))
        drawn = generator(self.seed, "", round_, "topology").random(len(pairs)) < self.probability
        return Explicit(self.nodes, tuple(pair for pair, joined in zip(pairs, drawn, strict=True) if joined))


@dataclass(frozen=True)
class Changing:
    """Different topologies by round: each holds from its round until the next one's."""

    by_round: tuple[tuple[int, Topology], ...]

    def __post_init__(self) -> None:
        rounds = [start for start, _ in self.by_round]
        if not rounds or rounds[0] != 0 or rounds != sorted(set(rounds)):
            raise ParameterError(f"topologies start in rounds {rounds}: give ascending rounds from 0")

    def neighbours(self, node: str, round_: int) -> tuple[str, ...]:
        """Return the neighbours under the topology that holds in that round."""
        latest = bisect_right([start for start, _ in self.by_round], round_) - 1
        return self.by_round[latest][1].neighbours(node, round_)


def disconnected(nodes: Iterable[str]) -> Topology:
    """Return the topology without edges."""
    return Disconnected(check_nodes(nodes))


def full(nodes: Iterable[str]) -> Topology:
    """Return the topology in which all are neighbours."""
    return Full(check_nodes(nodes))


def ring(nodes: Iterable[str]) -> Topology:
    """Return the circle in the given order: each node has the one before and the one behind it."""
    names = check_nodes(nodes)
    following = names[1:] + names[:1]
    edges = {(min(a, b), max(a, b)) for a, b in zip(names, following, strict=True) if a != b}
    return Explicit(names, tuple(sorted(edges)))


def explicit(nodes: Iterable[str], edges: Iterable[Sequence[str]]) -> Topology:
    """Return the topology with the given edges."""
    return Explicit(check_nodes(nodes), tuple((a, b) for a, b in edges))


def random_graph(
    nodes: Iterable[str], probability: float, seed: int, *, every_round: bool = False
) -> Topology:
    """Return a random topology that everyone who knows the seed draws alike."""
    return Random(check_nodes(nodes), probability, seed, every_round)


def changing(by_round: Mapping[int, Topology]) -> Topology:
    """Return the topology that is replaced in the given rounds."""
    return Changing(tuple(sorted(by_round.items())))
