"""What `executor launch` costs beyond the learner's own computing, against a bare run of the same image.

The peer is `docker run` of the learner image, which starts it, lets it load its packages and refuse the empty
key, and removes it; and a run of the same image that imports two of these packages and nothing of ours. A
launch adds the sandbox, the broker and three commits: open, SHARE, complete. The one node that is measured
takes part in an asynchronous process, so that it waits for nobody.

Its container is created while the task is opened and removed while the node goes on, so neither is in what
its start is said to take, while `docker run` counts both; the round as a whole counts everything.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench._launch_network import NODES, Federation, LearnerMemory, federation, run
from bench.report import Goal, Report
from executor.ledger.gateway_transport import GatewayTransport
from executor.network import CHANNEL, Network

ITERATIONS = 5
BARE_RUNS = 5
COMMITS = 15
TOGETHER = 3
START = (
    "container and learner's start once the task is open / a container that imports numpy and cryptography"
)
WHOLE = "round of one node / (bare run + 3 commits)"


def measure() -> Report:
    """Measure on a network of its own: bare runs, commits, single rounds, then four nodes at once."""
    with federation() as running, tempfile.TemporaryDirectory() as directory:
        bare = statistics.median(_bare_run(running.image_id) for _ in range(BARE_RUNS))
        imports = statistics.median(_import_run(running.image_id) for _ in range(BARE_RUNS))
        commit = _commit_seconds()
        process = running.start("alone", iterations=ITERATIONS, synchronous=False)
        with LearnerMemory() as memory:
            rounds = [_launch(running, process, Path(directory)) for _ in range(ITERATIONS)]
        together = running.start("together", iterations=TOGETHER, synchronous=True)
        four = statistics.median(_all_at_once(running, together) for _ in range(TOGETHER))
        sizes = _transaction_sizes([each["transactions"] for each in rounds])
    wall = statistics.median(each["wall"] for each in rounds)
    learner = statistics.median(each["learner_seconds"] for each in rounds)
    beyond = statistics.median(each["wall"] - each["learner_seconds"] for each in rounds)
    asks = statistics.median(each["parts"]["container"] + each["parts"]["imports"] for each in rounds)
    allowed, whole = 2 * bare + 3 * commit, bare + 3 * commit
    return Report(
        title="Launch: one round of a node",
        ratios={
            "cost beyond the learner / (2 bare runs + 3 commits)": beyond / allowed,
            "cost beyond the learner / bare run": beyond / bare,
            START: asks / imports,
            WHOLE: wall / whole,
            "four nodes at once / one node": four / wall,
        },
        figures={
            "round of one node, the command from start to end (s)": wall,
            "of which the learner computes (s)": learner,
            "cost beyond the learner (s)": beyond,
            "bare docker run of the image (s)": bare,
            "docker run that imports numpy and cryptography (s)": imports,
            "container and learner's start, from the open task to the first question, and its end (s)": asks,
            **{
                f"of a round, {name} (s)": statistics.median(each["parts"][name] for each in rounds)
                for name in rounds[0]["parts"]
            },
            "one commit (s)": commit,
            "round of four nodes at once on this host (s)": four,
            **{f"bytes of the {name} transaction": size for name, size in sizes.items()},
            "bytes written per round": sum(sizes.values()),
            "peak memory of the executor (MB)": max(each["memory"] for each in rounds) / 1e6,
            "peak memory of the learner (MB)": memory.peak / 1e6,
            "rows of the node": running.rows,
        },
        goals=[
            Goal("cost beyond the learner / (2 bare runs + 3 commits)", 1.0, "at most", beyond / allowed),
            Goal(START, 1.5, "at most", asks / imports),
            Goal(WHOLE, 1.0, "at most", wall / whole),
        ],
    )


def _bare_run(image_id: str) -> float:
    return _docker_run(69, "--interactive", image_id)


def _import_run(image_id: str) -> float:
    program = ("-I", "-B", "-c", "import numpy, cryptography")
    return _docker_run(0, "--entrypoint", "/opt/venv/bin/python", image_id, *program)


def _docker_run(code: int, *words: str) -> float:
    command = ("docker", "run", "--rm", "--network", "none", *words)
    began = time.monotonic()
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    if ran.returncode != code:
        raise SystemExit(f"{' '.join(command)} ended with {ran.returncode}\n{ran.stderr}")
    return took


def _commit_seconds() -> float:
    gateway = GatewayTransport.connect(Network.load(), "org1", "node01")
    try:
        times = []
        for number in range(COMMITS):
            began = time.monotonic()
            gateway.submit("probe", "put", f"bench-{number}", "value")
            times.append(time.monotonic() - began)
        return statistics.median(times)
    finally:
        gateway.close()


def _launch(running: Federation, process: str, directory: Path) -> dict[str, Any]:
    """Run one round and return its summary, with the time and the memory of the whole command."""
    out = directory / "launch.json"
    command = [*running.launch(process, "org1"), "--json"]
    began = time.monotonic()
    with out.open("wb") as file:
        started = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(started.pid, 0)
    wall = time.monotonic() - began
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed\n{out.read_text()}")
    summary: dict[str, Any] = json.loads(out.read_bytes())["nodes"][0]["rounds"][0]
    return {**summary, "wall": wall, "memory": usage.ru_maxrss * 1024}


def _all_at_once(running: Federation, process: str) -> float:
    began = time.monotonic()
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen(running.launch(process, name), **quiet) for name in NODES]
    if any(each.wait() != 0 for each in started):
        raise SystemExit(run(".venv/bin/executor", "process", "status", process))
    return time.monotonic() - began


def _transaction_sizes(rounds: list[dict[str, str]]) -> dict[str, float]:
    """The median size of each kind of transaction, as it stands in its block."""
    gateway = GatewayTransport.connect(Network.load(), "org1", "node01")
    try:
        return {
            kind: statistics.median(
                len(gateway.evaluate("qscc", "GetTransactionByID", CHANNEL, each[kind])) for each in rounds
            )
            for kind in rounds[0]
        }
    finally:
        gateway.close()
