"""The compiled loops, if this installation has them."""

from importlib import import_module
from types import ModuleType

from learning.errors import ParameterError


def _load() -> ModuleType | None:
    try:
        return import_module("learning._kernel")
    except ImportError:
        return None


_module = _load()


def implementation() -> str:
    """Say which form runs: `compiled`, or `numpy` where that was not built; both give the same bits."""
    return "numpy" if _module is None else "compiled"


def choose(form: str | None) -> ModuleType | None:
    """Return the compiled module, or None for the numpy form; None as form takes the best there is."""
    if form not in (None, "compiled", "numpy"):
        raise ParameterError(f"no form of the loops is called {form!r}")
    if form == "compiled" and _module is None:
        raise ParameterError("the compiled loops were not built here")
    return None if form == "numpy" else _module
