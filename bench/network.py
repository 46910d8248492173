"""How long the network takes to start, again and again, and what it weighs.

There is no peer to compare with: Fabric's own test network starts two organisations and enrols nobody.
The figures therefore stand alone, with goals for a machine of two cores.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from bench.report import Goal, Report

ROOT = Path(__file__).resolve().parents[1]
# A network of its own, so that one that is running is left alone.
ENVIRONMENT = {**os.environ, "ATTESTREE_PROJECT": "attestree-bench", "ATTESTREE_PORTS": "37"}
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def measure() -> Report:
    """Start a fresh network with all images present, start it again, stop and start it; weigh it idle."""
    _run("scripts/bootstrap")
    try:
        # Whatever is not built yet is built here, outside the measurement.
        _timed("network/up.sh", "--probe", "--fresh")
        fresh = _timed("network/up.sh", "--probe", "--fresh")
        again = _timed("network/up.sh")
        commit = _timed(*_invocation())
        memory = _memory()
        _timed("network/down.sh")
        restart = _timed("network/up.sh")
    finally:
        _run("network/down.sh", "--purge")
    return Report(
        title="Network: 4 organisations, 3 orderers, 20 enrolled nodes",
        figures={
            "fresh start, images present (s)": fresh,
            "second start of a running network (s)": again,
            "start of a stopped network, ledger kept (s)": restart,
            "one invoke with the peer CLI, committed (s)": commit,
            "memory of the idle network, all containers (GB)": sum(memory.values()) / 1e9,
            **{f"of which {kind} (MB)": value / 1e6 for kind, value in sorted(memory.items())},
        },
        goals=[
            Goal("fresh start (s)", 45, "at most", fresh),
            Goal("memory of the idle network (GB)", 1.5, "at most", sum(memory.values()) / 1e9),
        ],
    )


def _timed(*command: str) -> float:
    print(f"running {' '.join(command[:2])}", file=sys.stderr)
    began = time.monotonic()
    _run(*command)
    return time.monotonic() - began


def _run(*command: str) -> str:
    ran = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)} exited with {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def _invocation() -> tuple[str, ...]:
    call = '{"Args":["put","key","value"]}'
    return (
        "network/peer.sh",
        "org1",
        "node01",
        "--",
        "chaincode",
        "invoke",
        "-C",
        "attestree",
        "-n",
        "probe",
        "-c",
        call,
    )


def _memory() -> dict[str, float]:
    """Sum the containers' memory by kind of service."""
    listed = _run(
        "docker", "ps", "--filter", "label=attestree.network=attestree-bench", "--format", "{{.Names}}"
    )
    answer = _run("docker", "stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}", *listed.split())
    sums: dict[str, float] = {}
    for line in answer.splitlines():
        found = re.match(r"attestree-bench-([a-z]+)\S* ([\d.]+)(\w+)", line)
        if found:
            kind, number, unit = found.groups()
            sums[kind] = sums.get(kind, 0.0) + float(number) * UNITS[unit]
    return sums
