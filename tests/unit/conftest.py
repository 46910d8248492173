"""What tests of several packages share."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A directory of the test's own with a short path: the address of a unix socket holds 107 bytes."""
    with TemporaryDirectory(prefix="unit-") as made:
        yield Path(made)


@pytest.fixture
def processor_seconds() -> Callable[..., float]:
    """Time a call on the processor: in this thread, as other work does not count; the quickest of some."""

    def measure(call: Callable[[], object], times: int = 3) -> float:
        seconds = []
        for _ in range(times):
            started = time.thread_time()
            call()
            seconds.append(time.thread_time() - started)
        return min(seconds)

    return measure
