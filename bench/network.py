"""How long the network takes to start, again and again, what it weighs, and what each consensus costs.

There is no peer to compare with: Fabric's own test network starts two organisations and enrols nobody. Raft
and BFT are compared with each other: both networks are up at once and take turns, so that what else the
machine does hits both. `--quick` is a small instance: it shows that the benchmark works and measures nothing.
"""

import importlib
import os
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from bench.report import Goal, Report
from executor.network import BFT, RAFT, Network

ROOT = Path(__file__).resolve().parents[1]
# Networks of their own, so that one that is running is left alone.
PORTS = {RAFT: 37, BFT: 38}
ORDERERS = {RAFT: 3, BFT: 4}
LONGEST = 1800
"""Seconds that any command of it may take."""
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
VALUE = "x" * 1000


@dataclass(frozen=True)
class Scale:
    """How large the networks are, and how much they are asked for."""

    organisations: int = 4
    nodes: int = 20
    rounds: int = 4
    single: int = 20
    """Transactions of one client, one after the other, in each round."""
    clients: int = 60
    each: int = 10
    """Transactions of each of many clients at once, in each round."""


QUICK = Scale(organisations=2, nodes=2, rounds=1, single=3, clients=6, each=2)


@dataclass
class Measured:
    """What was measured of one network."""

    consensus: str
    scale: Scale
    fresh: float = 0.0
    again: float = 0.0
    restart: float = 0.0
    memory: dict[str, float] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    """The median of each round, in seconds."""
    longest: list[float] = field(default_factory=list)
    """Of many clients at once, how long the slowest twentieth of the transactions took at least."""
    rates: list[float] = field(default_factory=list)
    loaded: dict[str, float] = field(default_factory=dict)
    """Memory after all rounds."""

    @property
    def project(self) -> str:
        """The network's name."""
        return f"attestree-bench-{self.consensus}"

    @property
    def network(self) -> Network:
        """The network, as the executor knows it."""
        state = ROOT / "network" / "state" / self.project
        sizes = (self.scale.organisations, ORDERERS[self.consensus], self.scale.nodes)
        return Network(self.project, state, *sizes, "", PORTS[self.consensus], self.consensus)

    def run(self, *command: str) -> str:
        """Run a command on this network that must succeed; returns what it printed."""
        settings = {"ATTESTREE_PROJECT": self.project, "ATTESTREE_PORTS": str(PORTS[self.consensus])}
        environment = {**os.environ, **settings}
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
        if ran.returncode != 0:
            raise SystemExit(f"{' '.join(command)} exited with {ran.returncode}\n{ran.stderr}")
        return ran.stdout

    def start(self, *options: str) -> float:
        """Make this network anew; returns the seconds."""
        size = ("--orgs", str(self.scale.organisations), "--nodes", str(self.scale.nodes))
        return self.timed("network/up.sh", "--consensus", self.consensus, *size, "--fresh", *options)

    def timed(self, *command: str) -> float:
        """Run a command and return its seconds."""
        print(f"{self.consensus}: {' '.join(command[:2])}", file=sys.stderr)
        began = time.monotonic()
        self.run(*command)
        return time.monotonic() - began


def measure(quick: bool = False) -> Report:
    """Start both networks, weigh them idle, let them take turns under load, stop and start them."""
    scale = QUICK if quick else Scale()
    raft, bft = both = Measured(RAFT, scale), Measured(BFT, scale)
    raft.run("scripts/bootstrap")
    try:
        _build(raft)
        for one in both:
            one.fresh = one.start("--probe")
        for one in both:
            one.again = one.timed("network/up.sh")
            one.memory = _memory(one)
        for place in range(scale.rounds):
            for one in both if place % 2 else reversed(both):
                _load(one)
        for one in both:
            one.loaded = _memory(one)
        for one in both:
            one.run("network/down.sh")
            one.restart = one.timed("network/up.sh")
    finally:
        for one in both:
            one.run("network/down.sh", "--purge")
    return _report(raft, bft)


def _build(one: Measured) -> None:
    """Start once outside the measurement, so that whatever is not built yet is built."""
    one.start()
    one.run("network/down.sh", "--purge")


