"""Unit tests in a few processes, each of which collects its own files alone.

Processes that share out single tests would each collect all of them and tell each other about every one,
which costs a quarter of the time. So whole files are dealt out before anything starts, neighbours together:
tests of one folder load the same libraries and share what is made once in a process, such as a federation
that was played to its end.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path

from .surroundings import ROOT

PROCESSES = len(os.sched_getaffinity(0)) + 1
"""One more than this process may use processors, because a unit test waits now and then: for a socket."""
FEWEST_FILES = 8
"""For fewer it does not pay to load the libraries once more."""
COSTS = {
    "executor/audit": 1.5,
    "executor/ledger": 3.5,
    "executor/test_simulate.py": 5,
    "experiments": 2.8,
    "network": 2.3,
    "chaincode": 0.6,
    "protocol": 0.5,
    "executor/process": 0.3,
    "executor/image": 0.4,
}
"""How long a byte of tests takes there, as measured, where that is far from the mean of all."""


def shards(paths: Sequence[str], processes: int = PROCESSES) -> list[list[str]]:
    """Return what each process is given: neighbours of about the same size in all, always dealt alike."""
    files = sorted(files_of(paths))
    count = min(processes, max(1, len(files) // FEWEST_FILES))
    dealt: list[list[str]] = [[] for _ in range(count)]
    sizes = [cost(file) for file in files]
    before = 0.0
    for file, size in zip(files, sizes, strict=True):
        middle = before + size / 2
        dealt[int(middle * count / sum(sizes))].append(file)
        before += size
    # A file much larger than its neighbours may leave one without any, and pytest without files takes all.
    return [given for given in dealt if given]


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


def cost(file: str) -> float:
    """Return about how long a file's tests take, in no unit: by its size, and by where it is."""
    path = Path(ROOT, file.partition("::")[0])
    size = max(1, path.stat().st_size) if path.is_file() else 1
    place = file.removeprefix("tests/unit/")
    return size * next((each for folder, each in COSTS.items() if place.startswith(folder)), 1.0)
