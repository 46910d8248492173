"""An engine on a unix socket that says of itself what a test has it say, and can do nothing."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        body = json.dumps(self.server.answers.get(self.path.rpartition("/")[2], {})).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: the client is on a socket without an address."""


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True
    answers: dict[str, Any]


@contextmanager
def answering(path: Path, **answers: Any) -> Iterator[None]:
    """Serve at a path what the engine answers to `version` and `info`, by these names."""
    with _Server(str(path), _Handler) as server:
        server.answers = answers
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
