"""A small network of a test file's own, for what would disturb the tests that share the other one."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from executor.network import Network
from support.network import PROJECT, ROOT, done, free_ports

SIZE = ("--orgs", "2", "--orderers", "3", "--nodes", "3", "--probe")
SERVICES = 10
"""Three orderers, the registry; authority, peer and chaincode of each organisation."""


@contextmanager
def own_network(name: str, *size: str, interrupted_at: str = "") -> Iterator[Network]:
    """Start a network, which may be interrupted when it announces a step, and remove it in the end.

    Meanwhile it is the one that commands and scripts speak to; members (support.channel) keep to the other.
    """
    size = size or SIZE
    with free_ports() as ports, pytest.MonkeyPatch.context() as patched:
        patched.setenv("ATTESTREE_PROJECT", f"{PROJECT}-{name}")
        patched.setenv("ATTESTREE_PORTS", ports)
        patched.delenv("ATTESTREE_STATE", raising=False)
        try:
            if interrupted_at:
                _interrupt_at(interrupted_at, "network/up.sh", *size)
            done("network/up.sh", *size)
            yield Network.load()
        finally:
            done("network/down.sh", "--purge")


def _interrupt_at(mark: str, *command: str) -> None:
    """SIGKILL a command and all it started when it announces a step."""
    started = subprocess.Popen(
        command, cwd=ROOT, env=os.environ, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert started.stderr is not None
    for line in started.stderr:
        if line.startswith(mark):
            os.killpg(started.pid, signal.SIGKILL)
            break
    started.wait()
    assert started.returncode == -signal.SIGKILL
