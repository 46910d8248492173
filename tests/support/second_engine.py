"""An engine beside the first, and which of them a run is about: asked for by --engines, or cached."""

import functools
import os
from dataclasses import dataclass

import pytest
from docker import DockerClient

from support.network import PROJECT, done, run

ALL = ("26/containerd", "29/containerd", "26/classic", "29/classic")
"""Version and image store; the default is the first that is cached."""
ENGINES = (*ALL, "moby/containerd", "moby/classic")
"""What can be asked for by name, too: building moby takes long."""


@dataclass(frozen=True)
class SecondEngine:
    """One engine of the test's own, by its version; `port` is that of the registry which it reaches."""

    version: str
    port: str = ""
    project: str = PROJECT

    def start(self, store: str, *, reach: bool = True) -> str:
        """Start it with a store, anew if it has another one; returns its address."""
        ports = ("--forward", self.port) if self.port and reach else ()
        return self._do("start", "--store", store, *ports).strip()

    def stop(self) -> None:
        """Stop it, and remove what it had."""
        self._do("stop", "--purge")

    def _do(self, *words: str) -> str:
        return done("scripts/engine", self.version, *words, ATTESTREE_PROJECT=self.project)


def empty(client: DockerClient) -> None:
    """Remove every image, as somebody does who wants their disk back."""
    for image in client.images.list():
        client.api.remove_image(str(image.id), force=True)


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on engines that were not chosen, or that cannot be started here."""
    asked = bool(config.getoption("--engines"))
    meant = any(item.get_closest_marker("engine") for item in items)
    chosen = engines_of(config) if meant else ()
    left_out = [item for item in items if not _is_meant(item, chosen, asked)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def engines_of(config: pytest.Config) -> tuple[str, ...]:
    """Return the engines that the run is about; a worker was told them."""
    told = getattr(config, "workerinput", {}).get("engines")
    return chosen_engines(str(config.getoption("--engines"))) if told is None else tuple(told)


@functools.cache
def chosen_engines(asked: str) -> tuple[str, ...]:
    """Return the engines that were asked for, or else the first that is cached.

    Once for all workers of a run: one may come into the cache while they start.
    """
    if asked:
        return ALL if asked == "all" else tuple(asked.split(","))
    there = (name for name in ALL if os.geteuid() == 0 and _is_cached(name))
    return tuple(there)[:1]


def _is_cached(name: str) -> bool:
    return run("scripts/engine", name.partition("/")[0], "cached").returncode == 0


def _is_meant(item: pytest.Item, chosen: tuple[str, ...], at_length: bool) -> bool:
    if item.get_closest_marker("engine") is None:
        return True
    engine = getattr(item, "callspec").params["second"]  # noqa: B009 - pytest.Item has none
    return engine in chosen and (at_length or item.get_closest_marker("at_length") is None)
