"""What happens to a process, as it happens: the events of several chaincodes in one queue."""

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from executor.ledger.execution import ExecutionRecord
from executor.ledger.orchestration import Orchestration
from executor.ledger.transport import ChaincodeEvent, Transport
from protocol.errors import AttestreeError

CHAINCODES = (ExecutionRecord.chaincode, Orchestration.chaincode)
PAUSE = 0.5
"""Seconds until a lost stream is asked for again; every peer has been tried by then."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event of a process: which chaincode, which event, and its parsed payload."""

    chaincode: str
    event: ChaincodeEvent
    payload: dict[str, Any]


class Follower:
    """Follows a process from a block on; a context manager, because it has a thread per chaincode.

    A stream that is lost is taken up again at the block after the last event seen, so nothing is missed
    however long the peers are away.
    """

    def __init__(
        self,
        transport: Transport,
        process: str,
        start: int,
        seconds: float,
        chaincodes: Sequence[str] = CHAINCODES,
    ) -> None:
        self._transport = transport
        self._process = process
        self._end = time.monotonic() + seconds
        self._found: queue.SimpleQueue[Announcement] = queue.SimpleQueue()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._streams: dict[str, Iterator[ChaincodeEvent]] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=(name, start), name=f"events of {name}", daemon=True)
            for name in chaincodes
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next(self, seconds: float) -> Announcement | None:
        """Return the next announcement, or None if there is none within that time."""
        try:
            return self._found.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None

    def drain(self) -> None:
        """Forget what has been announced and not been read."""
        while self.next(0) is not None:
            pass

    def close(self) -> None:
        """Stop following, and leave no thread behind that uses the transport."""
        self._over.set()
        with self._lock:
            streams = list(self._streams.values())
        for stream in streams:
            _close(stream)
        for thread in self._threads:
            thread.join(PAUSE)

    def _follow(self, chaincode: str, block: int) -> None:
        # A stream may break off within a block, which is then read again; `seen` is what it had until then.
        seen: set[str] = set()
        while not self._over.is_set() and (left := self._end - time.monotonic()) > 0:
            with contextlib.suppress(AttestreeError):
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
            if isinstance(payload, dict) and payload.get("process") == self._process:
                self._found.put(Announcement(chaincode, event, payload))


def _close(stream: Iterator[ChaincodeEvent]) -> None:
    """Close a stream that a thread may be reading; a generator ends with its next event instead."""
    with contextlib.suppress(ValueError):
        getattr(stream, "close", lambda: None)()
