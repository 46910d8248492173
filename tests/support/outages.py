"""What happens to the services of a live network, and whether a call gets through meanwhile."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.gateway import GatewayError
from support.network import containers, done, run


@contextmanager
def cut_off(service: str) -> Iterator[None]:
    """Take a container out of its network, and put it back under the names it had."""
    container = containers()[service]
    (inspected,) = json.loads(done("docker", "inspect", container))
    ((network, found),) = inspected["NetworkSettings"]["Networks"].items()
    names = [f"--alias={name}" for name in found["Aliases"] if not container.startswith(name)]
    done("docker", "network", "disconnect", network, container)
    try:
        yield
    finally:
        done("docker", "network", "connect", *names, network, container)


def succeeds(call: Callable[..., Any], *arguments: Any, **more: Any) -> bool:
    try:
        call(*arguments, **more)
    except GatewayError:
        return False
    return True


def logs(service: str) -> str:
    ran = run("docker", "logs", containers()[service])
    return ran.stdout + ran.stderr
