"""Random topologies, which only the simulator has; the others are those of `protocol.agreement.topology`.

The simulator asks for one node's neighbours among those that take part, as every party on the ledger does.
"""

from collections.abc import Collection
from functools import cached_property
from itertools import combinations
from typing import Protocol

from learning.errors import ParameterError
from learning.seeds import generator
from protocol.values import dataclass


class Neighbours(Protocol):
    """Who is whose neighbour in each iteration: a `Schedule` of the protocol, or a random graph."""

    def neighbours(self, node: str, iteration: int, active: Collection[str]) -> tuple[str, ...]:
        """Return the node's neighbours among the active nodes, ascending; none if it is not active itself."""
        ...


@dataclass(frozen=True)
class RandomGraph:
    """Each pair joined with the given probability, drawn from the seed anew for each iteration."""

    nodes: tuple[str, ...]
    probability: float
    seed: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise ParameterError(f"edge probability {self.probability} is not in [0, 1]")
        if len(set(self.nodes)) != len(self.nodes):
            raise ParameterError("a node occurs twice in the topology")

    def neighbours(self, node: str, iteration: int, active: Collection[str]) -> tuple[str, ...]:
        """Return those drawn as the node's neighbours that are active, ascending."""
        if node not in active:
            return ()
        if iteration not in self._drawn:
            self._drawn[iteration] = self._draw(iteration)
        return tuple(other for other in self._drawn[iteration].get(node, ()) if other in active)

    @cached_property
    def _drawn(self) -> dict[int, dict[str, list[str]]]:
        return {}

    def _draw(self, iteration: int) -> dict[str, list[str]]:
        """Draw every pair in the order of names, so that whoever knows the seed draws the same graph."""
        joined: dict[str, list[str]] = {node: [] for node in self.nodes}
        pairs = list(combinations(sorted(self.nodes), 2))
        chances = generator(self.seed, "", iteration, "topology").random(len(pairs))
        for (a, b), chance in zip(pairs, chances, strict=True):
            if chance < self.probability:
                joined[a].append(b)
                joined[b].append(a)
        return {node: sorted(others) for node, others in joined.items()}
