"""The rows benchmarks learn from: the fraud data split as in the paper if given, else look-alikes."""

from pathlib import Path

import numpy as np

from experiments.data import load_fraud
from experiments.split import split
from learning.rows import Rows

NODES = 20
FEATURES = 29


def nodes(data: Path | None) -> dict[str, Rows]:
    """Return each node's rows."""
    return _fraud(data) if data is not None else synthetic(NODES)


def synthetic(count: int, size: int = 12_000, seed: int = 0) -> dict[str, Rows]:
    """Return rows, two in a thousand anomalous, on which trees grow as large as on the fraud data."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(FEATURES, 3)) * (rng.random((FEATURES, 3)) < 0.4)
    made = {}
    for i in range(count):
        X = rng.standard_t(4, size=(size, FEATURES)).astype(np.float32)
        anomalous = rng.random(size) < 0.002
        kind = rng.integers(3, size=int(anomalous.sum()))
        X[anomalous] += (direction.T[kind] * rng.gamma(4.0, 2.0, size=(len(kind), 1))).astype(np.float32)
        made[f"node{i:02d}" if count <= 100 else f"node{i:03d}"] = Rows.of(X, anomalous)
    return made


def _fraud(data: Path) -> dict[str, Rows]:
    parts = split(load_fraud(data))
    return {node.name: Rows.of(node.X, node.y) for node in parts.nodes}
