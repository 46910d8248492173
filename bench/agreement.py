"""What it costs to believe no single peer: the ledger time of a launch, with agreement and without.

A task of a launch makes twelve reads that decide something and three writes (open, SHARE, complete). Both are
timed as calls of one identity on the network that is up (ATTESTREE_PROJECT names another one): believing the
own peer alone, and believing what enough organisations say. The two take turns, so that whatever else the
machine does meets both. The registered images stay on that ledger.
"""

import statistics
import time
import uuid
from collections.abc import Callable

from bench.report import Goal, Report
from executor.ledger.gateway import Trust
from executor.ledger.gateway_transport import GatewayTransport
from executor.network import Network

CALLS = 40
READS, WRITES = 12, 3
NAME = "bench/agreement"
MANIFEST, IMAGE_ID = f"sha256:{'5' * 64}", f"sha256:{'6' * 64}"
LIMIT = 1.3


def measure() -> Report:
    """Time reads and writes under both settings, and weigh them as a launch does."""
    network = Network.load()
    version = f"1-{uuid.uuid4().hex}"
    connect = GatewayTransport.connect
    with (
        connect(network, "org1", "data-scientist", Trust(own_peer=True)) as alone,
        connect(network, "org1", "data-scientist") as agreed,
    ):
        _register(alone, version)
        reads = _medians(lambda transport: _read(transport, version), alone, agreed)
        writes = _medians(lambda transport: _register(transport, f"1-{uuid.uuid4().hex}"), alone, agreed)
    launches = [READS * read + WRITES * write for read, write in zip(reads, writes, strict=True)]
    names = ("own peer alone", "agreement")
    ratio = launches[1] / launches[0]
    figures = {
        f"{what}, {name} (ms)": seconds * 1e3
        for what, times in (("read", reads), ("write", writes), ("ledger time of a task", launches))
        for name, seconds in zip(names, times, strict=True)
    }
    return Report(
        f"Agreement: medians of {CALLS} calls, {len(network.organisations)} organisations",
        ratios={
            "read: agreement / own peer alone": reads[1] / reads[0],
            "write: agreement / own peer alone": writes[1] / writes[0],
            "ledger time of a task: agreement / own peer alone": ratio,
        },
        figures=figures,
        goals=[Goal("ledger time of a task: agreement / own peer alone", LIMIT, "at most", ratio)],
    )


def _medians(act: Callable[[GatewayTransport], None], *transports: GatewayTransport) -> list[float]:
    taken: list[list[float]] = [[] for _ in transports]
    for transport in transports:
        act(transport)
    for _ in range(CALLS):
        for transport, times in zip(transports, taken, strict=True):
            began = time.perf_counter()
            act(transport)
            times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in taken]


def _read(transport: GatewayTransport, version: str) -> None:
    transport.evaluate_agreed("image", "Get", NAME, version)


def _register(transport: GatewayTransport, version: str) -> None:
    transport.submit("image", "Register", NAME, version, MANIFEST, IMAGE_ID, "registry:5000/bench", "")
