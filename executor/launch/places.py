"""How many tasks of a host work side by side, whichever nodes and processes they belong to."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from executor.ledger.follow import PULSE
from executor.sandbox.profile import Limits


class Places:
    """Gives each task a place to work at, in the order in which they ask for one.

    A task that waits for its neighbours lends its place to others: the neighbours may be nodes of this very
    host, and would wait for the place as long as it waits for them. When they have shared it goes on at once,
    so that for a moment more tasks may work than there are places; none of them begins.
    """

    def __init__(self, count: int | None = None) -> None:
        """Take how many there are; None for one for whoever asks."""
        self._count = count
        self._changed = threading.Condition()
        self._working = 0
        self._waiting: deque[object] = deque()

    @contextmanager
    def taken(self, check: Callable[[], None]) -> Iterator[None]:
        """Hold a place, once one is free; `check` raises if nobody wants the task any more."""
        self._wait(check)
        try:
            yield
        finally:
            self._add(-1)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let somebody else have the place meanwhile."""
        self._add(-1)
        try:
            yield
        finally:
            self._add(1)

    def _wait(self, check: Callable[[], None]) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._is_full() or self._waiting[0] is not ticket:
                    check()
                    self._changed.wait(PULSE)
                self._working += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def _is_full(self) -> bool:
        return self._count is not None and self._working >= self._count

    def _add(self, number: int) -> None:
        with self._changed:
            self._working += number
            self._changed.notify_all()


def places_of_host(limits: Limits) -> int:
    """Return how many learners with these limits this host has cores and memory for, one at least."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(int(cores / limits.cpus), memory // limits.memory_bytes))
