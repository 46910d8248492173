"""A peer in the test's own process, which speaks Fabric's protocol to a real server over a socket."""

import json
import queue
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.memory.ledger import certificate

from chaincode.probe import Probe
from chaincode.shim import ChaincodeServer, wire
from chaincode.shim.identity import ATTRIBUTES_OID
from chaincode.shim.transaction import MAX_MESSAGE

# How long anything may take before it counts as lost; a busy machine is slow, not wrong.
WAIT = 150
M = wire.Message
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    # The certificates here are for this name, whatever the loopback address.
    ("grpc.ssl_target_name_override", "localhost"),
    # gRPC would obey the proxy variables of whoever runs the tests even on this host.
    ("grpc.enable_http_proxy", 0),
)


class Outcome:
    """What a transaction came to: the chaincode's response, its event, and the writes it would commit."""

    def __init__(self, message, writes):
        if message.type != M.COMPLETED:
            raise AssertionError(f"{wire.type_name(message)}: {message.payload!r}")
        answer = wire.parse(wire.response.Response, message.payload)
        self.status, self.payload, self.message = answer.status, answer.payload, answer.message
        self.event = message.chaincode_event if message.HasField("chaincode_event") else None
        self.writes = writes

    @property
    def json(self):
        return json.loads(self.payload)

    @property
    def code(self):
        return json.loads(self.message)["code"]


