"""The environment that hfc runs in, made once from locked packages and kept in the cache directory.

hfc needs protobuf 3.20, and message definitions that clash with those of hyperledger-fabric-protos: it cannot
be installed beside the executor. requirements/hfc.txt has every package with its hashes, and
requirements/hfc-build.txt what the two of them without a wheel are built with, so that nothing unchecked runs
during the installation either.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from executor.errors import UsageError
from executor.ledger.hfc.installed import check_installed, mark
from executor.network import ROOT

LOCKED = ROOT / "requirements/hfc.txt"
BUILD = ROOT / "requirements/hfc-build.txt"
VERSION = (3, 11)
SECONDS = 900
_LAYOUT = b"2"
"""Counts what an environment consists of besides its packages: since 2, the digest of its files."""
_PIP = (
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--require-hashes",
    "--no-deps",
)


def hfc_python() -> Path:
    """Return the Python that has hfc, making its environment first where there is none.

    One that is there is used only if it is what was installed, and nobody else can have altered it.
    """
    cache = _cache()
    home = cache / "hfc" / _key()
    python = home / "bin/python"
    if not _has_python(home):
        _make(home)
    check_installed(home, cache)
    return python


def _has_python(home: Path) -> bool:
    """Whether there is the Python it was made with: it may have gone, or lie where only others may look."""
    return os.access(home / "bin/python", os.F_OK)


def base_python() -> str:
    """Find a Python that hfc can run on: it imports `_sha256`, which 3.12 no longer has."""
    wanted = ".".join(str(part) for part in VERSION)
    found = sys.executable if sys.version_info[:2] == VERSION else shutil.which(f"python{wanted}")
    if not found:
        raise UsageError(
            "HFC_PYTHON",
            f"hfc runs on Python {wanted}, this is {sys.version.split()[0]}, and PATH has no python{wanted}",
            version=wanted,
        )
    return found


def _cache() -> Path:
    """The directory that network/lib/common.sh calls CACHE."""
    if "ATTESTREE_CACHE" in os.environ:
        return Path(os.environ["ATTESTREE_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attestree"


def _key() -> str:
    return sha256(_LAYOUT + BUILD.read_bytes() + LOCKED.read_bytes()).hexdigest()[:16]


def _make(home: Path) -> None:
    """Build beside the final place and move there at the end, so that half an environment is never used."""
    base = base_python()
    packages = sum("==" in line for line in LOCKED.read_text().splitlines())
    _say(
        f"hfc: installing fabric-sdk-py and what it needs, {packages} locked packages, into {home}, once; "
        "it cannot share an environment with the executor"
    )
    began = time.monotonic()
    for place in (home.parent.parent, home.parent):
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=home.parent, ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "environment"
        python = str(made / "bin/python")
        _run("make a virtual environment", base, "-m", "venv", str(made))
        _run("install the build tools", python, *_PIP, "-r", str(BUILD))
        _run("install hfc", python, *_PIP, "--no-build-isolation", "-r", str(LOCKED))
        _run("load hfc", python, "-I", "-B", "-c", "import hfc.fabric.client")
        mark(made)
        _move(made, home)
    _say(f"hfc: installed in {time.monotonic() - began:.0f} s")


def _move(made: Path, home: Path) -> None:
    """Put the environment in its place, unless another process was faster."""
    if home.exists() and not _has_python(home):
        shutil.rmtree(home)
    try:
        made.rename(home)
    except OSError:
        if not _has_python(home):
            raise


def _run(what: str, *command: str) -> None:
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            umask=0o022,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("HFC_INSTALL", f"could not {what}: {error}", case="not run") from error
    if ran.returncode == 0:
        return
    said = " | ".join(ran.stderr.strip().splitlines()[-4:]) or f"exit code {ran.returncode}"
    if "DO NOT MATCH THE HASHES" in ran.stderr:
        raise UsageError(
            "HFC_HASH",
            f"could not {what}: the package index served other files than were locked ({said})",
        )
    raise UsageError(
        "HFC_INSTALL",
        f"could not {what}: {said}",
    )


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