def _load(one: Measured) -> None:
    """One transaction after another, then many clients at once."""
    network, scale, kit = one.network, one.scale, importlib.import_module("support.gateway")
    with ExitStack() as stack:
        owners = [f"org{i % scale.organisations + 1}" for i in range(scale.clients)]
        clients = [stack.enter_context(closing(kit.Gateway(network, owner))) for owner in owners]
        one.latencies.append(statistics.median(_submit(clients[0]) for _ in range(scale.single)))
        began = time.monotonic()
        with ThreadPoolExecutor(scale.clients) as pool:
            took = sorted(pool.map(_submit, clients * scale.each))
        one.rates.append(len(took) / (time.monotonic() - began))
        one.longest.append(took[len(took) * 19 // 20])
    print(f"{one.consensus}: {one.latencies[-1]:.3f} s, {one.rates[-1]:.1f}/s", file=sys.stderr)


def _submit(client: Any) -> float:
    """Put a value of its own key and wait for the block; returns the seconds."""
    began = time.monotonic()
    tx_id, envelope, _ = client.endorse("probe", "put", os.urandom(8).hex(), VALUE)
    try:
        client.order(tx_id, envelope)
    except importlib.import_module("support.gateway").GatewayError as error:
        # A peer says so, too, when BFT orderers had a transaction from each other before they had it from it.
        if error.status is not grpc.StatusCode.UNAVAILABLE:
            raise
    committed = client.committed(tx_id)
    if committed.code != 0:
        raise SystemExit(f"a transaction came to nothing: code {committed.code}")
    return time.monotonic() - began


def _report(raft: Measured, bft: Measured) -> Report:
    scale, clients = raft.scale, raft.scale.clients
    weights = {one.consensus: sum(one.memory.values()) for one in (raft, bft)}
    loaded = {one.consensus: sum(one.loaded.values()) for one in (raft, bft)}
    ratios = {
        "fresh start, bft / raft": bft.fresh / raft.fresh,
        "one submit, committed, bft / raft": _ratio(bft.latencies, raft.latencies),
        f"submits of 1 kB by {clients} clients per s, bft / raft": _ratio(bft.rates, raft.rates),
        f"slowest twentieth among {clients} clients, bft / raft": _ratio(bft.longest, raft.longest),
        "memory of the idle network, bft / raft": weights[BFT] / weights[RAFT],
        "memory after the load, bft / raft": loaded[BFT] / loaded[RAFT],
    }
    figures: dict[str, float] = {}
    for one in (raft, bft):
        figures |= {
            f"{one.consensus}: fresh start, images present (s)": one.fresh,
            f"{one.consensus}: second start of a running network (s)": one.again,
            f"{one.consensus}: start of a stopped network, ledger kept (s)": one.restart,
            f"{one.consensus}: one submit, committed (s)": statistics.median(one.latencies),
            f"{one.consensus}: submits of 1 kB by {clients} clients per s": statistics.median(one.rates),
            f"{one.consensus}: slowest twentieth among {clients} clients (s)": statistics.median(one.longest),
            f"{one.consensus}: memory of the idle network, all containers (GB)": weights[one.consensus] / 1e9,
            f"{one.consensus}: memory after the load (GB)": loaded[one.consensus] / 1e9,
        }
        kinds = sorted(one.memory.items())
        figures |= {f"{one.consensus}: of which {kind} (MB)": value / 1e6 for kind, value in kinds}
    return Report(
        title=f"Network: {scale.organisations} organisations with 3 orderers (raft) or 4 (bft),"
        f" {scale.nodes} enrolled nodes",
        ratios=ratios,
        figures=figures,
        goals=[
            Goal("raft: fresh start (s)", 45, "at most", raft.fresh),
            Goal("raft: memory of the idle network (GB)", 1.5, "at most", weights[RAFT] / 1e9),
        ],
    )


def _ratio(mine: list[float], its: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(mine, its, strict=True))


def _memory(one: Measured) -> dict[str, float]:
    """Sum the containers' memory by kind of service."""
    listed = one.run(
        "docker", "ps", "--filter", f"label=attestree.network={one.project}", "--format", "{{.Names}}"
    )
    answer = one.run("docker", "stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}", *listed.split())
    sums: dict[str, float] = {}
    for line in answer.splitlines():
        found = re.match(rf"{one.project}-([a-z]+)\S* ([\d.]+)(\w+)", line)
        if found:
            kind, number, unit = found.groups()
            sums[kind] = sums.get(kind, 0.0) + float(number) * UNITS[unit]
    return sums
