"""How long an offline audit takes: a process of twenty nodes, growth with the chain, signatures, memory.

The channels come from the contracts on the test kit's ledger in memory, with real certificates, signatures
and blocks. Times are processor time of one core, so that other work on the machine does not count.
"""

import io
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from bench._audit_chain import ITERATIONS, NODES, federation, long_chain
from bench.report import Goal, Report
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import Verification, verify_bundle

LENGTHS = (100, 300, 1000, 3000)
TURNS = 5
"""How often the rates of signatures are measured, by turns; the medians count."""
VERIFY = """
import json, resource, sys
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
with open(sys.argv[1], "rb") as file:
    assert verify_bundle(file, Anchor(parse_anchor(sys.argv[2]))).verified
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def measure() -> Report:
    """Make both channels, verify them, and compare the rate of signatures with a bare loop."""
    recorder = federation()
    bundle = recorder.bundle()
    seconds, found = _timed(bundle, recorder.genesis)
    longest = long_chain(LENGTHS[-1])
    times = {}
    for length in LENGTHS:
        part = longest.bundle(blocks=longest.blocks[:length])
        times[length] = min(_timed(part, longest.genesis)[0] for _ in range(2))
    rates = [_rates(part, longest) for _ in range(TURNS)]
    rate, bare = (statistics.median(values) for values in zip(*rates, strict=True))
    share = statistics.median(own / alone for own, alone in rates)
    memory = max(_megabytes(bundle, recorder.genesis), _megabytes(part, longest.genesis))
    exponent = _exponent(times)
    figures: dict[str, Any] = {
        f"{NODES} nodes, {ITERATIONS} iterations (s)": seconds,
        "its blocks": found.chain.height,
        "its export (MB)": len(bundle) / 1e6,
        **{f"{length} blocks (s)": value for length, value in times.items()},
        "signatures of Fabric verified per second, with all else": rate,
        "signatures per second in a bare loop": bare,
        "memory (MB)": memory,
    }
    return Report(
        "Offline audit",
        {"signature rate, against `cryptography` alone in a loop": share},
        figures,
        [
            Goal("a process of 20 nodes and 4 iterations (s)", 10, "at most", seconds),
            Goal("growth with blocks (exponent)", 1.05, "at most", exponent),
            Goal("signature rate, against a bare loop", 0.5, "at least", share),
            Goal("memory (MB)", 200, "at most", memory),
        ],
    )


def _rates(bundle: bytes, recorder: Any) -> tuple[float, float]:
    """Verify a channel and then signatures alone, one right after the other; returns both rates."""
    seconds, found = _timed(bundle, recorder.genesis)
    return found.chain.signatures / seconds, _bare_rate(recorder)


def _timed(bundle: bytes, genesis: str) -> tuple[float, Verification]:
    start = time.process_time()
    found = verify_bundle(io.BytesIO(bundle), Anchor(parse_anchor(genesis)))
    seconds = time.process_time() - start
    if not found.verified:
        raise AssertionError(found.failures[:3])
    return seconds, found


def _bare_rate(recorder: Any) -> float:
    """Verify one signature over and over with a key that is there, and do nothing else."""
    member = recorder.peers[0]
    key = x509.load_pem_x509_certificate(member.certificate).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise AssertionError("peers have keys on a curve")
    message = bytes(2000)
    signature, algorithm, times = member.sign(message), ec.ECDSA(hashes.SHA256()), 5000
    start = time.process_time()
    for _ in range(times):
        key.verify(signature, message, algorithm)
    return times / (time.process_time() - start)


def _megabytes(bundle: bytes, genesis: str) -> float:
    """Verify in a process of its own, and return what it took at most."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "channel.tar"
        file.write_bytes(bundle)
        command = [sys.executable, "-c", VERIFY, str(file), genesis]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(ran.stdout)) / 1024


def _exponent(times: dict[int, float]) -> float:
    """Return the slope of time over blocks where both are logarithms."""
    points = [(math.log(length), math.log(seconds)) for length, seconds in times.items()]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return float(sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points))
