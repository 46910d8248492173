"""scikit-learn's compiled tree modules, without the packages around them.

A learner lives for one task, and `import sklearn.tree` takes longer than the task's FIT, because of all that
comes with it: linear models, neighbours, metrics and scipy's statistics. None of it is needed to grow a tree.
Here the packages stand empty while the compiled modules are loaded from them; these are the same files as
ever, so the trees are the same.
"""

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

TESTED = {"scipy": "scipy-1.17.1.dist-info", "sklearn": "scikit_learn-1.9.1.dist-info"}
"""The versions of which this is known to work; others are loaded as everybody does."""
TREE = "sklearn.tree._tree"
EMPTY = {
    "scipy.sparse": ("csr_array",),
    "scipy.special": (),
    "sklearn": (),
    "sklearn.neighbors": (),
    "sklearn.tree": (),
    "sklearn.utils": ("_align_api_if_sparse",),
    "sklearn.utils.validation": ("check_random_state",),
}
"""The packages that stand empty, with what the compiled modules take from them and our trees never call."""
_LOADING = Lock()


def load_modules() -> bool:
    """Load the compiled modules of the tested versions, alone unless somebody has loaded them before.

    False if other versions are installed, or if so much of the packages is loaded that the rest has to be.
    """
    folders = {package: _installed(package, version) for package, version in TESTED.items()}
    if None in folders.values():
        return False
    with _LOADING:
        if TREE in sys.modules:
            # Waits where another thread is still loading it.
            importlib.import_module(TREE)
            return True
        return _load(folders)


def _load(folders: Mapping[str, Path | None]) -> bool:
    if not EMPTY.keys().isdisjoint(sys.modules):
        return False
    # Small by itself, and others look for its parts in it.
    importlib.import_module("scipy")
    for name, functions in EMPTY.items():
        sys.modules[name] = _empty(
            name, f"{folders[name.partition('.')[0]]}/{name.replace('.', '/')}", functions
        )
    vars(sys.modules["scipy.sparse"])["issparse"] = _issparse
    try:
        importlib.import_module(TREE)
    finally:
        # Whoever imports the packages later gets the real ones.
        for name in EMPTY:
            del sys.modules[name]
    return True


@functools.cache
def _installed(package: str, version: str) -> Path | None:
    """Return the folder that holds the package, if it is the tested version."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parents[1]
    return folder if (folder / version).is_dir() else None


def _empty(name: str, path: str, functions: tuple[str, ...]) -> ModuleType:
    """Return a package of which nothing has run."""
    package = ModuleType(name)
    package.__path__ = [path]
    vars(package).update({function: _later(name, function) for function in functions})
    return package


def _later(package: str, function: str) -> Callable[..., Any]:
    """Return a function that loads the package when it is called."""

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(package), function)(*arguments, **named)

    return call


def _issparse(value: object) -> bool:
    """Tell whether a value is sparse; as long as nobody has loaded scipy.sparse, none is."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(value))
