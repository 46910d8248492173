"""The engine is killed with everything it runs; set-up starts it again, and the network has all its data.

Only where CI says that the engine is nobody else's: it takes every container of the host with it.
"""

import contextlib
import os
import signal
from pathlib import Path

import pytest
from support.network import chain, containers, done, invoked, query, run, until

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not os.environ.get("CI"), reason="kills the host's Docker engine: only in CI"),
]
ENGINE = ("dockerd", "containerd", "containerd-shim", "containerd-shim-runc-v2")


def processes() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and (entry / "comm").read_text().strip() in (
                name[:15] for name in ENGINE
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_engine_killed_mid_run_comes_back_with_all_data() -> None:
    if Path("/run/systemd/system").is_dir():
        pytest.skip("systemd restarts the engine by itself")
    invoked("org1", "node01", "put", "before", "the kill")
    before = chain("org1")
    running = done("docker", "inspect", "-f", "{{.State.Pid}}", *containers().values()).split()
    for pid in [*processes(), *map(int, running)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(20, "the engine is gone", lambda: run("docker", "version").returncode != 0)
    done("scripts/bootstrap")
    done("network/up.sh")
    assert chain("org1")["height"] >= before["height"]
    assert query("org2", "auditor", "get", "before") == "the kill"
    assert run(".venv/bin/executor", "doctor").returncode == 0