class Peer:
    """The peer's side: committed state, the rules of a v3.1 peer, and a record of every message received."""

    def __init__(self, address, credentials=None, batch=1000, page=100):
        self.state, self.changes, self.received, self.dropped = {}, {}, [], []
        self.chaincode_id = None
        self.script = {}  # message type -> function(peer, message) giving (type, payload), or None
        self.at_close = []  # functions that let go what a script holds, or its thread would outlive the test
        self.batch, self.page = batch, page
        self.ready, self.ended = threading.Event(), threading.Event()
        self._outbox, self._waiting, self._writes = queue.SimpleQueue(), {}, {}
        self._pending, self._iterators, self._lock = Counter(), {}, threading.Lock()
        # As in a peer, requests are served at the same time, so that two of one transaction can meet.
        self._threads = ThreadPoolExecutor(1024)
        make = grpc.insecure_channel if credentials is None else grpc.secure_channel
        self.channel = make(address, *([credentials] if credentials else []), options=OPTIONS)
        connect = self.channel.stream_stream(f"/{wire.CONNECT_SERVICE}/{wire.CONNECT_METHOD}")
        self.call = connect(iter(self._outbox.get, None))
        threading.Thread(target=self._read, daemon=True).start()

    def begin(self, *arguments, tx=None, transient=None, creator=None, kind=M.TRANSACTION, addressed=""):
        """Send a transaction; the future holds its outcome."""
        tx = tx or f"tx{len(self._waiting):04d}"
        raw = [a if isinstance(a, bytes) else str(a).encode() for a in arguments]
        payload = wire.chaincode.ChaincodeInput(args=raw).SerializeToString()
        future = Future()
        self._waiting[tx], self._writes[tx] = future, {}
        self.send(
            kind,
            payload,
            tx,
            proposal=signed_proposal(transient or {}, TESTER if creator is None else creator, addressed),
        )
        return future

    def run(self, *arguments, **more):
        return self.begin(*arguments, **more).result(WAIT)

    def submit(self, *arguments, **more):
        """Run a transaction and commit what it wrote."""
        tx = more.setdefault("tx", f"tx{len(self._waiting):04d}")
        outcome = self.run(*arguments, **more)
        if outcome.status < 400:
            for key, value in outcome.writes.items():
                self.changes.setdefault(key, []).append((tx, value))
                if value is None:
                    self.state.pop(key, None)
                else:
                    self.state[key] = value
        return outcome

    def send(self, kind, payload=b"", tx="", **fields):
        message = M(type=kind, payload=payload, txid=tx, channel_id="ch" if tx else "", **fields)
        self._outbox.put(message.SerializeToString())

    def close(self):
        for let_go in self.at_close:
            let_go()
        self._outbox.put(None)
        self.call.cancel()
        self.channel.close()

    def types(self, tx=None):
        return [wire.type_name(message) for message in self.received if tx is None or message.txid == tx]

    def _read(self):
        try:
            for raw in self.call:
                message = wire.parse(M, raw)
                self.received.append(message)
                self._handle(message)
        except grpc.RpcError as error:
            self.status = error
        self._threads.shutdown(wait=False)
        self.ended.set()

    def _handle(self, message):
        if message.type == M.REGISTER:
            self.chaincode_id = wire.parse(wire.chaincode.ChaincodeID, message.payload).name
            self.send(M.REGISTERED)
            self.send(M.READY, ready_payload(self.batch))
            self.ready.set()
        elif message.type in (M.COMPLETED, M.ERROR):
            future = self._waiting[message.txid]
            try:
                future.set_result(Outcome(message, self._writes[message.txid]))
            except AssertionError as error:
                future.set_exception(error)
        elif message.type != M.KEEPALIVE:
            self._threads.submit(self._try_answer, message)

    def _try_answer(self, message):
        try:
            self._answer(message)
        except Exception as error:  # the test waits for the transaction, not for this thread
            self._waiting[message.txid].set_exception(error)

    def _answer(self, message):
        with self._lock:  # a peer drops a request while another of the same transaction is pending
            if self._pending[message.txid]:
                self.dropped.append(message)
                return
            self._pending[message.txid] += 1
        scripted = self.script.get(message.type)
        answer = scripted(self, message) if scripted else (M.RESPONSE, self._serve(message))
        with self._lock:
            self._pending[message.txid] -= 1
        if answer is not None:
            self.send(answer[0], answer[1], message.txid)

    def _serve(self, message):
        return getattr(self, f"_{wire.type_name(message).lower()}")(message)

    def _get_state(self, message):
        return self.state.get(wire.parse(wire.shim.GetState, message.payload).key, b"")

    def _get_state_multiple(self, message):
        keys = wire.parse(wire.shim.GetStateMultiple, message.payload).keys
        values = [self.state.get(key, b"") for key in keys]
        return wire.shim.GetStateMultipleResult(values=values).SerializeToString()

    def _put_state(self, message):
        put = wire.parse(wire.shim.PutState, message.payload)
        self._writes[message.txid][put.key] = put.value
        return b""

    def _del_state(self, message):
        self._writes[message.txid][wire.parse(wire.shim.DelState, message.payload).key] = None
        return b""

    def _write_batch_state(self, message):
        for record in wire.parse(wire.shim.WriteBatchState, message.payload).rec:
            put = record.type == wire.shim.WriteRecord.PUT_STATE
            self._writes[message.txid][record.key] = record.value if put else None
        return b""

    def _get_state_by_range(self, message):
        asked = wire.parse(wire.shim.GetStateByRange, message.payload)
        paging = wire.parse(wire.shim.QueryMetadata, asked.metadata)
        start = (paging.bookmark or asked.startKey).encode()
        keys = sorted(self.state, key=str.encode)
        keys = [
            k
            for k in keys
            if k.encode() >= start and (not asked.endKey or k.encode() < asked.endKey.encode())
        ]
        bookmark = ""
        if paging.pageSize:
            bookmark = keys[paging.pageSize] if len(keys) > paging.pageSize else ""
            keys = keys[: paging.pageSize]
        results = [wire.queryresult.KV(key=key, value=self.state[key]).SerializeToString() for key in keys]
        return self._part(results, bookmark, len(results) if paging.pageSize else self.page)

    def _get_history_for_key(self, message):
        key = wire.parse(wire.shim.GetHistoryForKey, message.payload).key
        make = wire.queryresult.KeyModification
        changes = [
            make(tx_id=tx, value=v or b"", is_delete=v is None)
            for tx, v in reversed(self.changes.get(key, []))
        ]
        return self._part([change.SerializeToString() for change in changes], "", self.page)

    def _query_state_next(self, message):
        return self._part(*self._iterators.pop(wire.parse(wire.shim.QueryStateNext, message.payload).id))

    def _query_state_close(self, message):
        identifier = wire.parse(wire.shim.QueryStateClose, message.payload).id
        self._iterators.pop(identifier)
        return wire.shim.QueryResponse(id=identifier).SerializeToString()

    def _part(self, results, bookmark, size):
        rest = results[size:]
        identifier = f"iterator{len(self.received)}"
        if rest:
            self._iterators[identifier] = (rest, bookmark, size)
        metadata = wire.shim.QueryResponseMetadata(bookmark=bookmark).SerializeToString()
        parts = [wire.shim.QueryResultBytes(resultBytes=result) for result in results[:size]]
        made = wire.shim.QueryResponse(results=parts, has_more=bool(rest), id=identifier, metadata=metadata)
        return made.SerializeToString()


