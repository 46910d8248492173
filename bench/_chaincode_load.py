"""Throughput of three chaincodes that take turns, each round compared by itself."""

import json
import statistics
import subprocess
from dataclasses import dataclass

from bench._chaincode_network import (
    ENVIRONMENT,
    GO,
    NODE,
    PYTHON,
    ROOT,
    Network,
    memory,
    processor_seconds,
    run,
    say,
)

CHAINCODES = (PYTHON, GO, NODE)
KEYS = 1000
_DRAIN_SECONDS = 60
"""How long the last calls of a slice may take; the gateway's own deadlines are shorter."""


@dataclass(frozen=True)
class Scenario:
    """One kind of load; the chaincodes take turns in slices, first, second and third equally often."""

    operation: str
    size: int = 100
    clients: int = 1
    seconds: float = 1.0
    rounds: int = 6

    @property
    def label(self) -> str:
        """The words of the report."""
        if self.operation in ("writes", "reads"):
            return f"{KEYS:,} {self.operation} in one transaction"
        clients = "1 client" if self.clients == 1 else f"{self.clients} clients"
        return f"{self.operation} {self.size // 1000} kB, {clients}"

    def flags(self, chaincodes: tuple[str, ...] = CHAINCODES) -> tuple[str, ...]:
        """Return the load program's flags."""
        return (
            "-chaincodes", ",".join(chaincodes), "-operation", self.operation, "-size", str(self.size),
            "-clients", str(self.clients), "-seconds", str(self.seconds), "-rounds", str(self.rounds),
            "-keys", str(KEYS),
        )  # fmt: skip


@dataclass(frozen=True)
class Slice:
    """What one chaincode did in one stretch of time."""

    chaincode: str
    round: int
    done: int
    failed: int
    seconds: float
    median_ms: float

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.done / self.seconds


@dataclass(frozen=True)
class Outcome:
    """All slices of a scenario, and the processor time of each chaincode in it."""

    scenario: Scenario
    slices: tuple[Slice, ...]
    processor: dict[str, float]

    def rate(self, chaincode: str) -> float:
        """Return the median of the slices' rates."""
        return statistics.median(piece.rate for piece in self._of(chaincode))

    def milliseconds(self, chaincode: str) -> float:
        """Return the median of the slices' median times."""
        return statistics.median(piece.median_ms for piece in self._of(chaincode))

    def processor_ms(self, chaincode: str) -> float:
        """Return the processor time of one call in the chaincode's own process."""
        return 1000 * self.processor[chaincode] / sum(piece.done for piece in self._of(chaincode))

    def rate_ratio(self, other: str) -> float:
        """Return the probe's rate over the other's: the median of the rounds, each compared by itself."""
        return statistics.median(self._rate_ratios(other))

    def spread(self, other: str) -> str:
        """Return the lowest and the highest of the rounds' ratios: how much the median is worth."""
        found = self._rate_ratios(other)
        return f"{min(found):.2f} to {max(found):.2f}"

    def time_ratio(self, other: str) -> float:
        """Return the probe's time over the other's: the median of the rounds, each compared by itself."""
        pairs = zip(self._of(PYTHON), self._of(other), strict=True)
        return statistics.median(mine.median_ms / its.median_ms for mine, its in pairs)

    def _rate_ratios(self, other: str) -> list[float]:
        pairs = zip(self._of(PYTHON), self._of(other), strict=True)
        return [mine.rate / its.rate for mine, its in pairs]

    def _of(self, chaincode: str) -> list[Slice]:
        return [piece for piece in self.slices if piece.chaincode == chaincode]


def load(network: Network, scenario: Scenario) -> Outcome:
    """Run a scenario; a call that fails ends the benchmark, as rates with failures say nothing."""
    say(f"{scenario.label}: {scenario.rounds} rounds")
    turns = scenario.rounds * len(CHAINCODES)
    before = processor_seconds()
    answer = run(
        *network.command("rate", *scenario.flags()), seconds=turns * (scenario.seconds + _DRAIN_SECONDS)
    )
    after = processor_seconds()
    slices = tuple(Slice(**json.loads(line)) for line in answer.splitlines())
    for piece in slices:
        if piece.failed or not piece.done:
            raise SystemExit(f"{scenario.label}: {piece.failed} calls of {piece.chaincode} failed")
    outcome = Outcome(scenario, slices, {name: after[name] - before[name] for name in CHAINCODES})
    say("  " + ", ".join(f"{name} {outcome.rate(name):.1f}/s" for name in CHAINCODES))
    return outcome


def memory_under(network: Network, scenario: Scenario) -> dict[str, float]:
    """Load one chaincode after the other and return the most memory its container was seen to take."""
    most = {}
    for name in CHAINCODES:
        say(f"memory of {name} under {scenario.label}")
        command = network.command("rate", *scenario.flags((name,)))
        with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as loading:
            seen = [memory()[name]]
            while loading.poll() is None:
                seen.append(memory()[name])
        if loading.returncode != 0:
            raise SystemExit(f"loading {name} exited with {loading.returncode}")
        most[name] = max(seen)
    return most
