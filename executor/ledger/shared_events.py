"""The ledger's events, followed once for all nodes of an executor that wait.

A peer reads and takes apart each block for every stream it serves, and sends every event of a chaincode on
each. Twenty nodes that wait for each other would have it do so twenty times over.
"""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import CHAINCODES, LAG, MOST_HELD, PULSE, Announcement, Follower

FOREVER = 365 * 86_400.0


class Listener:
    """What was announced of one process since somebody began to listen, and of late before."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._found: queue.Queue[Announcement] = queue.Queue(MOST_HELD)

    def next(self, seconds: float) -> Announcement | None:
        """Return the next announcement, or None if there is none within that time."""
        try:
            return self._found.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None

    def drain(self) -> list[Announcement]:
        """Return what has been announced and not been read."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._found.get_nowait())
        return found

    def hear(self, announcement: Announcement) -> None:
        """Take an announcement; one that finds no room is lost, since whoever waits also asks by itself."""
        if announcement.payload.get("process") == self._process:
            with contextlib.suppress(queue.Full):
                self._found.put_nowait(announcement)


class SharedEvents:
    """Follows all processes from the first listener on, with a connection of its own; a context manager."""

    def __init__(self, connect: Callable[[], Ledger]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._stack = contextlib.ExitStack()
        self._listeners: list[Listener] = []
        self._recent: deque[Announcement] = deque(maxlen=MOST_HELD)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The thread that spreads them uses no connection, and ends by itself in a moment.
        self._over.set()
        self._stack.close()

    @contextlib.contextmanager
    def listening(self, process: str) -> Iterator[Listener]:
        """Listen to a process: what was announced of late comes first, as peers may be behind."""
        listener = Listener(process)
        with self._lock:
            if self._thread is None:
                self._begin()
            for announcement in self._recent:
                listener.hear(announcement)
            self._listeners.append(listener)
        try:
            yield listener
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def _begin(self) -> None:
        """Follow from some blocks before the height of now; whoever fails to is the one that is told."""
        with contextlib.ExitStack() as opened:
            ledger = opened.enter_context(self._connect())
            start = max(0, ledger.transport.chain_info().height - LAG)
            follower = opened.enter_context(Follower(ledger.transport, None, start, FOREVER, CHAINCODES))
            self._thread = threading.Thread(
                target=self._spread, args=(follower,), name="shared events", daemon=True
            )
            self._thread.start()
            self._stack = opened.pop_all()

    def _spread(self, follower: Follower) -> None:
        while not self._over.is_set():
            announcement = follower.next(PULSE)
            if announcement is None:
                continue
            with self._lock:
                self._recent.append(announcement)
                for listener in self._listeners:
                    listener.hear(announcement)
