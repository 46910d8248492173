"""Peers in the test's own process: real servers of the Gateway service with scripted answers."""

import socket
import threading
from collections import defaultdict, deque
from concurrent import futures
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partialmethod
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import any_pb2

from executor.ledger.gateway.client import Gateway
from executor.ledger.gateway.commits import Deadlines
from executor.ledger.gateway.identity import Identity
from executor.ledger.gateway.messages import common, gateway, gateway_service, proposal, response, transaction
from executor.ledger.gateway.peer import Peer
from executor.ledger.gateway.trust import Trust

METHODS = ("Evaluate", "Endorse", "Submit", "CommitStatus", "ChaincodeEvents")
VALID, CONFLICT, PHANTOM, POLICY = 0, 11, 12, 10
FIRST_BLOCK = 7
CHAIN: dict[str, int] = {}
"""The block of each transaction that was asked for; a test begins with an empty one."""
# How long anything may take before it counts as lost; a busy machine is slow, not wrong.
WAIT = 150
PATIENT = Deadlines(
    evaluate=WAIT, endorse=WAIT, submit=WAIT, commit=WAIT, agree=WAIT, own_lag=WAIT, another_peer=WAIT
)


def certificate(names=(), key=None):
    """A self-signed certificate and its key in PEM."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "peer")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
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


@cache
def authority(msp):
    """The signing authority of an organisation: its certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    return x509.load_pem_x509_certificate(certificate(key=key)[0]), key


def members(*msps):
    """The organisations of a channel with their authorities, as a gateway wants them."""
    return {msp: authority(msp)[0].public_bytes(serialization.Encoding.PEM) for msp in msps}


@cache
def signer(msp, unit="peer", issuer=None):
    """An identity of an organisation; `issuer` is the organisation whose authority issued it, if another."""
    key = ec.generate_private_key(ec.SECP256R1())
    root, root_key = authority(issuer or msp)
    name = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, unit),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{unit} of {msp}"),
        ]
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(root.subject, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(root_key, hashes.SHA256())
    )
    return Identity(msp, made.public_bytes(serialization.Encoding.PEM), key)


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


def endorsement(payload, by):
    """An identity's signature under a result."""
    return {"endorser": by.creator, "signature": by.sign(payload + by.creator)}


def result_of(signed, answer=b'{"done":true}', chaincode=None, status=200, proposal_hash=None):
    """What an endorser signs: the chaincode's answer, bound to the proposal."""
    proposed = proposal.Proposal.FromString(signed.proposal_bytes)
    header = common.Header.FromString(proposed.header)
    channel = common.ChannelHeader.FromString(header.channel_header)
    called = proposal.ChaincodeHeaderExtension.FromString(channel.extension).chaincode_id.name
    action = proposal.ChaincodeAction(
        response={"status": status, "payload": answer}, chaincode_id={"name": chaincode or called}
    )
    payload = proposal.ChaincodeProposalPayload.FromString(proposed.payload)
    payload.ClearField("TransientMap")
    digest = sha256(header.channel_header + header.signature_header + payload.SerializeToString()).digest()
    return response.ProposalResponsePayload(
        proposal_hash=digest if proposal_hash is None else proposal_hash, extension=action.SerializeToString()
    ).SerializeToString()


def prepared(signed, result, endorsements, edit=lambda payload: None):
    """Assemble the transaction of an endorsed proposal, as a peer does; `edit` may tamper with it."""
    proposed = proposal.Proposal.FromString(signed.proposal_bytes)
    called = proposal.ChaincodeProposalPayload.FromString(proposed.payload)
    called.ClearField("TransientMap")
    endorsed = transaction.ChaincodeActionPayload(
        chaincode_proposal_payload=called.SerializeToString(),
        action={"proposal_response_payload": result, "endorsements": endorsements},
    )
    payload = common.Payload(
        header=common.Header.FromString(proposed.header),
        data=transaction.Transaction(actions=[{"payload": endorsed.SerializeToString()}]).SerializeToString(),
    )
    edit(payload)
    return common.Envelope(payload=payload.SerializeToString())


def endorsed(*signers, edit=lambda payload: None, **result):
    """Endorse by these identities, whatever organisations are asked for; without any, by none."""

    def answer(request, context):
        made = result_of(request.proposed_transaction, **result)
        endorsements = [endorsement(made, one) for one in signers]
        return gateway.EndorseResponse(
            prepared_transaction=prepared(request.proposed_transaction, made, endorsements, edit)
        )

    return answer


def ordered(request, context):
    return gateway.SubmitResponse()


def committed(code=VALID, block=None):
    """Report a verdict; without a block, each transaction is in one of its own, the same at every peer."""

    def answer(request, context):
        tx_id = gateway.CommitStatusRequest.FromString(request.request).transaction_id
        number = CHAIN.setdefault(tx_id, FIRST_BLOCK + len(CHAIN)) if block is None else block
        return gateway.CommitStatusResponse(result=code, block_number=number)

    return answer


def announced(block, *names):
    events = [{"event_name": name, "tx_id": f"{name}-{block}", "payload": b"{}"} for name in names]
    return gateway.ChaincodeEventsResponse(block_number=block, events=events)


MSPS = ("Org1MSP", "Org2MSP", "Org3MSP", "Org4MSP")


CAUTIOUS = Trust()


def client_of(identity, peers, trust=CAUTIOUS, deadlines=PATIENT, msps=MSPS):
    """A gateway on a channel of these organisations, through some of their peers."""
    return Gateway(identity, peers, "channel", members(*msps), trust, deadlines)


class ScriptedPeer(gateway_service.GatewayServicer):
    """Answers each method by its script, then by its habit; remembers what it was asked."""

    def __init__(self, msp):
        self.msp = msp
        self.script = defaultdict(deque)
        self.habit = {
            "Evaluate": evaluated(b'{"asked":true}'),
            "Endorse": endorsed(signer(msp)),
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
