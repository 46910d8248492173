"""Checks of the running containers: all there, healthy, and reachable from this host alone."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from executor.doctor.finding import Finding
from executor.engine import asking, engine
from executor.errors import EngineError
from executor.network import Network, NetworkError

UP = "run network/up.sh"


def containers(network: Network) -> dict[str, dict[str, Any]]:
    """Find the network's containers by service name, as the engine describes them."""
    labels = [f"attestree.network={network.project}", "com.docker.compose.service"]
    try:
        with closing(engine()) as client, asking("list the network's containers"):
            found = client.containers.list(all=True, filters={"label": labels}, ignore_removed=True)
    except EngineError as error:
        raise NetworkError(error.cause) from error
    return {container.labels["com.docker.compose.service"]: container.attrs for container in found}


def check_services(network: Network) -> Iterator[Finding]:
    """Check every service that the network should have."""
    found = containers(network)
    yield _running(network, found)
    yield _ports(found)
    yield _restarts(found)


def _running(network: Network, found: dict[str, dict[str, Any]]) -> Finding:
    bad = [
        f"{name} is {_state(found.get(name))}"
        for name in network.services
        if _state(found.get(name)) not in ("running", "starting", "healthy")
    ]
    detail = "; ".join(bad) or f"{len(network.services)} of {len(network.services)} run"
    return Finding("containers", not bad, detail, UP if bad else "")


def _state(container: dict[str, Any] | None) -> str:
    if container is None:
        return "absent"
    state = container["State"]
    return str(
        state.get("Health", {}).get("Status", state["Status"]) if state["Running"] else state["Status"]
    )


def _ports(found: dict[str, dict[str, Any]]) -> Finding:
    bindings = [
        (name, binding["HostIp"], binding["HostPort"])
        for name, container in sorted(found.items())
        for published in container["NetworkSettings"]["Ports"].values()
        for binding in published or []
    ]
    public = [f"{name} on {address}:{port}" for name, address, port in bindings if address != "127.0.0.1"]
    detail = "; ".join(public) or f"{len(bindings)} published, all on 127.0.0.1"
    return Finding(
        "ports", not public, detail, "docker-compose.yml must publish on 127.0.0.1" if public else ""
    )


def _restarts(found: dict[str, dict[str, Any]]) -> Finding:
    killed = [name for name, container in sorted(found.items()) if container["State"].get("OOMKilled")]
    detail = f"killed for memory: {', '.join(killed)}" if killed else "none was killed for memory"
    return Finding(
        "memory limits", not killed, detail, "raise mem_limit in docker-compose.yml" if killed else ""
    )
