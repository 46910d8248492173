"""What holds for every node of a launch."""

from dataclasses import field

from executor.launch.places import Places
from executor.launch.rows import KnownRows
from executor.launch.source import DataSource
from executor.launch.trees import KnownTrees
from executor.sandbox.profile import Limits
from protocol.values import dataclass


@dataclass(frozen=True)
class LaunchSettings:
    """What holds for every node of a launch."""

    process: str
    iterations: int | None
    """How many to run; None for all that remain."""
    source: DataSource | None
    limits: Limits
    seconds: float
    runtime: str = ""
    """The engine's runtime to run by; empty for the one that it prefers."""
    places: Places = field(default_factory=Places)
    """Where tasks work, which a service has for all of its processes together."""
    trees: KnownTrees = field(default_factory=KnownTrees)
    """What the nodes have fetched of each other's trees, each once for all of them."""
    rows: KnownRows = field(default_factory=KnownRows)
    """The nodes' rows that tasks use, which a node has in common with itself in other processes."""
    for_silent: bool = False
    """Whether to publish silent members' models, too, when all is done; a person has a command for it."""
    waits: bool = True
    """Whether to wait for a step that is not open; a service hears of it and comes back."""
