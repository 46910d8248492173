"""Two hundred nodes on the contracts in memory: what transactions cost, and whether it grows with the rounds.

The contracts and the shim's context are real; the peer, gRPC and the orderer are not there. Trees are stumps,
of which a node makes new ones in every round: what is measured is the ledger, not learning.
"""

import copy
import gc
import importlib
import signal
import statistics
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import Tree

NODES, ROUNDS = 200, 100
TREES, KEPT = 10, 50
RECORD, PROCESS = "execution-record", "fraud-2026"
REPEATS = 5
OTHERS = 1000


@dataclass
class Timings:
    """Processor time of the transactions of each function, in milliseconds, without that of the client."""

    by_function: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def endorse(self, member: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Have a call endorsed that must succeed, and note its time."""
        began = time.process_time()
        made = member.endorse(*arguments, **options)
        self.by_function[arguments[1]].append(1000 * (time.process_time() - began))
        if made.status != 200:
            raise SystemExit(f"{arguments[1]} was refused: {made.message}")
        return made

    def median(self, function: str) -> float:
        """Return the median of a function."""
        return statistics.median(self.by_function[function])

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return sum(map(len, self.by_function.values()))

    def worst(self) -> tuple[str, float]:
        """Return the function of the longest call, and how long that took."""
        longest = {name: max(times) for name, times in self.by_function.items()}
        name = max(longest, key=lambda each: longest[each])
        return name, longest[name]


def full_round() -> tuple[Timings, int]:
    """Play a round of nodes that are all neighbours, to its first Complete; return times and its reads."""
    federation, found = _federation({"kind": "full"}), Timings()
    nodes = [_Node(federation, name, found) for name in federation.players]
    for node in nodes:
        federation.commit([node.open(0)])
    for node in nodes:
        federation.commit([node.share(0)])
    for _ in range(REPEATS):
        made = nodes[0].complete(0)
    return found, len(made.reads)


def many_rounds(rounds: int = ROUNDS) -> tuple[Timings, int]:
    """Play rounds of two hundred nodes on a ring, and ask an auditor's questions at the end.

    Ctrl-C ends it after the round that is being played; the times come with how many were.
    """
    stops: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: stops.append(number))
    try:
        return _many_rounds(rounds, stops)
    finally:
        signal.signal(signal.SIGINT, before)


def _many_rounds(rounds: int, stops: list[int]) -> tuple[Timings, int]:
    federation, found = _federation({"kind": "ring"}, rounds), Timings()
    nodes = [_Node(federation, name, found) for name in federation.players]
    for iteration in range(rounds):
        began = time.process_time()
        for node in nodes:
            federation.commit([node.open(iteration)])
        for node in nodes:
            federation.commit([node.share(iteration)])
        for node in nodes:
            federation.commit([node.complete(iteration)])
        # What the channel in memory keeps is a peer's: no chaincode's collector walks through it.
        gc.freeze()
        _fitted.cache_clear()
        name, longest = found.worst()
        taken = f"{time.process_time() - began:.1f} s, longest call so far {name} with {longest:.1f} ms"
        print(f"round {iteration + 1} of {rounds}: {taken}", file=sys.stderr, flush=True)
        if stops:
            break
    last = iteration
    federation.keys(RECORD, "", "")  # makes the index, which a peer's database has all the time
    gc.freeze()
    first = [f"node000/{number:04d}" for number in range(TREES)]
    for question in (
        ("GetTask", "node000", last),
        ("ListTasks",),
        ("Artifacts",),
        ("Artifacts", last),
        ("ArtifactsOf", "Org1MSP"),
        ("ArtifactsOf", "Org1MSP", "node000"),
        ("ArtifactsOf", "Org1MSP", "", last),
        ("Slots", "node000"),
        ("Standing", "node000"),
        ("LastResult", "node000"),
        ("Estimators", first),
        ("Digests", first),
        ("Twins",),
        ("Lineage", first[0]),
    ):
        for _ in range(REPEATS):
            nodes[0].ask(*question)
    for skip in ("", str(last // 2)):
        for _ in range(REPEATS):
            nodes[0].history(skip)
    _ask_for_lists(federation, found)
    return found, last + 1


def _ask_for_lists(federation: Any, found: Timings) -> None:
    """Ask what runs, and for one organisation's images, where a thousand entries of others come first."""
    brief, image = keys.brief("running", PROCESS), keys.image("attestree/learner", "1.0.0")
    places = (("orchestration", brief, PROCESS), ("image", image, "1.0.0"))
    for chaincode, key, name in places:
        raw = federation.state[chaincode, key]
        for number in range(OTHERS):
            other = f"0{number:05d}"
            made = raw.replace(name.encode(), other.encode())
            federation.state[chaincode, key.replace(name, other)] = made
    federation.keys(RECORD, "", "")  # makes the index anew
    for call in (("orchestration", "List", "running"), ("image", "List", "Org2MSP")):
        for _ in range(REPEATS):
            found.endorse(federation.auditor1, call, {})


class _Node:
    """A node that takes all it is offered and keeps the newest estimators."""

    def __init__(self, federation: Any, name: str, timings: Timings) -> None:
        self.player, self.name, self.timings = federation.players[name], name, timings
        self.ensemble: dict[EstimatorId, Digest] = {}

    def ask(self, function: str, *arguments: Any) -> Any:
        return self._endorse((RECORD, function, PROCESS, *arguments), {})

    def history(self, bookmark: str) -> Any:
        """Ask how this node stood after each of its tasks, from a bookmark on."""
        return self._endorse((RECORD, "History", "head", [PROCESS, self.name], 10, bookmark), {})

    def open(self, iteration: int) -> Any:
        return self._endorse(self.player.call_open(iteration), {})

    def share(self, iteration: int) -> Any:
        return self._endorse(*self.player.signed("Share", Share(_fitted(self.name, iteration)).to_bytes()))

    def complete(self, iteration: int) -> Any:
        offers = self.ask("Offers", self.name, iteration).json
        own = {item.id: item.tree.digest for item in _fitted(self.name, iteration)}
        slots: list[SlotRead] = []
        taken: dict[EstimatorId, Digest] = {}
        for slot in offers["slots"]:
            ids = tuple(EstimatorId.parse(text) for text in slot["ids"])
            slots.append(SlotRead(slot["sender"], slot["iteration"], Digest.parse(slot["share"]), ids))
            taken |= {item.id: item.tree.digest for item in _fitted(slot["sender"], iteration)}
        known = own | taken | self.ensemble
        kept = dict(sorted(known.items(), key=lambda pair: -pair[0].counter)[:KEPT])
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
        self.ensemble, self.player.state = kept, state
        return self._endorse(*self.player.signed("Complete", result.to_bytes()))

    def _endorse(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        return self.timings.endorse(self.player.member, arguments, options)


@cache
def _fitted(node: str, iteration: int) -> tuple[Estimator, ...]:
    made = []
    for number in range(TREES):
        counter = iteration * TREES + number
        threshold = int.from_bytes(Digest.of(f"{node} {counter}".encode()).raw[:4], "big") / 2**32
        tree = Tree.from_arrays([0, -1, -1], [threshold, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [0.0, 0.0, 1.0])
        made.append(Estimator(EstimatorId(node, counter), tree))
    return tuple(made)


def _federation(topology: dict[str, Any], rounds: int = 1) -> Any:
    """Make the test kit's channel in memory with a running process of two hundred nodes."""
    kit = importlib.import_module("support.memory.federation")

    class Indexed(kit.Federation):  # type: ignore[misc, name-defined]
        """A channel whose ranges are looked up, as a peer's database does, not searched for.

        It forgets what nobody asks about here: events, and the history of everything but heads.
        """

        index: tuple[int, dict[str, list[str]]] = (-1, {})

        def commit(self, block: Sequence[Any]) -> Any:
            verdicts = super().commit(block)
            for tx in block:
                for place in tx.writes:
                    if not place[1].startswith("\0head\0"):
                        self.changes.pop(place, None)
            self.events.clear()
            return verdicts

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
    specification["steps"][0]["parameters"] |= {"n_new": TREES, "n_share": TREES, "n_max": KEPT}
    return Indexed(specification)
