"""Waiting for the ledger: asked at once, and again when something happened to the process."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from executor.errors import DeadlineError
from executor.ledger.errors import EvaluateError
from executor.ledger.following import PAUSE, Follower
from executor.ledger.proxies import Ledger

T = TypeVar("T")

HEARTBEAT = 20.0
"""Seconds after which it is asked again though nothing was announced: a task, for one, expires in silence."""
PULSE = 0.5
"""Seconds within which a wait notices that it is to stop."""
_PASSING = ("LEDGER_UNREACHABLE", "LEDGER_TIMEOUT", "EVALUATE_FAILED")


def wait_until(
    ledger: Ledger,
    process: str,
    check: Callable[[], T | None],
    seconds: float,
    what: str = "the ledger",
    *,
    stop: threading.Event | None = None,
) -> T:
    """Return what `check` finds as soon as it is not None; WAIT_TIMEOUT after that many seconds.

    The events of execution-record and orchestration are followed from the height before the first check, so
    none is missed between a check and the wait. Once the ledger has answered, it may be away for a while.
    Whoever sets `stop` ends the wait, within a second, with a ConnectionAbortedError.
    """
    end = time.monotonic() + seconds
    start = ledger.transport.chain_info().height
    found = check()
    if found is not None:
        return found
    with Follower(ledger.transport, process, start, seconds) as follower:
        while (left := end - time.monotonic()) > 0:
            _next(follower, min(left, HEARTBEAT), stop)
            found = _patiently(check, end)
            if found is not None:
                return found
    raise DeadlineError(
        "WAIT_TIMEOUT",
        f"waited {seconds:g} s for {what} in process {process}",
        "See with `executor process status` who is missing, then run the command again.",
    )


def _next(follower: Follower, seconds: float, stop: threading.Event | None) -> None:
    """Return when something was announced, or after that many seconds."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if stop is not None and stop.is_set():
            raise ConnectionAbortedError("nobody waits any more")
        if follower.next(min(left, PULSE)) is not None:
            follower.drain()
            return


def _patiently(check: Callable[[], T | None], end: float) -> T | None:
    """Check again while the ledger is away, until the time is over."""
    while True:
        try:
            return check()
        except EvaluateError as error:
            if error.code not in _PASSING or time.monotonic() + PAUSE >= end:
                raise
        time.sleep(PAUSE)
