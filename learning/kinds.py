"""The kinds of estimators by their registered names: how each is fitted, and how it scores rows.

Ranking needs no entry: the kernel compares the internal nodes of all trees of two estimators. Nor does the
defence: quota and cap count estimators, and the home check tries whatever scores rows. What a kind is on the
wire is in `protocol.trees.kinds`, with a list of all that a new kind needs.
"""

from collections.abc import Callable, Sequence

from learning.fit_options import FitOptions
from learning.fit_tree import fit_tree
from learning.rows import Rows
from learning.voters import BoostedVoters, Floats, TreeVoters, Voters
from protocol.trees.content import Content
from protocol.trees.limits import BOOSTED, TREE, TreeLimits
from protocol.values import dataclass


@dataclass(frozen=True)
class LearnedKind:
    """What a kind of estimators can do."""

    fit: Callable[[Rows, int, FitOptions, TreeLimits], Content]
    """Train one estimator from one seed."""
    voters: Callable[[Sequence[Content], Floats], Voters]
    """Lay some out for scoring rows."""


def _fit_boosted(rows: Rows, seed: int, options: FitOptions, limits: TreeLimits) -> Content:
    """Boost one estimator; how that is done is loaded by those alone who do it."""
    from learning.boost import fit_boosted  # noqa: PLC0415

    return fit_boosted(rows, seed, options, limits)


KINDS: dict[str, LearnedKind] = {
    TREE: LearnedKind(fit_tree, TreeVoters.of),
    BOOSTED: LearnedKind(_fit_boosted, BoostedVoters.of),
}
