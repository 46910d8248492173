"""The broker: the one door of a learner's container, a unix socket that understands four verbs.

It serves one connection, takes each verb in its order and once, reads nothing whose size it has not checked,
and hands every request to the relay, which verifies it and speaks to the ledger. What goes wrong is told the
learner and kept as `failure`, so that the executor can say why the task came to nothing, and whose fault it
was: a connection that ends is the learner's doing, a disk that is full is this host's.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, Self

from executor.errors import TaskError, host_failed
from protocol.broker import frames
from protocol.broker.answers import SlotsAnswer, TaskAnswer
from protocol.broker.messages import Answer, BrokerRefusal, Request, Verb
from protocol.errors import AttestreeError, FrameError

SOCKET_MODE = 0o666
"""Any user may connect, since the container's user does not exist on the host; the directory is private."""


class Verbs(Protocol):
    """Who answers the four verbs."""

    def task(self) -> TaskAnswer:
        """Say which task to run."""

    def share(self, signature: bytes, share: bytes) -> None:
        """Put a signed share on the ledger."""

    def slots(self) -> SlotsAnswer:
        """Return what the neighbours offer, as soon as that is decided."""

    def complete(self, signature: bytes, result: bytes, state: bytes) -> None:
        """Keep the state and put the signed result on the ledger."""

    def stop(self) -> None:
        """Wait for nobody any more: the learner is gone."""


class BrokerServer:
    """Serves the four verbs on a socket, in a thread of its own, until the learner is done or gone."""

    def __init__(self, path: Path, verbs: Verbs, shares: bool) -> None:
        self.learner_seconds = 0.0
        """How long the learner worked after its first question, waiting for answers excepted."""
        self.first_question: float | None = None
        self.last_answer: float | None = None
        """When they came, by the monotonic clock."""
        self._verbs = verbs
        self._expected = [Verb.TASK, *([Verb.SHARE, Verb.SLOTS] if shares else []), Verb.COMPLETE]
        self._listener = socket.socket(socket.AF_UNIX)
        _bind(self._listener, path)
        path.chmod(SOCKET_MODE)
        self._listener.listen(1)
        self._connection: socket.socket | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"broker {path.parent.name}")
        self._served: Future[None] | None = None

    def __enter__(self) -> Self:
        self._served = self._pool.submit(self._serve)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up and wait until a request that is under way has been answered by the ledger."""
        self._verbs.stop()
        for end in (self._listener, self._connection):
            if end is not None:
                _shut(end)
        self._pool.shutdown()

    @property
    def failure(self) -> AttestreeError | None:
        """Why the task cannot come to a result, once the broker is closed; None if that is not known here."""
        error = None if self._served is None else self._served.exception()
        if error is None or isinstance(error, AttestreeError):
            return error
        if isinstance(error, OSError):
            return host_failed(error)
        # What nobody foresaw is a fault of the executor, and never the learner's.
        return TaskError("EXECUTOR_FAULT", f"the executor failed with {type(error).__name__}")

    def _serve(self) -> None:
        with contextlib.suppress(_HungUpError), self._listener:
            with _hearing():
                connection, _ = self._listener.accept()
            self._connection = connection
            with connection:
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        try:
            while self._expected:
                self._answer(connection)
        except AttestreeError as error:
            _send(connection, BrokerRefusal.of(error).to_bytes())
            raise

    def _answer(self, connection: socket.socket) -> None:
        with _hearing():
            request = Request.read(
                frames.reader(connection.recv, ConnectionResetError("the learner hung up"))
            )
        asked = time.monotonic()
        self.first_question = self.first_question or asked
        self.learner_seconds += asked - (self.last_answer or asked)
        if request.verb is not self._expected[0]:
            raise FrameError("FRAME_VERB", f"{request.verb} was asked where {self._expected[0]} is due")
        try:
            answer = self._answers()[request.verb](request)
        except ConnectionAbortedError as error:
            raise _HungUpError from error  # nobody waits for the neighbours any more
        self._expected.pop(0)
        with _hearing():
            connection.sendall(answer.to_bytes())
        self.last_answer = time.monotonic()

    def _answers(self) -> dict[Verb, Callable[[Request], Answer]]:
        verbs = self._verbs

        def done(verb: Verb, act: Callable[[], None]) -> Answer:
            act()
            return Answer(verb)

        return {
            Verb.TASK: lambda _: verbs.task().to_answer(),
            Verb.SHARE: lambda asked: done(asked.verb, lambda: verbs.share(asked.signature, asked.blobs[0])),
            Verb.SLOTS: lambda _: verbs.slots().to_answer(),
            Verb.COMPLETE: lambda asked: done(
                asked.verb, lambda: verbs.complete(asked.signature, asked.blobs[0], asked.blobs[1])
            ),
        }


class _HungUpError(Exception):
    """The learner, or the executor, has ended the conversation."""


@contextlib.contextmanager
def _hearing() -> Iterator[None]:
    """Tell an error of the connection itself, which ends the conversation, from one of what it asks for."""
    try:
        yield
    except OSError as error:
        raise _HungUpError from error


def _bind(listener: socket.socket, path: Path) -> None:
    """Bind by way of the open directory: a socket's address holds 107 bytes, and a path may be longer."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


def _send(connection: socket.socket, message: bytes) -> None:
    with contextlib.suppress(OSError):  # nobody may be left to hear it
        connection.sendall(message)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
