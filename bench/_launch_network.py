"""A network of its own with the learner image, four nodes' rows, and processes on a ring."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import docker

ROOT = Path(__file__).resolve().parents[1]
PROJECT = os.environ.get("ATTESTREE_BENCH_PROJECT", "attestree-bench")
PORTS = os.environ.get("ATTESTREE_BENCH_PORTS", "37")
NODES = {"org1": "node01", "org2": "node06", "org3": "node11", "org4": "node16"}
IMAGE = "attestree/learner"
SECONDS = 1800

EXECUTOR = ".venv/bin/executor"


@dataclass(frozen=True)
class Federation:
    """What the processes of a benchmark have in common."""

    image_id: str
    version: str
    data: Path
    rows: int

    def launch(self, process: str, organisation: str) -> list[str]:
        """Return the command that runs one round of the organisation's node."""
        chosen = ["--process", process, "--organisation", organisation, "--data", f"{self.data}/{{node}}.csv"]
        return [EXECUTOR, "launch", *chosen]

    def start(self, process: str, iterations: int, synchronous: bool) -> str:
        """Propose, accept and start a process; returns its id."""
        spec = self.data / f"{process}.yaml"
        nodes = {node: f"Org{name.removeprefix('org')}MSP" for name, node in NODES.items()}
        spec.write_text(
            json.dumps(
                {
                    "process": process,
                    "organisations": sorted(nodes.values()),
                    "nodes": nodes,
                    "topology": "ring",
                    "image": f"{IMAGE}:{self.version}",
                    "iterations": iterations,
                    "synchronous": synchronous,
                    "n_new": 10,
                    "n_max": 50,
                    "n_share": 10,
                    "seed": 7,
                    "schema_from": str(self.data / "node01.csv"),
                    "label": "Class",
                }
            )
        )
        run(EXECUTOR, "process", "create", "--spec", str(spec))
        for name in NODES:
            _wait_for(process, name)
            run(EXECUTOR, "process", "accept", process, "--spec", str(spec), "--organisation", name)
        run(EXECUTOR, "process", "start", process)
        return process


@contextmanager
def federation() -> Iterator[Federation]:
    """Start the network, publish the image, split made-up rows; remove everything afterwards."""
    os.environ.update(ATTESTREE_PROJECT=PROJECT, ATTESTREE_PORTS=PORTS)
    try:
        run("network/up.sh", "--probe", "--fresh")
        run(EXECUTOR, "image", "build")
        published = json.loads(run(EXECUTOR, "image", "publish", IMAGE, "--json"))
        places = ROOT / "network" / "state" / PROJECT / "rows"
        split = ("experiment", "split", "--synthetic", *(f"--node={node}" for node in NODES.values()))
        run(EXECUTOR, *split, "--out", str(places))
        rows = len((places / "node01.csv").read_bytes().splitlines()) - 1
        yield Federation(published["image_id"], published["version"], places, rows)
    finally:
        run("network/down.sh", "--purge")


def run(*command: str) -> str:
    """Run a command that must succeed; returns what it printed."""
    print(f"running {' '.join(command[:4])}", file=sys.stderr)
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)} exited with {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def _wait_for(process: str, organisation: str) -> None:
    """Return when the organisation's peer has the process too."""
    command = (EXECUTOR, "process", "status", process, "--organisation", organisation)
    end = time.monotonic() + 60
    while subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        if time.monotonic() > end:
            raise SystemExit(f"{organisation} does not hear of {process}")


class LearnerMemory:
    """Follows the learners' containers and keeps the most memory that one of them used."""

    def __init__(self) -> None:
        self.peak = 0
        self._client: Any = docker.from_env()
        self._events = self._client.events(
            decode=True,
            filters={"label": [f"attestree.network={PROJECT}", "attestree.role=learner"], "event": "start"},
        )
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._events.close()
        self._thread.join(10)

    def _follow(self) -> None:
        for event in self._events:
            for sample in self._client.api.stats(event["id"], decode=True, stream=True):
                memory = sample.get("memory_stats", {})
                self.peak = max(self.peak, memory.get("max_usage", memory.get("usage", 0)))
