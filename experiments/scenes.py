"""The federations of the experiment with hostile members: who attacks whom, how, and against what.

`eclipse` is no tree of its own: both ring neighbours of one node send `main-leaf`, and that node is measured.
"""

import itertools

from experiments.engine import Case
from experiments.variants import Variant
from learning.parameters import Parameters
from protocol.values import dataclass

RING, FULL, ALONE = "ring", "full", "disconnected"
ATTACKS = ("zero", "one", "noise", "mimic", "shadow", "grey", "main-leaf", "inverted")
QUICK_ATTACKS = ("zero", "one", "grey")
ECLIPSE = "eclipse"
CLEAN = "clean"
MANY, FEW = 20, 4
ITERATIONS, FEW_ITERATIONS = 4, 3
HOSTILE = {1: (8,), 3: (7, 8, 9), 5: (5, 6, 7, 8, 9)}
"""By how many they are: a node in the middle of the ring, three of an organisation, all of it."""
VICTIM = 7
SPLITS = (45, 46, 47)
DEFAULT, NONE = "default", "none"
DEFENCES = {
    DEFAULT: Parameters(),
    NONE: Parameters(quota=None, vote_cap=None, home_check=None),
}
UNDEFENDED = ("zero", "one")
"""The attacks that are also run against no defence at all, which shows what they can do."""
WHOLE = 5


@dataclass(frozen=True)
class Scene:
    """One federation under attack, or clean."""

    attack: str
    hostile: tuple[int, ...]
    nodes: int
    topology: str
    defence: str

    def case(self) -> Case:
        """What the engine runs."""
        kind = {CLEAN: None, ECLIPSE: "main-leaf"}.get(self.attack, self.attack)
        iterations = ITERATIONS if self.nodes == MANY else FEW_ITERATIONS
        return Case(
            Variant(self.defence, DEFENCES[self.defence]), self.topology, kind, self.hostile, iterations
        )

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.attack}-{len(self.hostile)}-of-{self.nodes}-{self.topology}-{self.defence}"

    @property
    def honest(self) -> list[int]:
        """The nodes that are measured: the victim of an eclipse, else all that are not hostile."""
        if self.attack == ECLIPSE:
            return [VICTIM]
        return [node for node in range(self.nodes) if node not in self.hostile]

    @property
    def base(self) -> "Scene":
        """What it is compared with: the same federation without the attack, or the victim alone."""
        topology = ALONE if self.attack == ECLIPSE else self.topology
        return Scene(CLEAN, (), self.nodes, topology, self.defence)


def scenes(*, quick: bool = False) -> list[Scene]:
    """Every federation of the table."""
    found = []
    attacks, counts = (QUICK_ATTACKS, (WHOLE,)) if quick else (ATTACKS, tuple(HOSTILE))
    for topology, count, attack in itertools.product((FULL, RING), counts, attacks):
        found.append(Scene(attack, HOSTILE[count], MANY, topology, DEFAULT))
        if not quick and attack in UNDEFENDED and count == WHOLE:
            found.append(Scene(attack, HOSTILE[count], MANY, topology, NONE))
    if not quick:
        found.append(Scene(ECLIPSE, (VICTIM - 1, VICTIM + 1), MANY, RING, DEFAULT))
        found += [Scene(attack, (1,), FEW, RING, DEFAULT) for attack in ATTACKS]
        found.append(Scene(CLEAN, (), MANY, RING, NONE))
        found.append(Scene(CLEAN, (), MANY, FULL, NONE))
    return list(dict.fromkeys([*found, *(scene.base for scene in found)]))
