"""The live network as the tests drive it: by its own scripts, and by signals."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.surroundings import port_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = os.environ.setdefault("ATTESTREE_PROJECT", "attestree")


def run(*command: str, seconds: float = 600, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command from the repository's root and return what it did."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        timeout=seconds,
        check=False,
    )


def done(*command: str, seconds: float = 600, **environment: str) -> str:
    """Run a command that must succeed and return its standard output."""
    ran = run(*command, seconds=seconds, **environment)
    assert ran.returncode == 0, (
        f"{' '.join(command)} exited with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    )
    return ran.stdout


def peer(organisation: str, identity: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("network/peer.sh", organisation, identity, "--", *arguments)


def query(organisation: str, identity: str, function: str, *arguments: str) -> str:
    """What the probe chaincode answers; a failure to answer fails the test."""
    return done("network/peer.sh", organisation, identity, "--", *probing(function, *arguments)).rstrip("\n")


def answers(organisation: str, function: str, *arguments: str) -> str | None:
    """What the probe chaincode answers the auditor, or None while the organisation's peer cannot."""
    asked = peer(organisation, "auditor", *probing(function, *arguments))
    return asked.stdout.rstrip("\n") if asked.returncode == 0 else None


def probing(function: str, *arguments: str) -> tuple[str, ...]:
    call = json.dumps({"Args": [function, *arguments]})
    return "chaincode", "query", "-C", "attestree", "-n", "probe", "-c", call


def invoke(
    organisation: str, identity: str, function: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    call = json.dumps({"Args": [function, *arguments]})
    return peer(organisation, identity, "chaincode", "invoke", "-C", "attestree", "-n", "probe", "-c", call)


def invoked(organisation: str, identity: str, function: str, *arguments: str) -> None:
    """Invoke what must succeed; what the peer said otherwise is part of the failure."""
    ran = invoke(organisation, identity, function, *arguments)
    assert ran.returncode == 0, ran.stderr


def chain(organisation: str) -> dict[str, Any]:
    """Height and last block hash, as the organisation's peer has them."""
    answer = done("network/peer.sh", organisation, "--", "channel", "getinfo", "-c", "attestree")
    found: dict[str, Any] = json.loads(answer.partition("info: ")[2])
    return found


def definition(chaincode: str) -> dict[str, Any]:
    """A chaincode's definition, as it is committed on the channel."""
    arguments = ("lifecycle", "chaincode", "querycommitted", "-C", "attestree", "-n", chaincode, "-O", "json")
    found: dict[str, Any] = json.loads(done("network/peer.sh", "org1", "--", *arguments))
    return found


def containers(project: str | None = None) -> dict[str, str]:
    """The ids of the network's running containers by service."""
    name = project or os.environ["ATTESTREE_PROJECT"]
    listed = done(
        "docker", "ps", "--no-trunc", "--filter", f"label=attestree.network={name}",
        "--filter", "label=com.docker.compose.service",  # not the learners of tests beside this one
        "--format", '{{.Label "com.docker.compose.service"}} {{.ID}}',
    )  # fmt: skip
    return dict(line.split() for line in listed.splitlines())


def kill_process(service: str) -> int:
    """SIGKILL the process of a service, as a crash would, and return its process id."""
    pid = int(done("docker", "inspect", "-f", "{{.State.Pid}}", containers()[service]))
    os.kill(pid, signal.SIGKILL)
    return pid


def raft_leader() -> str:
    """The orderer that the orderers' own logs name as the newest leader."""
    changes = []
    for service, container in containers().items():
        if service.startswith("orderer"):
            logs = run("docker", "logs", "--timestamps", container)
            for line in (logs.stdout + logs.stderr).splitlines():
                found = re.search(r"Raft leader changed: \d+ -> ([1-9]\d*)", line)
                if found:
                    changes.append((line.split()[0], f"orderer{found.group(1)}"))
    return max(changes)[1]


def until(seconds: float, what: str, check: Any) -> Any:
    """Repeat a check until it gives something true."""
    end = time.monotonic() + seconds
    while True:
        before = _seconds_of_children()
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        # Leaves the processor to what is waited for, the more so where the check starts programs.
        time.sleep(min(0.05 + 3 * (_seconds_of_children() - before), 1))


def _seconds_of_children() -> float:
    """Return the processor time of the programs that have ended."""
    used = os.times()
    return used.children_user + used.children_system


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port of this host that refuses connections, and that nobody else can take meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def free_ports() -> Iterator[str]:
    """A value for ATTESTREE_PORTS under which nothing listens; other tests of this host get another one."""
    # Below the ports that the kernel gives to outgoing connections, above those that people choose.
    for prefix in range(31, 17, -1):
        with socket.socket(socket.AF_UNIX) as name:
            try:
                # As a whole run does with its own.
                name.bind(port_name(str(prefix)))
            except OSError:
                continue
            if all(_is_free(1000 * prefix + port) for port in range(1000)):
                yield str(prefix)
                return
    raise AssertionError("every range of ports that a network could have is taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
