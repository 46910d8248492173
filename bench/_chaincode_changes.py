"""A process that has changed a thousand times on the contracts in memory: what a task's terms cost then."""

import importlib
import statistics
import time
from typing import Any

CHANGES, REPEATS = 1_000, 51
PROCESS = "fraud-2026"


def context_milliseconds(changes: int = CHANGES) -> float:
    """Return the median processor time of TaskContext after so many changes that hold and as many asks."""
    # The test kit's channel in memory: the contracts and the shim's context are real, gRPC is not there.
    scenario: Any = importlib.import_module("support.memory.scenario")
    channel = scenario.Channel()
    channel.running(scenario.changed("steps", 0, "iterations", changes + 10))
    for number in range(changes):
        kind = {"kind": ("full", "ring")[number % 2]}
        asked = channel.scientist1.submit("orchestration", "ChangeTopology", PROCESS, number + 1, kind)
        channel.agree(channel.scientist2, asked)
        channel.scientist2.submit("orchestration", "ChangeTopology", PROCESS, number + 1, kind)
    times = []
    for number in range(REPEATS):
        iteration = number * changes // REPEATS
        began = time.process_time()
        channel.context("node01", iteration)
        times.append(1000 * (time.process_time() - began))
    return statistics.median(times)
