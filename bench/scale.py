"""The rules of the ledger with two hundred nodes and a hundred rounds, on the contracts in memory.

It needs no network. Garbage is collected as in the service: what the service is made of is frozen, and so is
the channel in memory, which is a peer's and no chaincode's.
"""

import gc
import time

from bench._chaincode_changes import CHANGES, context_milliseconds
from bench._chaincode_scale import NODES, ROUNDS, Timings, full_round, many_rounds
from bench.report import Goal, Report
from chaincode.service import freeze

LONGEST_MS = 100


def measure() -> Report:
    """Measure a round of neighbours, many rounds on a ring, the audit's questions, and a changed process."""
    before, after = _collections()
    full, reads = full_round()
    context = context_milliseconds()
    rounds, played = many_rounds()
    slowest, longest = rounds.worst()
    complete = f"COMPLETE where {NODES} nodes are all neighbours, processor time (ms)"
    longest_call = f"longest call of {rounds.calls:,} over {played} rounds of {NODES} nodes (ms)"
    return Report(
        title=f"Scale: the contracts in memory, {NODES} nodes",
        figures={
            "keys that a COMPLETE among neighbours reads": reads,
            **_by_function(full, "where all are neighbours"),
            **_by_function(rounds, f"over {played} rounds"),
            "whose call was the longest": slowest,
            "a garbage collection of the service as it was loaded (ms)": before,
            "a garbage collection of the service as it runs (ms)": after,
        },
        goals=[
            Goal(complete, 40, "at most", full.median("Complete")),
            Goal(longest_call, LONGEST_MS, "at most", longest),
            Goal("rounds played", ROUNDS, "at least", played),
            Goal(f"TaskContext after {CHANGES} changes, processor time (ms)", 5, "at most", context),
        ],
    )


def _collections() -> tuple[float, float]:
    """Return what a whole garbage collection takes before the service freezes itself, and after."""
    gc.collect()
    before = _collection()
    freeze()
    return before, _collection()


def _collection() -> float:
    began = time.process_time()
    gc.collect()
    return 1000 * (time.process_time() - began)


def _by_function(found: Timings, when: str) -> dict[str, float | str]:
    """Give the median and the longest call of each function."""
    return {
        f"{name} {when}, median and longest call (ms)": f"{found.median(name):.2f}, {max(times):.1f}"
        for name, times in found.by_function.items()
    }
