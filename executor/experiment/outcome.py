"""What one federation run leaves behind to be measured."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from executor.data.csv import Floats
from executor.experiment.compare import Model
from executor.experiment.metrics import METRICS, PAPER_METRICS

PARTS = ("test", "train")
STATISTICS = ("mean", "median", "min", "min_node", "max", "max_node")


@dataclass(frozen=True)
class Outcome:
    """One run: each node's metrics on the test set and its own rows, its scores, and who made its trees."""

    seed: int
    test: Floats  # (nodes, metrics)
    train: Floats  # (nodes, metrics)
    scores: Floats  # (nodes, test rows)
    thresholds: Floats  # (nodes,)
    origins: npt.NDArray[np.int64]  # (holders, creators)
    share_bytes: tuple[int, ...] = ()
    refusals: int = 0

    def part(self, name: str) -> Floats:
        """The metrics on `test` or `train`."""
        return {"test": self.test, "train": self.train}[name]

    def models(self, nodes: list[int] | None = None) -> list[Model]:
        """The nodes' test scores, for paired comparison."""
        chosen = range(len(self.scores)) if nodes is None else nodes
        return [Model(self.scores[i], float(self.thresholds[i])) for i in chosen]


Runs = list[Outcome]  # one per seed


def metric(runs: Runs, name: str, part: str = "test") -> Floats:
    """One metric as (seeds, nodes)."""
    return np.array([run.part(part)[:, METRICS.index(name)] for run in runs])


def gains(runs: Runs, baseline: Runs, name: str, part: str = "test") -> Floats:
    """Improvement over the disconnected nodes of the same seed, as (seeds, nodes)."""
    return metric(runs, name, part) - metric(baseline, name, part)


def summary(improvement: Floats) -> dict[str, float | int]:
    """Mean and median over nodes, averaged over seeds; least and greatest node by its average over seeds."""
    by_node = improvement.mean(axis=0)
    return {
        "mean": float(improvement.mean()),
        "median": float(np.median(improvement, axis=1).mean()),
        "min": float(by_node.min()),
        "min_node": int(by_node.argmin()),
        "max": float(by_node.max()),
        "max_node": int(by_node.argmax()),
    }


def all_gains(runs: dict[str, Runs]) -> dict[str, dict[str, dict[str, dict[str, float | int]]]]:
    """`gains.{ring,full}.{test,train}.{bacc,precision,recall}.{mean,...}` from runs by topology."""
    baseline = runs["disconnected"]
    return {
        topology: {
            part: {name: summary(gains(runs[topology], baseline, name, part)) for name in PAPER_METRICS}
            for part in PARTS
        }
        for topology in runs
        if topology != "disconnected"
    }


def origin_shares(runs: Runs) -> Floats:
    """Which share of each holder's trees each creator made, averaged over seeds."""
    shares = [run.origins / np.maximum(run.origins.sum(axis=1, keepdims=True), 1) for run in runs]
    return np.asarray(np.mean(shares, axis=0))
