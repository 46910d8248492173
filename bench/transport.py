"""What one call costs through hfc and through the Gateway client, and what hfc's environment costs.

Both act as the same identity on the network that is up (ATTESTREE_PROJECT names another one), and take turns,
so that whatever else the machine does meets both. The registered images stay on that ledger.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from bench.report import Report
from executor.ledger.gateway_transport import GatewayTransport
from executor.ledger.hfc.client import HfcTransport
from executor.ledger.hfc.environment import hfc_python
from executor.ledger.transport import Transport
from executor.network import Network
from protocol.errors import AttestreeError

CALLS = 15
MEBIBYTE = 1 << 20
DIGEST = f"sha256:{'5' * 64}"


def measure() -> Report:
    """Time reads, writes, and the endorsement of 1 MiB, then make the environment anew."""
    network = Network.load()
    hfc = HfcTransport.connect(network, "org1", "data-scientist")
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    with GatewayTransport.connect(network, "org1", "data-scientist") as gateway:
        for name, act in {"evaluate": _evaluate, "submit": _submit, "refused 1 MiB": _refused}.items():
            (slow, slow_work), (fast, fast_work) = _medians(act, hfc, gateway)
            figures |= {f"{name}, hfc (ms)": slow * 1e3, f"{name}, Gateway (ms)": fast * 1e3}
            figures |= {f"{name}, hfc, processor (ms)": slow_work * 1e3}
            figures |= {f"{name}, Gateway, processor (ms)": fast_work * 1e3}
            ratios[f"{name}: hfc / Gateway"] = slow / fast
    figures["memory of a worker, at most (MB)"] = _peak_of_children() / 1e6
    seconds, size, files = _installation()
    figures |= {"install (s)": seconds, "environment (MB)": size / 1e6, "environment, files": files}
    return Report(f"Transport: medians of {CALLS} calls, one after the other", ratios=ratios, figures=figures)


def _medians(act: Callable[[Transport], None], *transports: Transport) -> list[tuple[float, float]]:
    """Return for each transport the median of its calls' time, and of their processor time."""
    for transport in transports:
        act(transport)
    taken: list[list[tuple[float, float]]] = [[] for _ in transports]
    for _ in range(CALLS):
        for transport, times in zip(transports, taken, strict=True):
            began, worked = time.perf_counter(), _processor_time()
            act(transport)
            times.append((time.perf_counter() - began, _processor_time() - worked))
    return [
        (statistics.median(time for time, _ in times), statistics.median(work for _, work in times))
        for times in taken
    ]


def _processor_time() -> float:
    """What this process and those it has ended have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _evaluate(transport: Transport) -> None:
    transport.evaluate("image", "metadata")


def _submit(transport: Transport) -> None:
    version = f"1-{uuid.uuid4().hex}"
    transport.submit("image", "Register", "bench/transport", version, DIGEST, DIGEST, "registry:5000/bench")


def _refused(transport: Transport) -> None:
    """Have every peer take in 1 MiB and refuse the call: no block, no commit."""
    try:
        transport.submit("execution-record", "Share", transient={"share": bytes(MEBIBYTE)})
    except AttestreeError as error:
        if error.code != "BAD_ARGUMENT_COUNT":
            raise


def _peak_of_children() -> int:
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _installation() -> tuple[float, int, int]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ATTESTREE_CACHE"] = folder
        began = time.perf_counter()
        home = hfc_python().parents[1]
        seconds = time.perf_counter() - began
        sizes = [path.lstat().st_size for path in Path(home).rglob("*") if path.is_file()]
    return seconds, sum(sizes), len(sizes)
