"""The learner's end of the broker's socket: asks one verb at a time, and ends with the broker."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from learner.outcome import Exit, StopError, ends_with
from protocol.broker import frames
from protocol.broker.messages import Answer, BrokerRefusal, Request, Verb, read_answer


class Broker:
    """One connection, used by one thread; a second one only watches that the other end is still there."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._read = frames.reader(connection.recv, StopError(Exit.BROKER, "the broker hung up"))
        self._asking = threading.Lock()
        self._over = False

    @classmethod
    def connect(cls, path: Path) -> Self:
        """Connect to the socket at a path."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with ends_with(Exit.BROKER):
            connection.connect(str(path))
        return cls(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        with suppress(OSError):
            # Wakes the thread that watches; closing alone would not.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def ask(self, request: Request) -> Answer:
        """Send a request and return its answer; a refusal, or a broker that is gone, ends the task."""
        raw = request.to_bytes()
        with self._asking, ends_with(Exit.BROKER):
            try:
                self._socket.sendall(raw)
                answer = read_answer(self._read, request.verb)
            except BaseException:
                self._over = True
                raise
            self._over = isinstance(answer, BrokerRefusal) or request.verb is Verb.COMPLETE
        if isinstance(answer, BrokerRefusal):
            raise StopError(
                Exit.BROKER, f"{request.verb} is refused: {answer.code}: {answer.cause}. {answer.remedy}"
            )
        return answer

    def watch(self, gone: Callable[[], None]) -> threading.Thread:
        """Call `gone` when the other end hangs up while nothing is asked: nobody waits for this task."""
        thread = threading.Thread(target=self._watch, args=(gone,), name="watch", daemon=True)
        thread.start()
        return thread

    def _watch(self, gone: Callable[[], None]) -> None:
        poll = select.poll()
        try:
            poll.register(self._socket, select.POLLRDHUP | select.POLLHUP)
        except ValueError:
            return  # closed before this thread began
        poll.poll()
        # Who is asking at this moment finds out by itself, and knows more.
        with self._asking:
            if not self._over:
                gone()
