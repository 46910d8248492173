"""How transactions run at once: each in a thread of its own, or in turn in the thread that reads the stream.

A transaction spends its life waiting for the peer. In a thread, each wait costs two switches between threads;
a greenlet goes on in the thread that received the answer. But a greenlet that waits for anything else holds
up every other transaction of its chaincode, so a contract must promise not to (`Contract.cooperative`).
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from greenlet import getcurrent, greenlet

from .errors import MisuseError

log = logging.getLogger("shim")

# How many greenlets are kept for the next transactions, each with some 20 kB.
IDLE = 256


class Waiter(Protocol):
    """Where one transaction waits for one answer at a time."""

    def wait(self, seconds: float) -> Any:
        """Return the answer, or None if there was none for so long."""
        ...

    def wake(self, answer: Any) -> None:
        """Hand over an answer."""
        ...


class Runner(Protocol):
    """Runs the transactions of one stream; the thread that reads the stream calls it."""

    def start(self, work: Callable[[], None]) -> None:
        """Begin a piece of work now, or when another one is done."""
        ...

    def waiter(self) -> Waiter:
        """Make the place where a new transaction waits."""
        ...

    def close(self) -> None:
        """Hear that the stream has ended; what runs goes on to its end."""
        ...


class Threads:
    """Transactions in the threads of a pool."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    def start(self, work: Callable[[], None]) -> None:
        """Leave the work to a thread."""
        self._pool.submit(work)

    def waiter(self) -> Waiter:
        """Make a waiter that blocks its thread."""
        return _ThreadWaiter()

    def close(self) -> None:
        """Do nothing: the pool serves other streams, too."""


class _ThreadWaiter:
    def __init__(self) -> None:
        self._answers: SimpleQueue[Any] = SimpleQueue()

    def wait(self, seconds: float) -> Any:
        try:
            return self._answers.get(timeout=seconds)
        except Empty:
            return None

    def wake(self, answer: Any) -> None:
        self._answers.put(answer)


class Greenlets:
    """Transactions in turn in one thread, which goes from one to the next when they wait for the peer.

    A greenlet that is done is kept for the next transaction: to make one costs ten times what it costs to
    switch to one.
    """

    def __init__(self, limit: int) -> None:
        self._unmade = limit
        self._idle: list[greenlet] = []
        self._queue: deque[Callable[[], None]] = deque()
        self._closed = False
        # In the order of the deadlines, because every wait has the same length.
        self.deadlines: dict[_GreenletWaiter, float] = {}

    def start(self, work: Callable[[], None]) -> None:
        """Run the work up to its first wait, after those that have waited too long have heard so."""
        self._expire()
        if self._idle:
            self._idle.pop().switch(work)
        elif self._unmade:
            self._unmade -= 1
            greenlet(self._work).switch(work)
        else:
            self._queue.append(work)

    def waiter(self) -> Waiter:
        """Make a waiter that lets the thread go on with something else."""
        return _GreenletWaiter(self)

    def close(self) -> None:
        """Let every greenlet end that has nothing to do, now or later."""
        self._closed = True
        while self._idle:
            self._idle.pop().switch(None)

    def _work(self, work: Callable[[], None] | None) -> None:
        this = getcurrent()
        while work is not None:
            try:
                work()
            except Exception as error:  # it would end the stream, and with it every other transaction
                log.error("unexpected %s outside of a contract", type(error).__name__)
            if self._queue:
                work = self._queue.popleft()
            elif self._closed or len(self._idle) == IDLE:
                break
            else:
                self._idle.append(this)
                work = _parent(this).switch()
        self._unmade += 1

    def _expire(self) -> None:
        while self.deadlines:
            waiter, deadline = next(iter(self.deadlines.items()))
            if time.monotonic() < deadline:
                return
            waiter.wake(None)


class _GreenletWaiter:
    def __init__(self, runner: Greenlets) -> None:
        self._runner = runner
        self._waiting: greenlet | None = None

    def wait(self, seconds: float) -> Any:
        current = getcurrent()
        parent = _parent(current)
        self._runner.deadlines[self] = time.monotonic() + seconds
        self._waiting = current
        return parent.switch()

    def wake(self, answer: Any) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            del self._runner.deadlines[self]
            waiting.switch(answer)


def _parent(current: greenlet) -> greenlet:
    """Find the thread's own greenlet, which reads the stream."""
    if current.parent is None:
        raise MisuseError("a contract that calls the peer from a thread of its own cannot be cooperative")
    return current.parent
