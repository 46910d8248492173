"""A way to learn, named: the parameters of all nodes, and how they set the decision threshold."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from learning.fit import FitOptions
from learning.parameters import Defaults, Parameters
from learning.robust import HomeCheck

PAPER, DEFAULT = "paper", "default"


@dataclass(frozen=True)
class Variant:
    """Parameters under a name; with `home_threshold` each node tunes the threshold on its own rows."""

    name: str
    parameters: Parameters
    home_threshold: bool = False


@dataclass(frozen=True)
class Choices:
    """What a user asked to compare; every combination is one variant."""

    fit: Sequence[str] = (Defaults.fit.kind,)
    ranking: Sequence[str] = (Defaults.ranking,)
    threshold: Sequence[float | None] = (Defaults.threshold,)
    quota: Sequence[float | None] = (Defaults.quota,)
    vote_cap: Sequence[float | None] = (Defaults.vote_cap,)
    home_check: Sequence[bool] = (Defaults.home_check is not None,)
    n_new: Sequence[int] = (Defaults.n_new,)
    n_max: Sequence[int] = (Defaults.n_max,)
    n_share: Sequence[int] = (Defaults.n_share,)
    normalise: Sequence[bool] = (Defaults.kernel.normalise,)
    min_leaf: Sequence[int] = (Defaults.fit.min_leaf,)

    def variants(self) -> list[Variant]:
        """One variant per combination, named by the options in which they differ."""
        axes: dict[str, Sequence[Any]] = {
            name: tuple(getattr(self, name)) for name in self.__dataclass_fields__
        }
        varying = [name for name, values in axes.items() if len(values) > 1]
        combinations = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
        return [_variant(chosen, varying) for chosen in combinations]


def paper_variant(**changes: Any) -> Variant:
    """The paper's algorithm and nothing else."""
    return Variant(PAPER, Parameters.paper(**changes))


def _variant(chosen: dict[str, Any], varying: list[str]) -> Variant:
    home = chosen["threshold"] is None
    parameters = Parameters(
        n_new=chosen["n_new"],
        n_max=chosen["n_max"],
        n_share=chosen["n_share"],
        fit=FitOptions(kind=chosen["fit"], min_leaf=chosen["min_leaf"]),
        ranking=chosen["ranking"],
        quota=chosen["quota"],
        vote_cap=chosen["vote_cap"],
        home_check=HomeCheck() if chosen["home_check"] else None,
        threshold=0.5 if home else chosen["threshold"],
    )
    if chosen["normalise"]:
        parameters = replace(parameters, kernel=replace(parameters.kernel, normalise=True))
    name = ", ".join(_word(option, chosen[option]) for option in varying) or DEFAULT
    return Variant(name, parameters, home)


def _word(option: str, value: Any) -> str:
    """`balanced`, `no quota`, `vote cap 0.15`: an option and its value as a person says it."""
    if option in {"fit", "ranking"}:
        return str(value)
    words = option.replace("_", " ")
    if option == "threshold":
        return "threshold home" if value is None else f"threshold {value:g}"
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"no {words}" if value is None else f"{words} {value:g}"
