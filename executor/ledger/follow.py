"""What happens to a process, as it happens.

A Follower has the events of several chaincodes in one queue. `wait_until` asks the ledger at once, and again
when something happened to the process.
"""

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from executor.errors import DeadlineError
from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.ledger.chaincodes.orchestration import Orchestration
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.transport import ChaincodeEvent, Transport
from protocol.errors import AttestreeError
from protocol.values import dataclass

CHAINCODES = (ExecutionRecord.chaincode, Orchestration.chaincode)
PAUSE = 0.5
"""Seconds until a lost stream is asked for again; every peer has been tried by then."""
HEARTBEAT = 20.0
"""Seconds after which it is asked again though nothing was announced: a task, for one, expires in silence."""
ROOM_SECONDS = 0.1
LAG = 10
"""How many blocks a peer that is asked may be behind the one that says how high the chain is."""
MOST_HELD = 1000
"""How many announcements are held that nobody has read; then the peers are kept waiting."""
PULSE = 0.5
"""Seconds within which a wait notices that it is to stop."""
_PASSING = ("LEDGER_UNREACHABLE", "LEDGER_TIMEOUT", "EVALUATE_FAILED", "PEERS_DISAGREE")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event of a process: which chaincode, which event, and its parsed payload."""

    chaincode: str
    event: ChaincodeEvent
    payload: dict[str, Any]


class Follower:
    """Follows a process, or all of them, from a block on; a context manager, because it has threads.

    A stream that is lost is taken up again at the block after the last event seen, so nothing is missed
    however long the peers are away.
    """

    def __init__(
        self,
        transport: Transport,
        process: str | None,
        start: int,
        seconds: float,
        chaincodes: Sequence[str] = CHAINCODES,
    ) -> None:
        self._transport = transport
        self._process = process
        self._end = time.monotonic() + seconds
        self._found: queue.Queue[Announcement] = queue.Queue(MOST_HELD)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._streams: dict[str, Iterator[ChaincodeEvent]] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=(name, start), name=f"events of {name}", daemon=True)
            for name in chaincodes
        ]

    def __enter__(self) -> Self:
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            # Interrupted between two of them: those that run would outlive the transport.
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next(self, seconds: float) -> Announcement | None:
        """Return the next announcement, or None if there is none within that time."""
        try:
            return self._found.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None

    def drain(self) -> list[Announcement]:
        """Return what has been announced and not been read."""
        found = []
        while (announcement := self.next(0)) is not None:
            found.append(announcement)
        return found

    def close(self) -> None:
        """Stop following, and leave no thread behind that uses the transport."""
        self._over.set()
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            _close(stream)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(PAUSE)

    def _follow(self, chaincode: str, block: int) -> None:
        # A stream may break off within a block, which is then read again; `seen` is what it had until then.
        seen: set[str] = set()
        while not self._over.is_set() and (left := self._end - time.monotonic()) > 0:
            # A thread that ended would leave whoever waits deaf, so no word of a peer may end it.
            with contextlib.suppress(AttestreeError, ValueError):
                for event in self._stream(chaincode, block, left):
                    if event.block > block:
                        block, seen = event.block, set()
                    if event.tx_id not in seen:
                        seen.add(event.tx_id)
                        self._take(chaincode, event)
            self._over.wait(PAUSE)

    def _stream(self, chaincode: str, block: int, seconds: float) -> Iterator[ChaincodeEvent]:
        with self._lock:
            if self._over.is_set():
                return iter(())
            self._streams[chaincode] = self._transport.events(chaincode, block, seconds)
            return self._streams[chaincode]

    def _take(self, chaincode: str, event: ChaincodeEvent) -> None:
        with contextlib.suppress(ValueError, RecursionError):
            payload = json.loads(event.payload)
            if isinstance(payload, dict) and self._is_followed(payload.get("process")):
                self._hold(Announcement(chaincode, event, payload))

    def _hold(self, announcement: Announcement) -> None:
        """Keep an announcement for whoever reads; while there is no room for it, nothing more is read."""
        while not self._over.is_set():
            with contextlib.suppress(queue.Full):
                self._found.put(announcement, timeout=ROOM_SECONDS)
                return

    def _is_followed(self, process: object) -> bool:
        return process == self._process if self._process is not None else isinstance(process, str)


def _close(stream: Iterator[ChaincodeEvent]) -> None:
    """Close a stream that a thread may be reading; a generator ends with its next event instead."""
    with contextlib.suppress(ValueError):
        getattr(stream, "close", lambda: None)()


def wait_until(
    ledger: Ledger,
    process: str,
    check: Callable[[], T | None],
    seconds: float,
    what: str = "the ledger",
    *,
    stop: threading.Event | None = None,
    wakes: Callable[[Announcement], bool] = lambda _: True,
    again: Callable[[], float] = lambda: HEARTBEAT,
) -> T:
    """Return what `check` finds as soon as it is not None; WAIT_TIMEOUT after that many seconds.

    The events of execution-record and orchestration are followed from before the height at the first check,
    so none is missed between a check and the wait, nor if the peers that were checked are some blocks behind.
    `wakes` says which of them is worth a check, `again` after how many seconds it is time for one anyway.
    Once the ledger has answered, it may be away for a while.
    Whoever sets `stop` ends the wait, within a second, with a ConnectionAbortedError.
    """
    end = time.monotonic() + seconds
    start = max(0, ledger.transport.chain_info().height - LAG)
    found = check()
    if found is not None:
        return found
    with Follower(ledger.transport, process, start, seconds) as follower:
        while (left := end - time.monotonic()) > 0:
            _next(follower, min(left, again()), stop, wakes)
            found = _patiently(check, end)
            if found is not None:
                return found
    raise DeadlineError(
        "WAIT_TIMEOUT",
        f"waited {seconds:g} s for {what} in process {process}",
    )


def _next(
    follower: Follower,
    seconds: float,
    stop: threading.Event | None,
    wakes: Callable[[Announcement], bool],
) -> None:
    """Return when something was announced that is worth it, or after that many seconds."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if stop is not None and stop.is_set():
            raise ConnectionAbortedError("nobody waits any more")
        first = follower.next(min(left, PULSE))
        heard = [] if first is None else [wakes(each) for each in (first, *follower.drain())]
        if any(heard):
            return


def _patiently(check: Callable[[], T | None], end: float) -> T | None:
    """Check again while the ledger is away, until the time is over."""
    while True:
        try:
            return check()
        except PhaseError as error:
            if error.phase != "evaluate" or error.code not in _PASSING or time.monotonic() + PAUSE >= end:
                raise
        time.sleep(PAUSE)
