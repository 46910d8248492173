"""A broker on a real unix socket, whose answers the test decides."""

import socket
import threading
from contextlib import contextmanager
from pathlib import Path

from protocol.broker.messages import Request


class HangUpError(Exception):
    """The broker goes away instead of answering."""


class BrokerDouble:
    """Answers one connection, request by request, with the bytes a function returns."""

    def __init__(self, path, answer):
        self.answer, self.asked, self.failure = answer, [], None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rb") as stream:
            try:
                while stream.peek(1):
                    request = Request.read(stream.read)
                    self.asked.append(request)
                    connection.sendall(self.answer(request))
            except (HangUpError, OSError):
                return
            except Exception as failure:
                self.failure = failure

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(150)
        assert not self.thread.is_alive()
        if self.failure is not None:
            raise self.failure


@contextmanager
def serving(directory, answer):
    """Serve at `broker.sock` in the directory while the block runs."""
    path = Path(directory) / "broker.sock"
    path.unlink(missing_ok=True)
    broker = BrokerDouble(path, answer)
    try:
        yield broker
    finally:
        broker.close()
