"""Which engines beside the first a run is about: chosen by --engines, or found in the cache."""

import os

import pytest

from support.network import run

ENGINES = ("26/containerd", "29/containerd", "26/classic", "29/classic")
"""Version and image store; the default is the first that is cached."""


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on engines that were not chosen, or that cannot be started here."""
    asked = str(config.getoption("--engines"))
    chosen = _chosen(asked) if any(item.get_closest_marker("engine") for item in items) else ()
    left_out = [item for item in items if not _is_meant(item, chosen, bool(asked))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _chosen(asked: str) -> tuple[str, ...]:
    if asked:
        return ENGINES if asked == "all" else tuple(asked.split(","))
    there = (name for name in ENGINES if os.geteuid() == 0 and _is_cached(name))
    return tuple(there)[:1]


def _is_cached(name: str) -> bool:
    return run("scripts/engine", name.partition("/")[0], "cached").returncode == 0


def _is_meant(item: pytest.Item, chosen: tuple[str, ...], at_length: bool) -> bool:
    if item.get_closest_marker("engine") is None:
        return True
    engine = getattr(item, "callspec").params["second"]  # noqa: B009 - pytest.Item has none
    return engine in chosen and (at_length or item.get_closest_marker("at_length") is None)
