"""One running transaction's line to the peer: a request goes out, its answer comes back, then the next."""

import threading
from collections.abc import Callable
from typing import Any

from . import wire
from .errors import PeerError, SizeError, StreamError
from .runners import Waiter

# A peer reads and writes messages of 100 MiB; a larger one ends the stream for every transaction on it.
MAX_MESSAGE = 100 * 1024 * 1024
# What is asked for at once, so that an answer stays far below that whatever the values are.
ANSWER_BYTES = 64 * 1024 * 1024
# A peer gives a transaction up long before (30 s by default); this bounds the wait for a dropped answer.
ANSWER_SECONDS = 300.0


def at_most(largest: int) -> int:
    """Return how many values of up to so many bytes may be asked for in one message."""
    return max(1, ANSWER_BYTES // largest)


class Transaction:
    """Sends requests of one transaction and waits for each answer; never two at once.

    A peer drops a second request of a transaction while the first is pending, so calls from several threads
    of one contract queue up here instead of vanishing there.
    """

    def __init__(self, channel: str, tx_id: str, send: Callable[[bytes], None], waiter: Waiter) -> None:
        self.channel = channel
        self.tx_id = tx_id
        self.finished = False
        self._send = send
        self._waiter = waiter
        self._turn = threading.Lock()
        self._lost: StreamError | None = None

    def call(self, kind: int, payload: bytes) -> bytes:
        """Ask the peer for something and return the answer's payload, or raise what went wrong."""
        with self._turn:
            if self._lost:
                raise self._lost
            self.send(kind, payload)
            answer = self._waiter.wait(ANSWER_SECONDS)
            if answer is None:
                # A late answer must not be taken for the answer to a later request.
                self._lost = StreamError(f"the peer left a request unanswered for {ANSWER_SECONDS:.0f} s")
                raise self._lost
        if isinstance(answer, StreamError):
            raise answer
        if answer.type == wire.Message.RESPONSE:
            return bytes(answer.payload)
        request = str(wire.Message.Type.Name(kind))
        if answer.type == wire.Message.ERROR:
            raise PeerError(request, answer.payload.decode("utf-8", "replace"))
        raise PeerError(request, f"unexpected answer of type {wire.type_name(answer)}")

    def send(self, kind: int, payload: bytes, event: Any = None) -> None:
        """Hand a message to the stream's writer, unless it is one that would end the stream."""
        message = wire.Message(
            type=kind, payload=payload, txid=self.tx_id, channel_id=self.channel, chaincode_event=event
        ).SerializeToString()
        if len(message) > MAX_MESSAGE:
            raise SizeError(str(wire.Message.Type.Name(kind)), len(message), MAX_MESSAGE)
        self._send(message)

    def answer(self, message: Any) -> None:
        """Deliver the peer's answer to the waiting call."""
        self._waiter.wake(message)

    def lose(self, reason: str) -> None:
        """Wake the waiting call, and refuse later ones: the peer is gone."""
        self._lost = StreamError(reason)
        self._waiter.wake(self._lost)
