"""Made-up transactions, to try the federation in seconds and without any data."""

import numpy as np

from executor.data.csv import Table
from executor.errors import DatasetError

ROWS, FEATURES, ANOMALOUS = 20_000, 12, 0.02


def synthetic(
    rows: int = ROWS, features: int = FEATURES, anomalous: float = ANOMALOUS, seed: int = 0
) -> Table:
    """Normal rows from one Gaussian; anomalies from three small clusters, each shifted in three features."""
    if rows < 20 or features < 3 or not 0 < anomalous < 0.5:
        raise DatasetError(
            "DATA_TOO_SMALL", f"{rows} rows, {features} features, {anomalous:.2%} anomalies", "Ask for more."
        )
    rng = np.random.default_rng(seed)
    count = max(2, round(rows * anomalous))
    X = rng.standard_normal((rows, features)) @ rng.normal(0, 1 / np.sqrt(features), (features, features))
    kind = rng.integers(0, 3, count)
    for cluster in range(3):
        moved = rng.choice(features, 3, replace=False)
        chosen = np.flatnonzero(kind == cluster)
        X[np.ix_(chosen, moved)] += rng.choice([-1, 1], 3) * 2.0 + rng.normal(0, 0.8, (len(chosen), 3))
    y = np.zeros(rows, dtype=np.int8)
    y[:count] = 1
    order = rng.permutation(rows)
    names = tuple(f"x{i}" for i in range(features))
    return Table(X[order], y[order], names, f"synthetic, {rows} rows, seed {seed}")
