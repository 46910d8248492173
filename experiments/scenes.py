"""The federations of the experiment with hostile members: who attacks whom, how, and against what.

`eclipse` and `eclipse in accord` are no trees of their own: both ring neighbours of one node send `main-leaf`
or `accord`, and that node is measured.
"""

import itertools

from experiments.engine import Case
from experiments.variants import Variant
from learning.parameters import Parameters
from protocol.values import dataclass

RING, FULL, ALONE = "ring", "full", "disconnected"
ATTACKS = ("zero", "one", "noise", "mimic", "shadow", "grey", "main-leaf", "inverted", "accord", "murmur")
QUICK_ATTACKS = ("zero", "one", "accord")
ECLIPSE, ECLIPSE_IN_ACCORD = "eclipse", "eclipse in accord"
ECLIPSES = {ECLIPSE: "main-leaf", ECLIPSE_IN_ACCORD: "accord"}
CLEAN = "clean"
MANY, FEW = 20, 4
ITERATIONS, FEW_ITERATIONS = 4, 3
HOSTILE = {"one": (8,), "together": (7, 8, 9), "spread": (3, 8, 13), "whole": (5, 6, 7, 8, 9)}
"""Who they are: a node amid the ring, three of an organisation, one of each of three, a whole one."""
SPREAD_ATTACKS = ("zero", "main-leaf", "inverted", "accord", "murmur")
"""The attacks that are run by nodes of several organisations: of each sort the worst."""
VICTIMS = (7, 2, 12)
"""Who is surrounded, in turn; on splits 46 and 47 the first has 9 and 15 anomalies, where others have 20."""
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
        kind = None if self.attack == CLEAN else ECLIPSES.get(self.attack, self.attack)
        iterations = ITERATIONS if self.nodes == MANY else FEW_ITERATIONS
        return Case(
            Variant(self.defence, DEFENCES[self.defence]), self.topology, kind, self.hostile, iterations
        )

    @property
    def name(self) -> str:
        """A name for files."""
        who = "".join(f"-{place}" for place in self.hostile)
        return f"{self.attack.replace(' ', '-')}{who}-of-{self.nodes}-{self.topology}-{self.defence}"

    @property
    def spread(self) -> bool:
        """Whether the hostile nodes are of several organisations; of the few nodes each is one itself."""
        return self.nodes == MANY and self.hostile == HOSTILE["spread"]

    @property
    def victim(self) -> int | None:
        """The node that is surrounded in an eclipse."""
        return self.hostile[0] + 1 if self.attack in ECLIPSES else None

    @property
    def honest(self) -> list[int]:
        """The nodes that are measured: the victim of an eclipse, else all that are not hostile."""
        if self.victim is not None:
            return [self.victim]
        return [node for node in range(self.nodes) if node not in self.hostile]

    @property
    def base(self) -> "Scene":
        """What it is compared with: the same federation without the attack, or the victim alone."""
        topology = self.topology if self.victim is None else ALONE
        return Scene(CLEAN, (), self.nodes, topology, self.defence)


def scenes(*, quick: bool = False) -> list[Scene]:
    """Every federation of the table."""
    found = []
    attacks, sets = (QUICK_ATTACKS, ("whole",)) if quick else (ATTACKS, tuple(HOSTILE))
    for topology, who, attack in itertools.product((FULL, RING), sets, attacks):
        if who == "spread" and attack not in SPREAD_ATTACKS:
            continue
        found.append(Scene(attack, HOSTILE[who], MANY, topology, DEFAULT))
        if not quick and attack in UNDEFENDED and who == "whole":
            found.append(Scene(attack, HOSTILE[who], MANY, topology, NONE))
    if not quick:
        for attack, victim in itertools.product(ECLIPSES, VICTIMS):
            found.append(Scene(attack, (victim - 1, victim + 1), MANY, RING, DEFAULT))
        found += [Scene(attack, (1,), FEW, RING, DEFAULT) for attack in ATTACKS]
        found.append(Scene(CLEAN, (), MANY, RING, NONE))
        found.append(Scene(CLEAN, (), MANY, FULL, NONE))
    return list(dict.fromkeys([*found, *(scene.base for scene in found)]))
