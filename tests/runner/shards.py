"""Unit tests in a few processes, each of which collects its own files alone.

Processes that share out single tests would each collect all of them and tell each other about every one,
which costs a quarter of the time. So whole files are dealt out before anything starts.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path

from .surroundings import ROOT

PROCESSES = (os.cpu_count() or 1) + 1
"""One more than there are processors, because a unit test waits now and then: for a process, for a socket."""
FEWEST_FILES = 8
"""For fewer it does not pay to load the libraries once more."""


def shards(paths: Sequence[str], processes: int = PROCESSES) -> list[list[str]]:
    """Return what each process is given: files that add up to about the same size, always dealt alike."""
    files = files_of(paths)
    count = min(processes, max(1, len(files) // FEWEST_FILES))
    dealt: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda file: (-_size(file), file)):
        lightest = sizes.index(min(sizes))
        dealt[lightest].append(file)
        sizes[lightest] += _size(file)
    return [sorted(files) for files in dealt]


def shuffled_shards(paths: Sequence[str], seed: int, processes: int = PROCESSES) -> list[list[str]]:
    """Return what each process is given in a turn in random order: which files meet depends on the seed."""
    files = files_of(paths)
    random.Random(seed).shuffle(files)
    count = min(processes, max(1, len(files) // FEWEST_FILES))
    return [files[first::count] for first in range(count)]


def files_of(paths: Sequence[str]) -> list[str]:
    """Return the files of tests below these paths; what names a file or a test already stays as it is."""
    found = []
    for path in paths:
        whole = ROOT / path
        files = sorted(whole.rglob("test_*.py")) if whole.is_dir() else []
        found += [str(file.relative_to(ROOT)) for file in files] or [path]
    return list(dict.fromkeys(found))


def _size(file: str) -> int:
    path = Path(ROOT, file.partition("::")[0])
    return path.stat().st_size if path.is_file() else 0
