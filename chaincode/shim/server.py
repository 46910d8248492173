"""A chaincode as a service: the gRPC server that peers connect to."""

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc

from . import wire
from .errors import MisuseError
from .runners import Greenlets, Runner, Threads
from .session import Chaincode, Session
from .stream import open_stream
from .transaction import MAX_MESSAGE

log = logging.getLogger("shim")

# A thread is held while its transaction waits for the peer, and costs little then.
THREADS = 256
# More than a peer runs at once (2,500), so that no transaction waits for the end of another, which it may be
# part of through calls between chaincodes.
GREENLETS = 4096
# One per peer in practice; a peer that vanished holds one until keep-alive finds out.
STREAMS = 16

OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    # A second server on the port would take a share of the connections; better to fail at the start.
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # How often peers ping is theirs to choose: punishing it would end everybody's transactions.
    ("grpc.http2.max_ping_strikes", 0),
)


@dataclass(frozen=True)
class Tls:
    """PEM texts: the server's key and certificate, and the roots of the peers' client certificates."""

    key: bytes = field(repr=False)
    certificate: bytes
    client_roots: bytes

    def credentials(self) -> grpc.ServerCredentials:
        """Make credentials that refuse every client without a certificate from the roots."""
        if not (self.key and self.certificate and self.client_roots):
            raise MisuseError("TLS needs a key, a certificate and the roots of the clients' certificates")
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)], self.client_roots, require_client_auth=True
        )


class ChaincodeServer:
    """Serves one chaincode on one address to any number of peers."""

    def __init__(
        self,
        chaincode: Chaincode,
        chaincode_id: str,
        listen: str,
        tls: Tls | None,
    ) -> None:
        self._chaincode = chaincode
        self._chaincode_id = chaincode_id
        self.address = listen
        self._tls = tls
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="transaction")
        self._sessions: set[Session] = set()
        self._lock = threading.Lock()
        self._stopping = False
        streams = ThreadPoolExecutor(STREAMS, thread_name_prefix="stream")
        self._server = grpc.server(streams, options=OPTIONS, maximum_concurrent_rpcs=STREAMS)
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._connect)
        service = grpc.method_handlers_generic_handler(wire.CONNECT_SERVICE, {wire.CONNECT_METHOD: handler})
        self._server.add_generic_rpc_handlers((service,))

    def start(self) -> int:
        """Listen; returns the port, which the system chose if the address asked for port 0."""
        try:
            if self._tls is None:
                port = self._server.add_insecure_port(self.address)
            else:
                port = self._server.add_secure_port(self.address, self._tls.credentials())
        except RuntimeError as error:
            raise MisuseError(
                f"cannot listen on {self.address}; it is taken or not an address of this host"
            ) from error
        self._server.start()
        self.address = f"{self.address.rpartition(':')[0]}:{port}"
        return port

    def stop(self, seconds: float) -> bool:
        """Let running transactions finish for so long, then end; False if some had to be abandoned."""
        deadline = time.monotonic() + seconds
        with self._lock:
            self._stopping = True
            sessions = list(self._sessions)
        # Every session refuses new work at once; waiting for the first must not let the others begin more.
        finished = [True] * len(sessions)

        def drain(index: int, session: Session) -> None:
            finished[index] = session.drain(max(0.0, deadline - time.monotonic()))

        threads = [threading.Thread(target=drain, args=pair) for pair in enumerate(sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._server.stop(grace=1.0).wait()
        self._pool.shutdown(wait=False, cancel_futures=True)
        return all(finished)

    def _connect(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """Hold one stream, from the handler's thread that gRPC gives it."""
        with self._lock:
            if self._stopping:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the chaincode is stopping")
            stream = open_stream(requests, context)
            session = Session(self._chaincode, self._chaincode_id, self._runner(), stream, context.peer())
            self._sessions.add(session)
        if not context.add_callback(lambda: self._forget(session)):
            self._forget(session)
        return stream.run(session)

    def _runner(self) -> Runner:
        return Greenlets(GREENLETS) if self._chaincode.cooperative else Threads(self._pool)

    def _forget(self, session: Session) -> None:
        with self._lock:
            self._sessions.discard(session)
