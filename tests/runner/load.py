"""Load on every processor, for as long as the process that asked for it lives and no longer than a limit."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

SECONDS = 6 * 3600

BUSY = f"""
import os, time
parent, end = os.getppid(), time.monotonic() + {SECONDS}
while os.getppid() == parent and time.monotonic() < end:
    turn = time.monotonic() + 0.2
    while time.monotonic() < turn:
        sum(range(1000))
"""


@contextlib.contextmanager
def load(processes: int | None = None) -> Iterator[None]:
    """Keep so many processors busy, all unless told; the load ends with the block, or with this process."""
    count = processes or os.cpu_count() or 1
    started = [subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
