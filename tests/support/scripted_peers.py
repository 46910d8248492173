"""Peers in the test's own process: real servers of the Gateway service with scripted answers."""

import socket
import threading
from collections import defaultdict, deque
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partialmethod
from ipaddress import ip_address
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import any_pb2

from executor.ledger.gateway.commits import Deadlines
from executor.ledger.gateway.messages import common, gateway, gateway_service, proposal, response, transaction
from executor.ledger.gateway.peer import Peer

METHODS = ("Evaluate", "Endorse", "Submit", "CommitStatus", "ChaincodeEvents")
VALID, CONFLICT, PHANTOM, POLICY = 0, 11, 12, 10
# How long anything may take before it counts as lost; a busy machine is slow, not wrong.
WAIT = 150
PATIENT = Deadlines(evaluate=WAIT, endorse=WAIT, submit=WAIT, commit=WAIT, another_look=WAIT)


def certificate(names=(), key=None):
    """A self-signed certificate and its key in PEM."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "peer")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(name)) for name in names]), critical=False
        )
    made = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return made, key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


TLS = certificate(["127.0.0.1"])


@dataclass(frozen=True)
class Failure:
    """A gRPC error with what each peer said, as the Gateway service sends it."""

    status: grpc.StatusCode
    message: str = "it failed"
    said: tuple[tuple[str, str], ...] = ()

    def __call__(self, request, context):
        if self.said:
            context.set_trailing_metadata((("grpc-status-details-bin", self._packed()),))
        context.abort(self.status, self.message)

    def _packed(self):
        packed = b"\x08\x0a"
        for msp, message in self.said:
            detail = gateway.ErrorDetail(address=f"peer.{msp}:7051", msp_id=msp, message=message)
            one = any_pb2.Any()
            one.Pack(detail)
            raw = one.SerializeToString()
            packed += b"\x1a" + _varint(len(raw)) + raw
        return packed


def _varint(number):
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def evaluated(payload):
    return lambda request, context: gateway.EvaluateResponse(result={"status": 200, "payload": payload})


def prepared(signed, answer=b'{"done":true}', edit=lambda payload: None):
    """Assemble the transaction of an endorsed proposal, as a peer does; `edit` may tamper with it."""
    proposed = proposal.Proposal.FromString(signed.proposal_bytes)
    called = proposal.ChaincodeProposalPayload.FromString(proposed.payload)
    called.ClearField("TransientMap")
    action = proposal.ChaincodeAction(response={"status": 200, "payload": answer})
    endorsed = transaction.ChaincodeActionPayload(
        chaincode_proposal_payload=called.SerializeToString(),
        action={
            "proposal_response_payload": response.ProposalResponsePayload(
                extension=action.SerializeToString()
            ).SerializeToString()
        },
    )
    payload = common.Payload(
        header=common.Header.FromString(proposed.header),
        data=transaction.Transaction(actions=[{"payload": endorsed.SerializeToString()}]).SerializeToString(),
    )
    edit(payload)
    return common.Envelope(payload=payload.SerializeToString())


def endorsed(answer=b'{"done":true}', edit=lambda payload: None):
    return lambda request, context: gateway.EndorseResponse(
        prepared_transaction=prepared(request.proposed_transaction, answer, edit)
    )


def ordered(request, context):
    return gateway.SubmitResponse()


def committed(code=VALID, block=7):
    return lambda request, context: gateway.CommitStatusResponse(result=code, block_number=block)


def announced(block, *names):
    events = [{"event_name": name, "tx_id": f"{name}-{block}", "payload": b"{}"} for name in names]
    return gateway.ChaincodeEventsResponse(block_number=block, events=events)


class ScriptedPeer(gateway_service.GatewayServicer):
    """Answers each method by its script, then by its habit; remembers what it was asked."""

    def __init__(self, msp):
        self.msp = msp
        self.script = defaultdict(deque)
        self.habit = {
            "Evaluate": evaluated(b'{"peer":"%s"}' % msp.encode()),
            "Endorse": endorsed(),
            "Submit": ordered,
            "CommitStatus": committed(),
            "ChaincodeEvents": lambda request, context: iter(()),
        }
        self.asked = defaultdict(list)
        self.running = self.most = 0
        self.lock = threading.Lock()
        credentials = grpc.ssl_server_credentials([(TLS[1], TLS[0])])
        self.server = grpc.server(futures.ThreadPoolExecutor(32))
        gateway_service.add_GatewayServicer_to_server(self, self.server)
        port = self.server.add_secure_port("127.0.0.1:0", credentials)
        self.server.start()
        self.peer = Peer(f"127.0.0.1:{port}", msp, TLS[0])

    def then(self, method, *steps):
        self.script[method].extend(steps)
        return self

    def always(self, method, step):
        self.habit[method] = step
        return self

    def _answer(self, method, request, context):
        with self.lock:
            self.asked[method].append(request)
            self.running += 1
            self.most = max(self.most, self.running)
            step = self.script[method].popleft() if self.script[method] else self.habit[method]
        try:
            return step(request, context)
        finally:
            with self.lock:
                self.running -= 1


for method in METHODS:
    setattr(ScriptedPeer, method, partialmethod(ScriptedPeer._answer, method))


@contextmanager
def dead_peers(*msps):
    """Peers at addresses where nobody listens, and nobody can as long as they are held."""
    with ExitStack() as held:
        yield [Peer(_held_address(held), msp, TLS[0]) for msp in msps]


def _held_address(held):
    unused = held.enter_context(socket.socket())
    unused.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{unused.getsockname()[1]}"


def msp_folder(folder: Path, key=None, of=None):
    """An MSP folder as network/ makes it; `of` is the key that the certificate is for, if another."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    (folder / "signcerts").mkdir(parents=True)
    (folder / "keystore").mkdir()
    (folder / "signcerts/cert.pem").write_bytes(certificate(key=of or key)[0])
    (folder / "keystore/key.pem").write_bytes(certificate(key=key)[1])
    return folder