def ready_payload(batch):
    if batch is None:
        return b""
    return wire.chaincode.ChaincodeAdditionalParams(
        use_write_batch=True,
        max_size_write_batch=batch,
        use_get_multiple_keys=True,
        max_size_get_multiple_keys=batch,
    ).SerializeToString()


# The probe writes for people with a role.
TESTER = wire.msp.SerializedIdentity(
    mspid="Org1MSP", id_bytes=certificate("tester", (("role", "admin"),))
).SerializeToString()


def signed_proposal(transient, creator, addressed, time=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)):
    identifier = wire.chaincode.ChaincodeID(name=addressed)
    extension = wire.proposal.ChaincodeHeaderExtension(chaincode_id=identifier).SerializeToString()
    channel = wire.common.ChannelHeader(type=3, channel_id="ch", extension=extension)
    channel.timestamp.FromDatetime(time)
    signature = wire.common.SignatureHeader(creator=creator, nonce=b"n")
    header = wire.common.Header(
        channel_header=channel.SerializeToString(), signature_header=signature.SerializeToString()
    )
    payload = wire.proposal.ChaincodeProposalPayload(TransientMap=transient)
    made = wire.proposal.Proposal(header=header.SerializeToString(), payload=payload.SerializeToString())
    return wire.proposal.SignedProposal(proposal_bytes=made.SerializeToString())


class Authority:
    """A certificate authority that also issues Fabric CA attributes."""

    def __init__(self, name):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(
            self.name, self.key.public_key(), [(x509.BasicConstraints(True, 0), True)]
        )

    @property
    def pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name, attributes=None):
        """Return key and certificate as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        extensions = [(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)]
        if attributes is not None:
            raw = attributes if isinstance(attributes, bytes) else json.dumps({"attrs": attributes}).encode()
            extensions.append((x509.UnrecognizedExtension(ATTRIBUTES_OID, raw), False))
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key.public_key(), extensions)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private, certificate.public_bytes(serialization.Encoding.PEM)

    def _sign(self, subject, public, extensions):
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hashes.SHA256())


def identity(certificate, msp="Org1MSP"):
    return wire.msp.SerializedIdentity(mspid=msp, id_bytes=certificate).SerializeToString()


@pytest.fixture(scope="session")
def authority():
    return Authority("ca")


@pytest.fixture
def make_identity(authority):
    """Make the serialised identity of a caller with these Fabric CA attributes."""
    return lambda name="alice", attributes=None, msp="Org1MSP": identity(
        authority.issue(name, attributes)[1], msp
    )


@pytest.fixture
def serve():
    """Serve a contract without TLS and connect peers to it; everything is stopped afterwards."""
    servers, peers = [], []

    def start(contract=None, peer=True, tls=None, **options):
        server = ChaincodeServer(contract or Probe(), "probe_1:abc", "127.0.0.1:0", tls)
        port = server.start()
        servers.append(server)
        if not peer:
            return server, f"127.0.0.1:{port}"
        made = connect(f"127.0.0.1:{port}", **options)
        return server, made

    def connect(address, credentials=None, **options):
        made = Peer(address, credentials, **options)
        peers.append(made)
        if credentials is None:
            assert made.ready.wait(WAIT)
        return made

    start.connect = connect
    yield start
    for made in peers:
        made.close()
    for server in servers:
        server.stop(0)


@pytest.fixture
def peer(serve):
    """A current peer (batches of 1000) connected to the probe."""
    return serve()[1]
