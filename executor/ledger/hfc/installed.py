"""Whether an environment in the cache is the one that was installed there: it runs with a node's key.

1. nobody but its owner, who is the caller or root, can write to it or to the cache above it
2. its files are those that were there when the installation from locked hashes ended, by one digest over all
"""

import hashlib
import os
import stat
import time
from pathlib import Path

from executor.errors import UsageError

MARK = "installed.sha256"
"""Holds the digest; written last, so that an environment without it was never finished."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_SETTLED_NS = 1_000_000_000
"""A file that was changed within this time could be changed again without a later time to tell it."""

Entries = list[tuple[str, os.stat_result]]
_SOUND: dict[Path, tuple[str, list[tuple[str, tuple[float, ...], int, int]]]] = {}
"""What this process has hashed and found sound. Each call looks, and hashes again what is not as it was."""


def mark(home: Path) -> None:
    """Write down what is installed."""
    (home / MARK).write_text(_digest(home, _entries(str(home), str(home / MARK))), encoding="ascii")


def check_installed(home: Path, cache: Path) -> None:
    """Return if the environment can be run, or say what is wrong with it."""
    for place in (cache, home.parent, home):
        _check_private(str(place))
    try:
        expected = (home / MARK).read_text(encoding="ascii")
        entries = _entries(str(home), str(home / MARK))
        # A file that is written, replaced or given other rights has another time by the kernel, which nobody
        # can set back. What its owner changes in memory mapped from it shows once it is written back.
        seen = [(path, tuple(about)[:7], about.st_mtime_ns, about.st_ctime_ns) for path, about in entries]
        if _SOUND.get(home) == (expected, seen):
            return
        found = _digest(home, entries)
    except (OSError, ValueError) as error:
        raise _changed(home, f"it cannot be read: {error}") from error
    if found != expected:
        raise _changed(home, "its files are not those that were installed")
    if max((about.st_ctime_ns for _, about in entries), default=0) < time.time_ns() - _SETTLED_NS:
        _SOUND[home] = (expected, seen)


def _entries(folder: str, left_out: str) -> Entries:
    """Return all that is in a folder but one file, each its owner's alone to write."""
    with os.scandir(folder) as scanned:
        listed = sorted((entry for entry in scanned if entry.path != left_out), key=lambda entry: entry.name)
    found = [(entry.path, _check_private(entry.path)) for entry in listed]
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            found += _entries(entry.path, left_out)
    return found


def _digest(home: Path, entries: Entries) -> str:
    """Hash every file with its place, its mode and where it leads."""
    whole = hashlib.sha256()
    for path, about in entries:
        whole.update(f"{path.removeprefix(f'{home}/')}\0{about.st_mode:o}\0".encode())
        if stat.S_ISLNK(about.st_mode):
            whole.update(os.fsencode(Path(path).readlink()))
        elif stat.S_ISREG(about.st_mode):
            with Path(path).open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
        elif not stat.S_ISDIR(about.st_mode):
            raise _changed(home, f"{path} is no file")
    return whole.hexdigest()


def _check_private(path: str) -> os.stat_result:
    about = os.lstat(path)
    if about.st_uid not in (0, os.geteuid()):
        raise _changed(path, f"it belongs to user {about.st_uid}")
    if about.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(about.st_mode):
        raise _changed(path, "others may write to it")
    return about


def _changed(path: Path | str, why: str) -> UsageError:
    return UsageError("HFC_CHANGED", f"{path} is not run with a node's key: {why}")
