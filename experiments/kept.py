"""Figures of a long experiment, kept as they come, so that a run that was interrupted goes on where it was.

A file is named by what was measured and by a digest of the settings, so that what was measured with other
settings counts as not measured.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np

from experiments.data import Floats
from experiments.packaged import DAMAGED, replacing


class Kept:
    """Arrays of figures in a directory; without one, nothing is kept."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory

    def measured(self, name: str, settings: str, measure: Callable[[], Floats]) -> Floats:
        """Return the figures of that name under those settings, measuring them if they are not there."""
        if self.directory is None:
            return measure()
        path = self.directory / f"{name}-{sha256(settings.encode()).hexdigest()[:16]}.npy"
        found = _read(path)
        if found is None:
            found = measure()
            with replacing(path) as part, part.open("wb") as file:
                np.save(file, found, allow_pickle=False)
        return found


NOTHING = Kept()


def _read(path: Path) -> Floats | None:
    try:
        found: Floats = np.load(path, allow_pickle=False)
    except DAMAGED:
        return None
    return found
