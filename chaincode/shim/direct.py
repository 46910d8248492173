"""A stream without threads of its own: gRPC's operations are started here and their completion acted on.

grpcio's server has one thread that takes completed operations from gRPC's core. Its public interface passes
each message on to a second thread, and waits in a third for each message sent. A `DirectStream` starts the
same operations with the same calls as grpcio's `_server.py` and acts on a message in the thread that took it:
about half of the processor time.

This is the only file that reaches below grpcio's public interface. What it needs there is checked when a
stream opens, and a release of grpcio without it is served by the public interface alone (`stream.py`).
"""

import importlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from .listener import CLOSED, Listener, failure

# What grpcio's serving thread expects of a completed operation: the call that ended with it, and what to run.
Completed = tuple[None, tuple[Callable[[], None], ...]]
NO_FLAGS = 0


@dataclass(frozen=True)
class Operations:
    """The core's operations on one call."""

    start: Callable[[tuple[Any], Callable[[Any], Completed]], int]
    receive: Callable[[int], Any]
    send: Callable[[bytes, int], Any]

    def begin(self, operation: Any, completed: Callable[[Any], Completed]) -> None:
        """Start an operation; raises ValueError where the call takes none any more."""
        if self.start((operation,), completed):
            raise ValueError("the call is over")


def operations_of(context: grpc.ServicerContext) -> Operations | None:
    """Find the operations behind a call of grpcio's server; None if this release keeps them elsewhere."""
    try:
        layer = importlib.import_module("grpc._cython.cygrpc")
        call = context._rpc_event.call  # type: ignore[attr-defined]
        return Operations(call.start_server_batch, layer.ReceiveMessageOperation, layer.SendMessageOperation)
    except (ImportError, AttributeError):
        return None


class DirectStream:
    """A stream that receives and sends in the thread of grpcio's server, one operation of each at a time."""

    def __init__(self, operations: Operations, context: grpc.ServicerContext) -> None:
        self._operations = operations
        self._context = context
        self._lock = threading.Lock()
        self._outbox: deque[bytes] = deque()
        self._sending = self._closing = False
        self._ended = threading.Event()
        self._listener: Listener
        context.send_initial_metadata(())

    def send(self, raw: bytes) -> None:
        """Start sending, or queue behind the message that is on its way."""
        with self._lock:
            self._outbox.append(raw)
            if not self._sending:
                self._send_next()

    def close(self) -> None:
        """End the stream when the last message has been sent."""
        with self._lock:
            self._closing = True
            if not self._sending:
                self._ended.set()

    def run(self, listener: Listener) -> Iterator[bytes]:
        """Hold the handler's thread until the stream has ended; the work is done by the server's thread."""
        self._listener = listener
        if self._context.add_callback(partial(listener.lose, CLOSED)):
            self._receive_next()
            self._ended.wait()
        return iter(())

    def _receive_next(self) -> None:
        self._operations.begin(self._operations.receive(NO_FLAGS), self._received)

    def _received(self, event: Any) -> Completed:
        return None, (partial(self._act, event.batch_operations[0].message()),)

    def _act(self, raw: bytes | None) -> None:
        reason = CLOSED
        try:
            if raw is not None:
                self._receive_next()
                self._listener.receive(raw)
                return
        except Exception as error:  # whatever it is: this thread serves the other streams, too
            reason = failure(error)
        self._listener.lose(reason)

    def _send_next(self) -> None:
        """Send the oldest message; a call that is over takes none, and its receiving side says so."""
        try:
            self._operations.begin(self._operations.send(self._outbox.popleft(), NO_FLAGS), self._sent)
            self._sending = True
        except ValueError:
            self._outbox.clear()

    def _sent(self, event: Any) -> Completed:
        with self._lock:
            self._sending = False
            if not event.success:
                self._outbox.clear()
            elif self._outbox:
                self._send_next()
            if self._closing and not self._sending:
                self._ended.set()
        return None, ()
