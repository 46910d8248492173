"""scripts/engine says why an engine does not start, and a container that goes meanwhile stops none.

The programs of the engine are the test's own; that real ones start is seen by the tests on them.
"""

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network import PROJECT, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an engine")

CONTAINERD = """#!/bin/sh
exec python3 -c 'import signal, socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[2].removesuffix("toml") + "sock")
signal.pause()' "$@"
"""
ONE_WAIT = 480
"""For so many seconds scripts/engine waits for an engine that lives."""
DOCKERD = "#!/bin/sh\necho the engine gives up >&2\nexit 1\n"
# What umount says of a mount that went when the first engine removed its container.
UMOUNT = "#!/bin/sh\necho umount: no mount point specified >&2\nexit 32\n"


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables by which scripts/engine finds an engine that ends as soon as it starts."""
    programs = tmp_path / "engines" / f"trixie-{platform.machine()}" / "usr/bin"
    tools = tmp_path / "tools"
    for path, text in (
        (programs / "dockerd", DOCKERD),
        (programs / "containerd", CONTAINERD),
        (tools / "umount", UMOUNT),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    made = {
        "ATTESTREE_CACHE": str(tmp_path),
        "ATTESTREE_PROJECT": f"{PROJECT}-ends",
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    yield made
    assert run("scripts/engine", "26", "stop", "--purge", **made).returncode == 0


def test_engine_that_ends_is_tried_three_times_and_its_log_shown(surroundings: dict[str, str]) -> None:
    began = time.monotonic()
    ran = run("scripts/engine", "26", "start", **surroundings)
    assert ran.returncode == 30, ran.stderr
    assert "engine 26 does not start" in ran.stderr
    # It was reached each time, although umount failed before: the network's containers have mounts, unless
    # the first engine keeps what it has elsewhere.
    assert ran.stderr.count("the engine gives up") == 3
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounted = any(mount.startswith(("/var/lib/docker/", "/run/docker/")) for mount in mounts)
    assert ran.stderr.count("umount: no mount point specified") == (3 if mounted else 0)
    assert time.monotonic() - began < ONE_WAIT, "what has ended is not waited for"
    assert not Path(f"/run/{PROJECT}-ends-engine-26").exists()
