"""Ways to learn, named: the parameters of all nodes, and how they set the decision threshold."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np

from experiments.metrics import Levels, Weighting
from experiments.split import Split
from learning.ensemble import Ensemble
from learning.fit_options import FitOptions
from learning.kernel import KernelOptions
from learning.parameters import Defaults, Parameters
from learning.predict import Predictor
from learning.reach import OwnFit, Reach
from learning.robust import Alarms, HomeBehaviour, HomeCheck
from learning.rows import Rows
from protocol.defence import vote_weights
from protocol.trees.content import Content
from protocol.values import dataclass

PAPER, DEFAULT = "paper", "default"
ENOUGH_ANOMALIES = 8
OTHERWISE = 0.5


@dataclass(frozen=True)
class Variant:
    """Parameters under a name; with `home_threshold` each node tunes the threshold on its own rows.

    `standardised` measures the kernel's thresholds in units of all nodes' rows together, as the paper does;
    what ships has no such units, since nobody may pool the rows.
    """

    name: str
    parameters: Parameters
    home_threshold: bool = False
    standardised: bool = False


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
    return Variant(PAPER, Parameters.paper(**changes), standardised=True)


def compared(given: Mapping[str, Sequence[Any]], paper: bool = False) -> list[Variant]:
    """The paper's algorithm if asked for, then every combination of what was given; else the default.

    `given` has values by the names of `Choices`; the paper's algorithm takes the first of its three numbers.
    """
    chosen = {name: tuple(dict.fromkeys(values)) for name, values in given.items() if values}
    if not paper:
        return Choices(**chosen).variants()
    sizes = {name: chosen[name][0] for name in ("n_new", "n_max", "n_share") if name in chosen}
    first = paper_variant(**sizes)
    if set(chosen) == set(sizes) and all(len(chosen[name]) == 1 for name in sizes):
        return [first]
    variants = Choices(**chosen).variants()
    return [first, *variants] if len(variants) > 1 else [first, replace(variants[0], name="variant")]


def home_threshold(node: str, ensemble: Ensemble, parameters: Parameters, rows: Rows) -> float:
    """The decision threshold of best F1 on a node's own rows, by foreign trees alone, which never saw them.

    It lies midway between the lowest score still called anomalous and the next lower one. With fewer than
    eight anomalies, or without foreign trees, there is too little to tune on.
    """
    foreign = [estimator for estimator in ensemble if estimator.id.creator != node]
    if int(rows.y.sum()) < ENOUGH_ANOMALIES or not foreign:
        return OTHERWISE
    ids = [estimator.id for estimator in foreign]
    weights = vote_weights(node, parameters.members, ids, parameters.vote_cap)
    levels = Levels(Predictor.of([estimator.tree for estimator in foreign], weights).scores(rows.X))
    true, false = levels.counts(Weighting.once(rows.y))
    f1 = (2 * true / (true + false + true[-1]))[:, 0]
    best = int(np.argmax(f1))
    lower = levels.values[best + 1] if best + 1 < len(levels.values) else 0.0
    return float((levels.values[best] + lower) / 2)


@dataclasses.dataclass
class Checked:
    """What is known of trees, laid out once, on a node's rows, and of what its own estimators reach."""

    laid_out: dict[Content, Predictor] = field(default_factory=dict)
    trees: dict[tuple[bytes, Content], HomeBehaviour] = field(default_factory=dict)
    own: dict[tuple[bytes, OwnFit], Reach | None] = field(default_factory=dict)
    alarms: dict[tuple[bytes, Content, str], Alarms] = field(default_factory=dict)


@dataclass(frozen=True)
class RememberedCheck(HomeCheck):
    """The home check, which tries a tree on a node's rows once, however often the tree is offered."""

    checked: Checked = field(default_factory=Checked, compare=False)

    @classmethod
    def of(cls, check: HomeCheck, checked: Checked) -> Self:
        """The same rule with a memory."""
        rule = {field.name: getattr(check, field.name) for field in dataclasses.fields(HomeCheck)}
        return cls(**rule, checked=checked)

    def behaviour(self, tree: Content, rows: Rows) -> HomeBehaviour:
        """Try the tree on the rows, or remember."""
        key = (rows.digest, tree)
        found = self.checked.trees.get(key)
        if found is None:
            predictor = self.checked.laid_out.get(tree)
            if predictor is None:
                predictor = self.checked.laid_out[tree] = Predictor.of([tree])
            found = self.checked.trees[key] = HomeBehaviour.by(predictor, rows)
        return found

    def alarms(self, tree: Content, rows: Rows, vote: str) -> Alarms:
        """Find out what the tree says of the normal rows, or remember."""
        key = (rows.digest, tree, vote)
        if key not in self.checked.alarms:
            self.checked.alarms[key] = super().alarms(tree, rows, vote)
        return self.checked.alarms[key]

    def reach(self, rows: Rows, own: OwnFit) -> Reach | None:
        """Find out what own estimators reach, or remember."""
        key = (rows.digest, own)
        if key not in self.checked.own:
            self.checked.own[key] = super().reach(rows, own)
        return self.checked.own[key]


def scale(split: Split) -> KernelOptions:
    """One mean and deviation per feature over the rows of all nodes."""
    X = np.concatenate([node.X for node in split.nodes])
    mu, sigma = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return KernelOptions(mu=tuple(mu.tolist()), sigma=tuple(np.where(sigma > 0, sigma, 1.0).tolist()))


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
