"""The bytes of one stream: the peer's messages go to a listener, messages to the peer go out in order.

Every message of a stream is received in one and the same thread, so that transactions can run in it.
"""

import logging
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Protocol

import grpc

from .direct import DirectStream, operations_of
from .listener import CLOSED, Listener, failure

log = logging.getLogger("shim")


class Stream(Protocol):
    """A connection to one peer; any thread may send and close."""

    def send(self, raw: bytes) -> None:
        """Send a message after those sent before; nothing happens once the stream has ended."""
        ...

    def close(self) -> None:
        """End the stream when all is sent."""
        ...

    def run(self, listener: Listener) -> Iterator[bytes]:
        """Hand messages over until the stream ends; yields what gRPC has to send meanwhile."""
        ...


def open_stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Stream:
    """Take the direct way where this grpcio has it."""
    operations = operations_of(context)
    if operations is None:
        log.warning("grpcio %s has no operations to start; transactions cost more without", grpc.__version__)
        return QueueStream(requests)
    return DirectStream(operations, context)


class QueueStream:
    """A stream by the iterators of gRPC's public interface: one thread reads, another writes."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()

    def send(self, raw: bytes) -> None:
        """Leave the message to the writer."""
        self._outbox.put(raw)

    def close(self) -> None:
        """Let the writer come to an end."""
        self._outbox.put(None)

    def run(self, listener: Listener) -> Iterator[bytes]:
        """Write in this thread and read in another."""
        threading.Thread(target=self._read, args=(listener,), name="reader", daemon=True).start()
        while (message := self._outbox.get()) is not None:
            yield message

    def _read(self, listener: Listener) -> None:
        reason = CLOSED
        try:
            for raw in self._requests:
                listener.receive(raw)
        except Exception as error:  # grpc raises a bare RpcError when the stream breaks, whatever the cause
            reason = failure(error)
        listener.lose(reason)
