"""Running processes of two nodes of two organisations on the live network."""

from typing import Any

from executor.network import Network
from support.channel import (
    Member,
    admin1,
    admin2,
    register,
    scientist1,
    specification,
    unique,
)
from support.player import N_MAX, N_NEW, N_SHARE


def nodes_of(organisation: str) -> list[Member]:
    """The nodes that an organisation got when the network was made; those enrolled later may be revoked."""
    network = Network.load()
    names = [f"node{number:02d}" for number in range(1, network.n_nodes + 1)]
    return [Member(organisation, name) for name in names if network.msp_folder(organisation, name).is_dir()]


def node_of(organisation: str) -> Member | None:
    """The first node of an organisation; None when the network has no such organisation."""
    found = nodes_of(organisation)
    return found[0] if found else None


def nodes() -> list[Member]:
    """A node of org1 and one of org2."""
    return [node for node in (node_of("org1"), node_of("org2")) if node is not None]


def proposed_process(iterations: int = 1, **fields: Any) -> str:
    """Register an image and propose a process of both nodes."""
    version, process = unique("1"), unique("process")
    register(version)
    first, second = nodes()
    made = specification(
        process, version, {first.identity: "Org1MSP", second.identity: "Org2MSP"}, iterations=iterations
    )
    made["steps"][0]["parameters"] |= {"n_new": N_NEW, "n_share": N_SHARE, "n_max": N_MAX}
    scientist1.propose(made | {"abort": "any"} | fields)
    return process


def running_process(iterations: int, **fields: Any) -> str:
    """Propose a process of both nodes, accept and start it."""
    process = proposed_process(iterations, **fields)
    admin1.submit("orchestration", "Accept", process)
    admin2.submit("orchestration", "Accept", process)
    admin1.submit("orchestration", "Start", process)
    return process
