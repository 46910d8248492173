"""Whether an environment in the cache is the one that was installed there: it runs with a node's key.

1. nobody but its owner, who is the caller or root, can write to it or to the cache above it
2. its files are those that were there when the installation from locked hashes ended, by one digest over all
"""

import hashlib
import os
import stat
from pathlib import Path

from executor.errors import UsageError

MARK = "installed.sha256"
"""Holds the digest; written last, so that an environment without it was never finished."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def mark(home: Path) -> None:
    """Write down what is installed."""
    (home / MARK).write_text(_digest(home), encoding="ascii")


def check_installed(home: Path, cache: Path) -> None:
    """Return if the environment can be run, or say what is wrong with it."""
    for place in (cache, home.parent, home):
        _check_private(place)
    try:
        expected = (home / MARK).read_text(encoding="ascii")
        found = _digest(home)
    except (OSError, ValueError) as error:
        raise _changed(home, f"it cannot be read: {error}") from error
    if found != expected:
        raise _changed(home, "its files are not those that were installed")


def _digest(home: Path) -> str:
    """Hash every file with its place, its mode and where it leads; each is its owner's alone to write."""
    whole = hashlib.sha256()
    for folder, folders, names in os.walk(home):
        folders.sort()
        for name in sorted([*names, *folders]):
            path = Path(folder, name)
            if path == home / MARK:
                continue
            about = _check_private(path)
            whole.update(f"{path.relative_to(home)}\0{about.st_mode:o}\0".encode())
            if stat.S_ISLNK(about.st_mode):
                whole.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(about.st_mode):
                with path.open("rb") as file:
                    whole.update(hashlib.file_digest(file, "sha256").digest())
            elif not stat.S_ISDIR(about.st_mode):
                raise _changed(home, f"{path} is no file")
    return whole.hexdigest()


def _check_private(path: Path) -> os.stat_result:
    about = path.lstat()
    if about.st_uid not in (0, os.geteuid()):
        raise _changed(path, f"it belongs to user {about.st_uid}")
    if about.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(about.st_mode):
        raise _changed(path, "others may write to it")
    return about


def _changed(path: Path, why: str) -> UsageError:
    return UsageError("HFC_CHANGED", f"{path} is not run with a node's key: {why}")
