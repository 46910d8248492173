"""A chaincode's events, read from the blocks that hfc delivers."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock, Timer
from typing import Any

from fabric_protos.peer import chaincode_event_pb2
from google.protobuf.message import DecodeError

from executor.errors import LedgerError
from executor.ledger.errors import PhaseError
from executor.ledger.gateway.messages import common, proposal, response, transaction
from executor.ledger.hfc.call import Worker, decoded
from executor.ledger.transport import ChaincodeEvent

_MESSAGE: Any = vars(chaincode_event_pb2)["ChaincodeEvent"]


class BlockEvents(Iterator[ChaincodeEvent]):
    """Every event once, in order; ends after `seconds` or when closed, which another thread may do.

    `open_worker(turn, block, seconds)` starts a worker that follows blocks; `turn` chooses its peer.
    """

    def __init__(
        self,
        open_worker: Callable[[int, int, float], Worker],
        peers: int,
        name: str,
        start: int,
        seconds: float,
    ) -> None:
        self._open_worker = open_worker
        self._peers = peers
        self._name = name
        self._block = start
        self._end = time.monotonic() + seconds
        self._pending: deque[ChaincodeEvent] = deque()
        self._turn = 0
        self._failures = 0
        self._lock = Lock()
        self._closed = False
        self._worker: Worker | None = None
        self._lines: Iterator[tuple[str, Any]] = iter(())
        self._timer = Timer(seconds, self.close)
        self._timer.daemon = True
        self._timer.start()

    def __next__(self) -> ChaincodeEvent:
        while not self._pending:
            self._open()
            try:
                name, value = next(self._lines)
            except LedgerError as error:
                self._lost(error)
            else:
                if name == "block":
                    self._take(decoded(value))
                else:
                    self._drop()
        return self._pending.popleft()

    def close(self) -> None:
        """End the stream; a thread that waits for the next event is released."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.kill()
        self._timer.cancel()

    def _open(self) -> None:
        """Have a worker that runs, unless it is over."""
        with self._lock:
            left = self._end - time.monotonic()
            if self._worker is None and not self._closed and left > 0:
                self._worker = self._open_worker(self._turn % self._peers, self._block, left)
                self._lines = self._worker.lines()
            is_over = self._closed or left <= 0
        if is_over:
            self._drop()
            raise StopIteration

    def _take(self, raw: bytes) -> None:
        number, events = events_of(raw)
        if number != self._block:
            # Blocks come one after the other; a number that leads elsewhere would leave others out.
            cause = f"a peer sent block {number} where {self._block} is next"
            self._lost(PhaseError("EVENTS_FAILED", cause, "events"))
            return
        self._failures = 0
        self._block = number + 1
        self._pending.extend(event for name, event in events if name == self._name)

    def _lost(self, error: LedgerError) -> None:
        """Give the turn to the next peer; nobody is left when each has failed since the last block."""
        self._drop()
        self._turn += 1
        self._failures += 1
        if self._failures >= self._peers and not self._closed:
            raise error

    def _drop(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()


def events_of(raw: bytes) -> tuple[int, list[tuple[str, ChaincodeEvent]]]:
    """Return a block's number and the events of its valid transactions, each with its chaincode's name."""
    try:
        block = common.Block.FromString(raw)
        verdicts = block.metadata.metadata[common.TRANSACTIONS_FILTER]
        number = int(block.header.number)
        return number, [
            (event.chaincode_id, ChaincodeEvent(number, event.tx_id, event.event_name, bytes(event.payload)))
            for verdict, envelope in zip(verdicts, block.data.data, strict=True)
            if verdict == transaction.VALID
            for event in _events(envelope)
        ]
    except (DecodeError, IndexError, ValueError) as error:
        raise PhaseError(
            "EVENTS_FAILED", f"a peer sent a block that cannot be read: {error}", "events"
        ) from error


def _events(envelope: bytes) -> Iterator[Any]:
    payload = common.Payload.FromString(common.Envelope.FromString(envelope).payload)
    header = common.ChannelHeader.FromString(payload.header.channel_header)
    if header.type != common.ENDORSER_TRANSACTION:
        return
    for action in transaction.Transaction.FromString(payload.data).actions:
        endorsed = transaction.ChaincodeActionPayload.FromString(action.payload).action
        answer = response.ProposalResponsePayload.FromString(endorsed.proposal_response_payload)
        raw = proposal.ChaincodeAction.FromString(answer.extension).events
        if raw:
            yield _MESSAGE.FromString(raw)
