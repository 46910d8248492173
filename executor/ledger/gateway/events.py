"""A chaincode's events from a block on, taken up by another peer where one falls silent."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import grpc

from .errors import EventsError, GatewayError, PeerDetail, refusal_in
from .peer import CONCURRENT_CALLS, Link, message_of, status_of
from .values import ChaincodeEvent

AHEAD = 10
"""How many blocks the one that sends events may be ahead of what enough organisations are known to have."""
LAST_BLOCK = 2**63 - 1


class EventStream(Iterator[ChaincodeEvent]):
    """Every event once, in order; ends after `seconds` or when closed, which another thread may do.

    The service sends all events of a block in one message, so the block after the last message is where
    the next peer goes on, without a gap or a repetition. Blocks without events are left out, so a number may
    be any that is to come; but one that nobody else has, taken at its word, would have the next peer wait for
    a block that never comes. `has_block` says whether enough organisations have one.
    """

    def __init__(
        self,
        links: list[Link],
        request: Callable[[int], Any],
        start: int,
        seconds: float,
        has_block: Callable[[int], bool],
    ) -> None:
        self._links = links
        self._request = request
        self._has_block = has_block
        self._block = start
        self._known = start
        self._end = time.monotonic() + seconds
        self._pending: deque[ChaincodeEvent] = deque()
        self._failures: list[PeerDetail] = []
        self._turn = 0
        self._lock = Lock()
        self._call: Any = None
        self._closed = False

    def __next__(self) -> ChaincodeEvent:
        while not self._pending:
            call = self._open()
            if call is None:
                self._lost(f"{CONCURRENT_CALLS} calls and streams are open already")
                continue
            try:
                answer = next(call)
            except StopIteration:
                self._lost("the peer ended the stream")
            except grpc.RpcError as error:
                self._failed(error)
            else:
                self._take(answer)
        return self._pending.popleft()

    def close(self) -> None:
        """End the stream; a thread that waits for the next event is released."""
        with self._lock:
            self._closed = True
            if self._call is not None:
                self._call.cancel()

    def _open(self) -> Any:
        """Return the running call, or make one at the peer whose turn it is; None if that has too many."""
        with self._lock:
            left = self._end - time.monotonic()
            if self._closed or left <= 0:
                self._drop()
                raise StopIteration
            if self._call is None:
                link = self._links[self._turn % len(self._links)]
                # Not waited for: closing must not have to wait, and the next peer may be free.
                if not link.permits.acquire(blocking=False):
                    return None
                self._call = link.stub.ChaincodeEvents(self._request(self._block), timeout=left)
            return self._call

    def _take(self, answer: Any) -> None:
        number = answer.block_number
        try:
            lie = self._lie(number)
        except GatewayError as error:
            self._lost(f"whether there is a block {number} cannot be asked: {error}")
            return
        if lie:
            self._links[self._turn % len(self._links)].blame(lie)
            self._lost(lie)
            return
        self._failures.clear()
        self._block = number + 1
        self._pending.extend(
            ChaincodeEvent(answer.block_number, event.tx_id, event.event_name, bytes(event.payload))
            for event in answer.events
        )

    def _lie(self, number: int) -> str:
        """Say what is wrong with the number of a block that has events; nothing if it may be true."""
        if number < self._block:
            return f"it sends events of block {number} where {self._block} or a later one is next"
        if number > self._known + AHEAD:
            # As a rule all have it, and nobody is asked again for so many blocks.
            known = (found for found in (number, number - AHEAD) if self._has_block(found))
            self._known = next(known, self._known) if number <= LAST_BLOCK else self._known
            if number > self._known + AHEAD:
                return f"it sends events of block {number}, which is beyond the end of the chain"
        return ""

    def _failed(self, error: grpc.RpcError) -> None:
        status = status_of(error)
        if status is grpc.StatusCode.PERMISSION_DENIED:
            with self._lock:
                self._drop()
            details = self._links[self._turn % len(self._links)].said(error)
            refusal = refusal_in([f"access denied: {message_of(error)}"])
            raise EventsError(
                "EVENTS_FAILED", message_of(error), details=details, status=status.name, refusal=refusal
            ) from error
        self._lost(message_of(error))

    def _lost(self, why: str) -> None:
        """Give the turn to the next peer; nobody is left when each has failed since the last event."""
        with self._lock:
            self._drop()
            peer = self._links[self._turn % len(self._links)].peer
            self._turn += 1
            if self._closed or time.monotonic() >= self._end:
                return
        self._failures.append(PeerDetail(peer.address, peer.msp, why))
        if len(self._failures) >= len(self._links):
            raise EventsError("EVENTS_FAILED", f"no peer sends events: {why}", "", self._failures)

    def _drop(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
            self._links[self._turn % len(self._links)].permits.release()
