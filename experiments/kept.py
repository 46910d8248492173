"""Figures of a long experiment, kept as they come, so that a run that was interrupted goes on where it was.

A file is named by what was measured and by a digest of all that decides the figure: the settings, the rows,
the code and the libraries. What was measured otherwise counts as not measured.
"""

import ast
import platform
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import Floats
from experiments.packaged import DAMAGED, replacing

ROOT = Path(__file__).resolve().parents[1]
DECIDING = ("learning", "protocol/trees", "protocol/defence.py", "protocol/agreement/topology.py")
"""The code behind every figure: what learns, defends and attacks, and who is whose neighbour."""
LIBRARIES = ("numpy", "scikit-learn", "scipy")


class Kept:
    """Arrays of figures in a directory; without one, nothing is kept."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory

    def measured(self, name: str, settings: str, measure: Callable[[], Floats]) -> Floats:
        """Return the figures of that name under those settings, measuring them if they are not there."""
        if self.directory is None:
            return measure()
        path = self._path(self.directory, name, settings)
        found = _read(path)
        if found is None:
            found = measure()
            with replacing(path) as part, part.open("wb") as file:
                np.save(file, found, allow_pickle=False)
        return found

    def has(self, name: str, settings: str) -> bool:
        """Whether those figures are there."""
        return self.directory is not None and self._path(self.directory, name, settings).exists()

    @staticmethod
    def _path(directory: Path, name: str, settings: str) -> Path:
        return directory / f"{name}-{sha256(settings.encode()).hexdigest()[:16]}.npy"


NOTHING = Kept()


def made_by(*modules: str) -> str:
    """What makes an experiment's figures besides settings and rows: its modules, libraries, machine."""
    paths = (*DECIDING, *(f"experiments/{module}.py" for module in modules))
    used = " ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"code {code_digest(paths)} {used} python {platform.python_version()} {platform.machine()}"


def code_digest(paths: Iterable[str], root: Path = ROOT) -> str:
    """A digest of source files and those below directories; comments and layout of Python do not count."""
    digest = sha256()
    for path in sorted({file for name in paths for file in _sources(root / name)}):
        text = path.read_text(encoding="utf-8")
        code = _syntax(text) if path.suffix == ".py" else text
        digest.update(f"{path.relative_to(root)}\0{code}\0".encode())
    return digest.hexdigest()[:16]


@cache
def _syntax(text: str) -> str:
    """A program without comments and layout; every figure asks for the same ones."""
    return ast.dump(ast.parse(text))


def rows_digest(*arrays: np.ndarray[Any, Any]) -> str:
    """A digest of the rows that something is measured on."""
    digest = sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _sources(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for kind in ("*.py", "*.c") for file in path.rglob(kind)]


def _read(path: Path) -> Floats | None:
    try:
        found: Floats = np.load(path, allow_pickle=False)
    except DAMAGED:
        return None
    return found
