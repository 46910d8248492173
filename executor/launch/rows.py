"""Rows of a node that several processes of a launch use: read and hashed each time, parsed once."""

import threading
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from executor.data import Dataset, parsed, read_file
from protocol.digest import Digest

Key = tuple[Path, str, tuple[str, ...], Digest]


class KnownRows:
    """Remembers rows by the bytes that they came from, for as long as a task uses them.

    Parsing is nearly all that reading a file costs. Nothing is believed of a file but its bytes: they are
    read whole and hashed, and only what the very same bytes came to is used again.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Key, Dataset] = WeakValueDictionary()
        self._parsing = threading.Lock()
        """One for all files: two that are parsed at once are not done any sooner."""

    def load(self, path: Path, label: str, drop: Sequence[str] = ()) -> Dataset:
        """Return the rows of a file as it is now."""
        raw = read_file(path)
        key = path, label, tuple(drop), Digest.of(raw)
        with self._parsing:
            dataset = self._known.get(key)
            if dataset is None:
                dataset = self._known[key] = parsed(path, raw, label, drop)
        return dataset
