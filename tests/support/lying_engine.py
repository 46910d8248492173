"""An engine that lies: a proxy on a unix socket that passes everything on and alters some answers."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
Alter = Callable[[str, Any], Any]
"""Takes the path of a request and the engine's answer; returns the answer to give."""


class _Engine(HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(ENGINE)


class _Handler(BaseHTTPRequestHandler):
    server: "_Proxy"
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(f"{self.command} {self.path}")
        real = _Engine("engine", timeout=300)
        real.request(self.command, self.path, body or None, dict(self.headers))
        answer = real.getresponse()
        said = answer.read()
        real.close()
        if answer.status == 200 and "json" in (answer.headers.get("Content-Type") or ""):
            said = json.dumps(self.server.alter(self.path, json.loads(said))).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing: the client is on a socket without an address."""

    def address_string(self) -> str:
        return "client"


class _Proxy(ThreadingUnixStreamServer):
    daemon_threads = True
    alter: Alter
    asked: list[str]


@contextmanager
def lying_engine(path: Path, alter: Alter) -> Iterator[list[str]]:
    """Serve at a path; yields what was asked, request by request."""
    with _Proxy(str(path), _Handler) as proxy:
        proxy.alter, proxy.asked = alter, []
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy.asked
        finally:
            proxy.shutdown()
            thread.join(10)
