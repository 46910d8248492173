"""The chaincode's side of one stream with one peer: register, become ready, run transactions in parallel.

    created ──REGISTERED──▶ established ──READY──▶ ready ──▶ TRANSACTION, RESPONSE, ERROR, KEEPALIVE

The stream calls `receive` and `lose`, always in one thread; transactions run there or in threads of their own
(`runners.py`). All send through the stream, which puts one message after the other: gRPC does not allow two
writers.
"""

import logging
import threading
import time
from functools import partial
from typing import Any, ClassVar, Protocol

from . import wire
from .context import Context
from .contract import Response, error_response
from .errors import StreamError, encode_error
from .runners import Runner
from .stream import Stream
from .transaction import Transaction
from .writes import PeerLimits

log = logging.getLogger("shim")

ERROR_STATUS = 400


class Chaincode(Protocol):
    """What a session serves; its name is in the log."""

    name: ClassVar[str]
    cooperative: ClassVar[bool]

    def invoke(self, ctx: Context) -> Response:
        """Run one transaction; raises nothing but StreamError."""
        ...


class Session:
    """One conversation with one peer."""

    def __init__(
        self, chaincode: Chaincode, chaincode_id: str, runner: Runner, stream: Stream, peer: str
    ) -> None:
        self._chaincode = chaincode
        self._label = chaincode.name
        self._runner = runner
        self._stream = stream
        self._peer = peer
        self._state = "created"
        self._limits = PeerLimits()
        self._running: dict[tuple[str, str], Transaction] = {}
        self._changed = threading.Condition()
        self._stopping = False
        registration = wire.chaincode.ChaincodeID(name=chaincode_id).SerializeToString()
        stream.send(wire.Message(type=wire.Message.REGISTER, payload=registration).SerializeToString())

    def receive(self, raw: bytes) -> None:
        """Act on one message of the peer."""
        message = wire.parse(wire.Message, raw)
        kind = message.type
        if kind == wire.Message.KEEPALIVE:
            self._stream.send(raw)
        elif self._state == "ready" and kind in (wire.Message.RESPONSE, wire.Message.ERROR):
            self._answer(message)
        elif self._state == "ready" and kind in (wire.Message.TRANSACTION, wire.Message.INIT):
            self._begin(message)
        elif self._state == "created" and kind == wire.Message.REGISTERED:
            self._state = "established"
        elif self._state == "established" and kind == wire.Message.READY:
            self._limits = PeerLimits.from_ready(message.payload)
            self._state = "ready"
            limits = self._limits
            log.info(
                "%s ready peer=%s batch=%d/%d", self._label, self._peer, limits.write_keys, limits.read_keys
            )
        else:
            raise wire.FormatError(f"the peer sent {wire.type_name(message)} in state {self._state}")

    def drain(self, seconds: float) -> bool:
        """Refuse new transactions, let the running ones finish, end the stream; False if time ran out."""
        with self._changed:
            self._stopping = True
            finished = self._changed.wait_for(lambda: not self._running, seconds)
        self._stream.close()
        return finished

    def lose(self, reason: str) -> None:
        """End the session with its stream and wake every waiting transaction; a second call does nothing."""
        with self._changed:
            if self._state == "lost":
                return
            self._state = "lost"
            running = list(self._running.values())
        log.info("%s stream ended peer=%s running=%d: %s", self._label, self._peer, len(running), reason)
        for transaction in running:
            transaction.lose(reason)
        self._runner.close()
        self._stream.close()

    def _begin(self, message: Any) -> None:
        transaction = Transaction(message.channel_id, message.txid, self._stream.send, self._runner.waiter())
        key = (message.channel_id, message.txid)
        with self._changed:
            if self._state == "lost":
                return
            # A chaincode that calls this one twice may begin again before the first call is cleared away.
            running = self._running.get(key)
            duplicate, stopping = running is not None and not running.finished, self._stopping
            if not duplicate and not stopping:
                self._running[key] = transaction
        if duplicate:
            log.warning("%s tx=%s begun twice; the first goes on", self._label, message.txid)
        elif stopping:
            sentence = encode_error("UNAVAILABLE", "the chaincode is stopping; try again")
            self._complete(transaction, Response(503, message=sentence), None)
        else:
            self._runner.start(partial(self._run, transaction, message))

    def _answer(self, message: Any) -> None:
        transaction = self._running.get((message.channel_id, message.txid))
        if transaction is None:
            log.warning("%s tx=%s answer to no request", self._label, message.txid)
        else:
            transaction.answer(message)

    def _run(self, transaction: Transaction, message: Any) -> None:
        started = time.perf_counter()
        try:
            response = self._execute(transaction, message)
            self._log(transaction, response, len(message.payload), time.perf_counter() - started)
        except StreamError as error:
            log.warning("%s tx=%s given up: %s", self._label, transaction.tx_id, error)
        finally:
            key = (transaction.channel, transaction.tx_id)
            with self._changed:
                if self._running.get(key) is transaction:
                    del self._running[key]
                self._changed.notify_all()

    def _log(self, transaction: Transaction, response: Response, received: int, seconds: float) -> None:
        # One line per success costs a tenth of the throughput; refusals are what an operator looks for.
        level = logging.DEBUG if response.status < ERROR_STATUS else logging.INFO
        if log.isEnabledFor(level):
            line = "%s tx=%s channel=%s status=%d in=%d out=%d ms=%.1f"
            sizes = (received, len(response.payload), seconds * 1000)
            log.log(level, line, self._label, transaction.tx_id, transaction.channel, response.status, *sizes)

    def _execute(self, transaction: Transaction, message: Any) -> Response:
        """Run the contract, send its writes, tell the peer; an error of any of these is the transaction's."""
        event = None
        try:
            arguments = wire.parse(wire.chaincode.ChaincodeInput, message.payload).args
            ctx = Context(transaction, arguments, message.proposal, self._limits)
            response = self._chaincode.invoke(ctx)
            if response.status < ERROR_STATUS:
                ctx.flush()
                event = ctx.event
            self._complete(transaction, response, event)
        except StreamError:
            raise
        except (
            Exception
        ) as error:  # whatever it is: a transaction without an answer holds its client for a minute
            response = error_response(error, transaction.tx_id)
            self._complete(transaction, response, None)
        return response

    def _complete(self, transaction: Transaction, response: Response, event: Any) -> None:
        answer = wire.response.Response(
            status=response.status, message=response.message, payload=response.payload
        )
        transaction.finished = True
        transaction.send(wire.Message.COMPLETED, answer.SerializeToString(), event)
