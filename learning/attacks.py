"""Hostile nodes for the simulator: well-formed trees, made to harm, always the newest ones SHAREd.

zero       random trees of 60 internal nodes whose every leaf says normal
one        the same, every leaf says anomalous
grey       the same, every leaf at or just above one half
noise      trees fitted to the node's rows with 2 % of them called anomalous at random, and no true labels
mimic      trees that find four of the node's own anomalies, made big by a grafted subtree that says normal
main-leaf  true trees that keep the few leaves which pass the others' home check, made big likewise
inverted   the same, and its leaves of normal rows say anomalous, as far as that check lets alarms pass
shadow     copies of what honest neighbours offered last, to explain that away; leaves as in main-leaf
accord     one tree for all hostile nodes, that finds what passes and alarms the normal rows that look worst
murmur     the same, and says less of more such rows, which is not counted and adds to the doubts of others

Those that have to pass a home check are made for the one that the federation has agreed on.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Self

import numpy as np

from learning.accord import accord, murmur
from learning.actions import NodeState
from learning.errors import ParameterError
from learning.fit import FitTask
from learning.hostile_trees import Target, constant, grey, inverted, main_leaf, mimic, noise, shadow
from learning.parameters import HOME_CHECK, Parameters
from learning.robust import HomeCheck
from learning.rows import Rows
from learning.seeds import generator
from protocol.identifiers import EstimatorId
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TREE
from protocol.trees.tree import Tree, TreeLimits
from protocol.values import dataclass

CERTAIN = 1e-9
SHADOW, ACCORD, MURMUR = "shadow", "accord", "murmur"
AGREED = (ACCORD, MURMUR)
"""The attacks of nodes that make their trees from the rows of one of them."""
ATTACKS: dict[str, Callable[[Target], Tree]] = {
    "zero": constant(0.0),
    "one": constant(1.0),
    "grey": grey,
    "noise": noise,
    "mimic": mimic,
    "main-leaf": main_leaf,
    "inverted": inverted,
    SHADOW: shadow,
    ACCORD: accord,
    MURMUR: murmur,
}


@dataclass(frozen=True)
class Attack:
    """What a hostile node does, and the home check that its trees shall pass; None where there is none.

    Nodes that act in accord make their trees from the rows of one of them.
    """

    kind: str
    check: HomeCheck | None = HOME_CHECK
    common: Rows | None = None

    @classmethod
    def on(cls, parameters: Parameters, kind: str, common: Rows | None = None) -> Self:
        """Return the attack of that kind on a federation of these parameters."""
        check = parameters.home_check
        # A check with a memory is the same rule, and must be the same key of a cache.
        rule = (
            None
            if check is None
            else HomeCheck(**{f.name: getattr(check, f.name) for f in fields(HomeCheck)})
        )
        return cls(kind, rule, common)


def check(kind: str, estimators: str) -> None:
    """Return if there is such an attack on a federation whose estimators are of that kind."""
    if kind not in ATTACKS:
        raise ParameterError(f"no attack is called {kind!r}; there are {', '.join(ATTACKS)}")
    if kind == SHADOW and estimators != TREE:
        raise ParameterError(
            f"attack {kind!r} copies single trees; estimators of kind {estimators!r} are none"
        )


def fit(attack: Attack, rows: Rows, task: FitTask, seen: Sequence[Estimator] = ()) -> tuple[Estimator, ...]:
    """Make hostile estimators where an honest node would FIT, having seen what the neighbours offer."""
    kind = attack.kind
    check(kind, task.limits.kind)
    # Before there is anything to copy, a shadow does as its leaves do.
    made = ATTACKS["main-leaf" if kind == SHADOW and not seen else kind]
    estimators = []
    for i in range(task.n_new):
        counter = task.first_counter + i
        rng = generator(task.seed, task.node, task.iteration, f"attack:{kind}:{counter}")
        model = seen[i % len(seen)].tree if seen else None
        tree = made(Target(rows, task, rng, model, attack.check, attack.common))
        estimators.append(Estimator(EstimatorId(task.node, counter), _of_kind(tree, task.limits)))
    return tuple(estimators)


def share(state: NodeState, created: tuple[Estimator, ...], n_share: int) -> tuple[Estimator, ...]:
    """Offer the newest own estimators, whatever the ranking says."""
    own = [estimator for estimator in created if estimator.id.creator == state.node]
    return tuple(own[len(own) - min(n_share, len(own)) :])


def _of_kind(tree: Tree, limits: TreeLimits) -> Content:
    """Return a hostile tree as an estimator of the process's kind: boosted, it is the only tree of one."""
    if limits.kind == TREE:
        return tree
    even = np.clip(tree.value, CERTAIN, 1.0 - CERTAIN)
    arrays = {name: getattr(tree, name) for name in ("feature", "threshold", "left", "right", "missing_left")}
    return Boosted.from_arrays(0.0, [{**arrays, "value": np.log(even / (1.0 - even))}], limits)
