"""The parameters of a node: the paper's three numbers, and the choices the paper leaves open."""

from dataclasses import replace
from typing import Any, Self

from learning.errors import ParameterError
from learning.fit_options import FitOptions
from learning.kernel import PAPER, KernelOptions
from learning.ranking import RANKINGS, Ranking, RankingContext, make
from learning.robust import HomeCheck
from learning.rows import Rows
from protocol.defence import NOBODY, Membership, Quota
from protocol.trees.limits import LATEST_FORMAT, TreeLimits
from protocol.values import dataclass

BALANCED = FitOptions(kind="balanced")
HOME_CHECK = HomeCheck()


@dataclass(frozen=True)
class Parameters:
    """What one node does in each iteration; nodes may differ in it.

    The defaults are the shipped ones: class-balanced trees, decision threshold 0.3, kernel ranking, and the
    defence: quota, vote cap and home check. `members` is who belongs to which organisation, on which quota
    and cap count; without it each node is its own. `Parameters.paper()` is the paper's algorithm and
    nothing else.
    """

    n_new: int = 10
    n_max: int = 50
    n_share: int = 10
    fit: FitOptions = BALANCED
    ranking: str = "kernel"
    kernel: KernelOptions = PAPER
    quota: float | None = 2.0
    vote_cap: float | None = 0.25
    home_check: HomeCheck | None = HOME_CHECK
    threshold: float = 0.3
    vote: str = "mean"
    max_internal: int = 255
    max_depth: int = 64
    members: Membership = NOBODY
    estimator_format: int = LATEST_FORMAT
    held_out: float | None = None
    """Which part of its rows a node learns nothing from."""

    def __post_init__(self) -> None:
        for name in ("n_new", "n_max", "n_share"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 10_000:
                raise ParameterError(f"{name} {value!r} is not a whole number from 0 to 10000")
        if self.n_max < 1 or self.n_share > self.n_max:
            raise ParameterError(
                f"n_share {self.n_share} and n_max {self.n_max}: need n_share <= n_max, n_max >= 1"
            )
        if self.ranking not in RANKINGS:
            raise ParameterError(f"no ranking is called {self.ranking!r}; there are {', '.join(RANKINGS)}")
        if self.vote not in ("mean", "majority"):
            raise ParameterError(f"vote {self.vote!r} is neither 'mean' nor 'majority'")
        if self.vote == "majority" and self.threshold < 0.5:
            raise ParameterError(
                f"vote 'majority' with threshold {self.threshold}: fewer than half are no majority"
            )
        if not 0.0 <= self.threshold < 1.0:
            raise ParameterError(f"threshold {self.threshold} is not in [0, 1)")
        if self.quota is not None and not 1.0 <= self.quota < float("inf"):
            raise ParameterError(f"quota {self.quota} is not a finite number of at least 1")
        if self.vote_cap is not None and not 0.0 < self.vote_cap <= 1.0:
            raise ParameterError(f"vote_cap {self.vote_cap} is not in (0, 1]")
        if self.held_out is not None and not 0.0 < self.held_out < 1.0:
            raise ParameterError(f"held_out {self.held_out} is not between 0 and 1")
        self.limits(1)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's algorithm: plain trees, threshold 0.5, raw kernel ranking, no defence."""
        plain = cls(fit=FitOptions(kind="plain"), quota=None, vote_cap=None, home_check=None, threshold=0.5)
        return replace(plain, **changes)

    def limits(self, n_features: int) -> TreeLimits:
        """Return what trees these parameters allow."""
        return TreeLimits(
            n_features,
            self.max_internal,
            self.max_depth,
            self.estimator_format,
            self.fit.estimator_kind,
        )

    def ranking_for(self, node: str, iteration: int, purpose: str, seed: int, rows: Rows | None) -> Ranking:
        """Return the ranking a node applies at one moment."""
        return make(self.ranking, RankingContext(node, iteration, purpose, seed, self.kernel, rows))

    def quota_of(self, node: str) -> Quota | None:
        """Return how many places a node gives to others, None for as many as the ranking says."""
        return None if self.quota is None else Quota(node, self.members, self.quota)


Defaults = Parameters()
"""The parameters a process gets that names none."""
