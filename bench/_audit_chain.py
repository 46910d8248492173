"""Channels to verify: a federation of twenty nodes, and a chain as long as one likes."""

import importlib
from functools import cache
from typing import Any

import numpy as np

from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.tree import Tree

FEATURES, DEPTH = 30, 6
NODES, ITERATIONS, N_NEW, N_SHARE, N_MAX = 20, 4, 10, 10, 100
"""As in the paper's experiment, with trees of 127 nodes."""


@cache
def full_tree(estimator_id: EstimatorId) -> Estimator:
    """A full tree with splits of its own for each id."""
    seed = (int(estimator_id.creator.removeprefix("node")), estimator_id.counter)
    rng = np.random.default_rng(seed)
    inner = 2**DEPTH - 1
    total = 2 * inner + 1
    feature = np.full(total, -1)
    feature[:inner] = rng.integers(0, FEATURES, inner)
    threshold, value = np.zeros(total), np.zeros(total)
    threshold[:inner], value[inner:] = rng.normal(size=inner), rng.random(total - inner)
    numbers = np.arange(total)
    left = np.where(numbers < inner, 2 * numbers + 1, -1)
    right = np.where(numbers < inner, 2 * numbers + 2, -1)
    return Estimator(
        estimator_id, Tree.from_arrays(feature, threshold, left, right, value, limits=TreeLimits(FEATURES))
    )


def federation() -> Any:
    """Play a process of twenty nodes of two organisations to its last iteration; returns its recorder."""
    blocks, audited, scenario, memory = (
        importlib.import_module(f"support.memory.{name}")
        for name in ("blocks", "audited", "scenario", "federation")
    )
    names = {f"node{number:02d}": f"Org{1 + number % 2}MSP" for number in range(1, NODES + 1)}
    spec = scenario.changed("nodes", names)
    spec = scenario.changed("steps", 0, "iterations", ITERATIONS, base=spec)
    for name, value in (("n_new", N_NEW), ("n_share", N_SHARE), ("n_max", N_MAX)):
        spec = scenario.changed("steps", 0, "parameters", name, value, base=spec)

    class Player(audited.SmallPlayer):  # type: ignore[misc, name-defined]
        n_new, n_share, n_max = N_NEW, N_SHARE, N_MAX
        make = staticmethod(full_tree)

    found = blocks.record(memory.Federation)(spec)
    found.players = {node: Player(found, node) for node in names}
    for iteration in range(ITERATIONS):
        found.play(iteration)
    return found.recorder


def long_chain(length: int) -> Any:
    """Register image versions, each in a block of its own; returns the recorder."""
    blocks, scenario = (importlib.import_module(f"support.memory.{name}") for name in ("blocks", "scenario"))
    found = blocks.record(scenario.Channel)()
    number = 0
    while len(found.recorder.blocks) < length:
        number += 1
        found.register(version=f"1.0.{number}")
    return found.recorder
