"""Who takes part in a federation in memory, and what came of it."""

from dataclasses import dataclass, field, replace

from learning.actions import NodeState
from learning.attacks import Attack
from learning.ensemble import Ensemble
from learning.held_out import learned_from
from learning.parameters import Defaults, Parameters
from learning.robust import TreeRefusal
from learning.rows import Rows
from protocol.defence import Membership
from protocol.identifiers import EstimatorId

Span = tuple[int, int | None]
"""The first iteration of a stay, and the first after it; None to the end."""


@dataclass(frozen=True)
class Member:
    """A node of the federation: its private rows, its parameters, when it takes part, whether hostile.

    `later` has the rows of its second iteration and of those after it, for a node that learns from what
    happened since; the last stay for all that follow.
    """

    rows: Rows
    parameters: Parameters = Defaults
    joins: int = 0
    leaves: int | None = None
    attack: str | None = None
    later: tuple[Rows, ...] = ()
    returns: tuple[Span, ...] = ()
    """When it takes part again after it has left, in their order."""
    common: Rows | None = None
    """The rows from which all hostile nodes of an accord make their trees."""

    @property
    def hostile(self) -> Attack | None:
        """What it does instead of FIT: hostile nodes know the parameters, which theirs are too."""
        return None if self.attack is None else Attack.on(self.parameters, self.attack, self.common)

    def rows_after(self, done: int) -> Rows:
        """Return what the node has once it has done so many of its iterations."""
        return (self.rows, *self.later)[min(done, len(self.later))]

    def learning(self, node: str, seed: int) -> "Member":
        """Return the member with the rows alone that it learns from."""
        part = self.parameters.held_out
        rows, *later = (learned_from(rows, part, seed, node) for rows in (self.rows, *self.later))
        return replace(self, rows=rows, later=tuple(later))

    def among(self, membership: Membership) -> "Member":
        """Return the member with its defence counting on these organisations."""
        return replace(self, parameters=replace(self.parameters, members=membership))

    def active(self, iteration: int) -> bool:
        """Whether the node takes part in an iteration."""
        spans = ((self.joins, self.leaves), *self.returns)
        return any(start <= iteration and (end is None or iteration < end) for start, end in spans)


@dataclass(frozen=True)
class OfferedShare:
    """What a node offered in an iteration, and to whom."""

    ids: tuple[EstimatorId, ...]
    n_bytes: int
    recipients: tuple[str, ...]


@dataclass(frozen=True)
class NodeIteration:
    """What one node did in one of its iterations."""

    node: str
    iteration: int
    share: OfferedShare
    ensemble: Ensemble
    refusals: tuple[TreeRefusal, ...]


@dataclass
class Simulation:
    """The states at the end, and everything that happened, by iteration and node."""

    states: dict[str, NodeState]
    records: list[NodeIteration] = field(default_factory=list)

    def ensembles(self, iteration: int | None = None) -> dict[str, Ensemble]:
        """Return every node's ensemble after an iteration, or at the end."""
        if iteration is None:
            return {node: state.ensemble for node, state in self.states.items()}
        return {record.node: record.ensemble for record in self.records if record.iteration == iteration}
