"""A network of its own with the probe and its two counterparts, in Go and in Node."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT, PORTS = "attestree-bench-cc", "39"
ENVIRONMENT = {**os.environ, "ATTESTREE_PROJECT": PROJECT, "ATTESTREE_PORTS": PORTS}
STATE = ROOT / "network" / "state" / PROJECT
NODES = 20
PYTHON, GO, NODE = "probe", "bench-go", "bench-node"
CONTAINERS = {
    PYTHON: f"{PROJECT}-chaincode.org1-1",
    GO: f"{PROJECT}-bench-go.org1",
    NODE: f"{PROJECT}-bench-node.org1",
}
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_START_SECONDS, _SHORT_SECONDS = 1800, 120


@dataclass(frozen=True)
class Network:
    """A running network, and the program that loads it."""

    program: Path

    def command(self, verb: str, *flags: str) -> list[str]:
        """Return a command of the load program on this network."""
        return [str(self.program), verb, str(STATE), PORTS, *flags]


@contextmanager
def network() -> Iterator[Network]:
    """Start two organisations with one orderer and all three chaincodes; remove everything afterwards."""
    try:
        say("starting the network")
        up = ("network/up.sh", "--probe", "--fresh", "--orgs", "2", "--orderers", "1", "--nodes", str(NODES))
        run(*up, seconds=_START_SECONDS)
        say("deploying the Go and the Node chaincode")
        yield Network(Path(run("bench/peers/deploy.sh", seconds=_START_SECONDS).split()[-1]))
    finally:
        say("removing the network")
        run("network/down.sh", "--purge")


def run(*command: str, seconds: float = _SHORT_SECONDS) -> str:
    """Run a command that must succeed from the repository's root; returns what it printed."""
    ran = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=seconds
    )
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command[:2])} exited with {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def memory() -> dict[str, float]:
    """Return the bytes each chaincode's container of the first organisation takes now."""
    answer = run(
        "docker", "stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}", *CONTAINERS.values()
    )
    found = dict(line.split(maxsplit=1) for line in answer.splitlines())
    return {name: _bytes(found[container]) for name, container in CONTAINERS.items()}


def processor_seconds() -> dict[str, float]:
    """Return the processor time each chaincode's process of the first organisation has used."""
    return {name: _used(container) for name, container in CONTAINERS.items()}


def _used(container: str) -> float:
    process = run("docker", "inspect", "-f", "{{.State.Pid}}", container).strip()
    # The name, in parentheses, may hold spaces; user and system time are the 12th and 13th field after it.
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bytes(text: str) -> float:
    found = re.match(r"([\d.]+)([KMG]?i?B)", text)
    if found is None:
        raise SystemExit(f"docker stats printed {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)
