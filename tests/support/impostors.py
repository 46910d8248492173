"""Orderers and a peer that misbehave, served with TLS on this host; the network never hears of them."""

import datetime
import ipaddress
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fabric_protos.common import common_pb2
from fabric_protos.orderer import ab_pb2, ab_pb2_grpc
from fabric_protos.peer import proposal_response_pb2


class Rejecting(ab_pb2_grpc.AtomicBroadcastServicer):
    """Rejects every transaction, and keeps what it was given."""

    def __init__(self) -> None:
        self.received: list[Any] = []

    def Broadcast(self, request_iterator: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        for envelope in request_iterator:
            self.received.append(envelope)
            yield ab_pb2.BroadcastResponse(status=common_pb2.BAD_REQUEST, info="not today")


class Dying(Rejecting):
    """Takes a transaction and goes, without a word on what becomes of it."""

    def Broadcast(self, request_iterator: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        self.received.append(next(request_iterator))
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        yield ab_pb2.BroadcastResponse()


def nesting_peer(server: grpc.Server) -> None:
    """Make a server answer each proposal with groups within groups (CVE-2025-4565 of protobuf)."""
    start_of_group = bytes([0x83, 0x06])
    _endorser(server, lambda request, context: start_of_group * 5000)


def forging_peer(payload: bytes) -> Callable[[grpc.Server], None]:
    """Make a server answer each proposal with the same lie."""
    lie = proposal_response_pb2.ProposalResponse(response={"status": 200, "payload": payload})
    return lambda server: _endorser(server, lambda request, context: bytes(lie.SerializeToString()))


def silent_peer(server: grpc.Server) -> None:
    """Make a server take each proposal and never answer."""

    def wait(request: bytes, context: grpc.ServicerContext) -> bytes:
        gone = Event()
        context.add_callback(gone.set)
        gone.wait()
        return b""

    _endorser(server, wait)


def _endorser(server: grpc.Server, answer: Callable[[bytes, grpc.ServicerContext], bytes]) -> None:
    handler = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("protos.Endorser", {"ProcessProposal": handler})]
    )


def orderer(servicer: Rejecting) -> Callable[[grpc.Server], None]:
    """Make a server an orderer."""
    return lambda server: ab_pb2_grpc.add_AtomicBroadcastServicer_to_server(servicer, server)


@contextmanager
def serving(role: Callable[[grpc.Server], None], folder: Path) -> Iterator[dict[str, str]]:
    """Serve on a free port; yields how an hfc worker is told of the server."""
    key, certificate = _certificate()
    root = folder / "tlsca.pem"
    root.write_bytes(certificate)
    server = grpc.server(ThreadPoolExecutor(2))
    role(server)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
    server.start()
    try:
        yield {"address": f"127.0.0.1:{port}", "msp": "ImpostorMSP", "tls_root": str(root)}
    finally:
        server.stop(None)


def _certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "impostor")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, made.public_bytes(serialization.Encoding.PEM)
