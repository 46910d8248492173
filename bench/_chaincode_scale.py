"""Two hundred nodes on the contracts in memory: what transactions cost, and whether it grows with the rounds.

The contracts and the shim's context are real; the peer, gRPC and the orderer are not there. Trees are stumps,
of which a node makes new ones in every round: what is measured is the ledger, not learning.
"""

import copy
import importlib
import statistics
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import Tree

NODES, ROUNDS = 200, 100
TREES, KEPT = 10, 50
RECORD, PROCESS = "execution-record", "fraud-2026"
REPEATS = 5


@dataclass
class Timings:
    """Processor time of the transactions of each function, in milliseconds."""

    by_function: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def timed(self, function: str, call: Callable[[], Any]) -> Any:
        """Make a call that must succeed and note its time."""
        began = time.process_time()
        made = call()
        self.by_function[function].append(1000 * (time.process_time() - began))
        if made.status != 200:
            raise SystemExit(f"{function} was refused: {made.message}")
        return made

    def median(self, function: str) -> float:
        """Return the median of a function."""
        return statistics.median(self.by_function[function])

    def worst(self) -> tuple[str, float]:
        """Return the slowest function, by its third slowest call: this program has not the machine alone."""
        slow = {name: sorted(times)[-min(3, len(times))] for name, times in self.by_function.items()}
        name = max(slow, key=lambda each: slow[each])
        return name, slow[name]


def full_round() -> tuple[Timings, int]:
    """Play one round of nodes that are all neighbours; return times, and how much a Complete reads."""
    federation, nodes = _federation({"kind": "full"}, NODES * TREES), Timings()
    players = [_Node(federation, name) for name in federation.players]
    for player in players:
        federation.commit([nodes.timed("OpenTask", lambda: player.open(0))])  # noqa: B023
    for player in players:
        federation.commit([nodes.timed("Share", lambda: player.share(0))])  # noqa: B023
    player = players[0]
    offers = nodes.timed("Offers", lambda: player.ask("Offers", player.name, 0)).json
    for _ in range(REPEATS):
        made = nodes.timed("Complete", lambda: player.complete(0, offers))
    return nodes, len(made.reads)


def many_rounds(rounds: int = ROUNDS) -> Timings:
    """Play a hundred rounds of two hundred nodes on a ring, asking an auditor's questions at the end."""
    federation, found = _federation({"kind": "ring"}, KEPT, rounds), Timings()
    players = [_Node(federation, name) for name in federation.players]
    for iteration in range(rounds):
        print(f"round {iteration + 1} of {rounds}", file=sys.stderr)
        for function in ("open", "share"):
            for player in players:
                call = getattr(player, function)
                federation.commit([found.timed(function, lambda: call(iteration))])  # noqa: B023
        for player in players:
            offers = found.timed("Offers", lambda: player.ask("Offers", player.name, iteration)).json  # noqa: B023
            federation.commit([found.timed("Complete", lambda: player.complete(iteration, offers))])  # noqa: B023
    for function, *arguments in (
        ("GetTask", "node000", rounds - 1),
        ("ListTasks",),
        ("Artifacts",),
        ("Artifacts", rounds - 1),
        ("ArtifactsOf", "Org1MSP"),
        ("ArtifactsOf", "Org1MSP", "node000"),
        ("ArtifactsOf", "Org1MSP", "", rounds - 1),
        ("Slots", "node000"),
        ("Standing", "node000"),
        ("LastResult", "node000"),
        ("Estimators", [f"node000/{number:04d}" for number in range(TREES)]),
        ("Digests", [f"node000/{number:04d}" for number in range(TREES)]),
        ("Twins",),
        ("Lineage", "node000/0000"),
    ):
        for _ in range(REPEATS):
            found.timed(function, lambda: players[0].ask(function, *arguments))  # noqa: B023
    return found


class _Node:
    """A node that takes all it is offered and keeps the newest estimators."""

    def __init__(self, federation: Any, name: str) -> None:
        self.player, self.name = federation.players[name], name
        self.ensemble: dict[EstimatorId, Digest] = {}

    def ask(self, function: str, *arguments: Any) -> Any:
        return self.player.member.endorse(RECORD, function, PROCESS, *arguments)

    def open(self, iteration: int) -> Any:
        return self.player.member.endorse(*self.player.call_open(iteration))

    def share(self, iteration: int) -> Any:
        raw = Share(_fitted(self.name, iteration)).to_bytes()
        arguments, options = self.player.signed("Share", raw)
        return self.player.member.endorse(*arguments, **options)

    def complete(self, iteration: int, offers: Any) -> Any:
        own = {item.id: item.tree.digest for item in _fitted(self.name, iteration)}
        slots: list[SlotRead] = []
        taken: dict[EstimatorId, Digest] = {}
        for slot in offers["slots"]:
            ids = tuple(EstimatorId.parse(text) for text in slot["ids"])
            slots.append(SlotRead(slot["sender"], slot["iteration"], Digest.parse(slot["share"]), ids))
            taken |= {item.id: item.tree.digest for item in _fitted(slot["sender"], iteration)}
        limit = max(KEPT, len(own) + len(taken)) if not self.ensemble else KEPT
        kept = dict(sorted((own | taken | self.ensemble).items(), key=lambda pair: -pair[0].counter)[:limit])
        state = Digest.of(f"{self.name} {iteration}".encode())
        result = TaskResult(
            iteration * TREES,
            tuple(own.values()),
            tuple(slots),
            tuple(sorted(kept)),
            ensemble_digest(list(kept.items())),
            state,
            {"auc": "0.97"},
        )
        arguments, options = self.player.signed("Complete", result.to_bytes())
        made = self.player.member.endorse(*arguments, **options)
        self.after = kept, state
        self.ensemble, self.player.state = kept, state
        return made


@cache
def _fitted(node: str, iteration: int) -> tuple[Estimator, ...]:
    made = []
    for number in range(TREES):
        counter = iteration * TREES + number
        threshold = int.from_bytes(Digest.of(f"{node} {counter}".encode()).raw[:4], "big") / 2**32
        tree = Tree.from_arrays([0, -1, -1], [threshold, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [0.0, 0.0, 1.0])
        made.append(Estimator(EstimatorId(node, counter), tree))
    return tuple(made)


def _federation(topology: dict[str, Any], n_max: int, rounds: int = 1) -> Any:
    """Make the test kit's channel in memory with a running process of two hundred nodes."""
    kit = importlib.import_module("support.memory.federation")

    class Indexed(kit.Federation):  # type: ignore[misc, name-defined]
        """A channel whose ranges are looked up, as a peer's database does, not searched for."""

        index: tuple[int, dict[str, list[str]]] = (-1, {})

        def keys(self, namespace: str, start: str, end: str) -> list[str]:
            if self.index[0] != len(self.state):
                spaces: dict[str, list[str]] = defaultdict(list)
                for space, key in sorted(self.state):
                    spaces[space].append(key)
                self.index = len(self.state), spaces
            known = self.index[1][namespace]
            return known[bisect_left(known, start) : bisect_left(known, end) if end else None]

    specification = copy.deepcopy(kit.SPECIFICATION)
    specification["nodes"] = {f"node{number:03d}": f"Org{1 + number % 2}MSP" for number in range(NODES)}
    specification["topology"] = topology
    specification["steps"][0]["iterations"] = rounds
    specification["steps"][0]["parameters"] |= {"n_new": TREES, "n_share": TREES, "n_max": n_max}
    return Indexed(specification)
