"""A federation that ran somewhere else, run again in memory: task by task, in whatever order that was."""

from collections.abc import Iterable, Mapping

from learning.actions import EMPTY
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit_cache import FitCache
from learning.members import Member, Simulation
from learning.simulated_nodes import Offered, SimulatedNodes
from protocol.values import dataclass


@dataclass(frozen=True)
class Turn:
    """One task as it happened: of whom GET found a share, and of which of the sender's iterations.

    None if it came to no result: what it shared is there all the same, and the node goes on from before.
    """

    node: str
    iteration: int
    read: Mapping[str, int] | None


def replay(
    members: Mapping[str, Member],
    turns: Iterable[Turn],
    *,
    seed: int = 0,
    cache: FitCache | None = None,
    organisations: Mapping[str, str] | None = None,
    model: Ensemble = EMPTY,
) -> Simulation:
    """Run each node's turns by iteration, each GET on the shares that it found.

    Who was active, and whose neighbour, is what the turns say; of when a member takes part `joins` counts.
    """
    nodes = _Turns(members, organisations, seed, model, cache)
    nodes.plan(turns)
    while nodes.ahead:
        advanced = [nodes.advance(node) for node in list(nodes.ahead)]
        if not any(advanced):
            stuck = ", ".join(f"{node} in {left[0].iteration}" for node, left in nodes.ahead.items())
            raise ParameterError(f"these turns read what nobody had shared by then: {stuck}")
    return nodes.simulation


class _Turns(SimulatedNodes):
    ahead: dict[str, list[Turn]]
    """The turns that are left, by node; FIT and SHARE of the first of each are done."""
    shares: dict[tuple[str, int], Offered]

    def plan(self, turns: Iterable[Turn]) -> None:
        self.ahead, self.shares = {}, {}
        for turn in sorted(turns, key=lambda turn: (turn.node, turn.iteration)):
            if turn.node not in self.members:
                raise ParameterError(f"{turn.node} has a turn and is no member")
            self.ahead.setdefault(turn.node, []).append(turn)
        for node in list(self.ahead):
            self._begin(node)

    def advance(self, node: str) -> bool:
        """Finish a node's next turn if what it reads has been shared; returns whether it did."""
        turn = self.ahead[node][0]
        read = list((turn.read or {}).items())
        if not all(place in self.shares for place in read):
            return False
        self.ahead[node].pop(0)
        slots = {sender: self.shares[sender, at] for sender, at in read}
        self.take(node, turn.iteration, slots, self.shares[node, turn.iteration], ())
        self._begin(node)
        return True

    def _begin(self, node: str) -> None:
        """FIT and SHARE of the node's next turn that came to a result, and of those without before it."""
        while self.ahead[node]:
            turn, before = self.ahead[node][0], self.simulation.states[node]
            self.fit(node, turn.iteration)
            self.shares[node, turn.iteration] = self.offer(node, turn.iteration)
            if turn.read is not None:
                return
            self.simulation.states[node] = before
            self.ahead[node].pop(0)
        del self.ahead[node]
