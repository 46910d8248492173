"""A channel in memory: real contracts behind the shim's real context, with the rules of a Fabric ledger.

Only gRPC is replaced. A transaction reads committed state and never its own writes; its read set is checked
when its block commits (MVCC, phantoms included); a refused transaction writes nothing; a chaincode that is
already part of a transaction cannot be called again by one it called. The peers of a collection's members
hold its values, all others the hashes alone; what too few organisations endorsed is invalid. An answer larger
than a message ends the stream, and with it every transaction under way.

    ledger = Ledger(Image(), Orchestration())
    alice = ledger.member("alice", "Org1MSP", role="data-scientist")
    alice.submit("image", "Register", ...)            # endorsed, then a block of its own
    answer = alice.evaluate("image", "Get", ...)      # parsed JSON
    alice.code("image", "Get", "absent", "1")         # the code of the refusal
    ledger.commit([a.endorse(...), b.endorse(...)])   # several transactions in one block
    a.submit(..., endorsers=("Org2MSP", "Org3MSP"))   # endorsed by these alone; by all where nothing is said
    a.evaluate(..., peer="Org3MSP")                   # at another organisation's peer than the caller's own
"""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import combinations

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chaincode.shim import Context, Endorsement, PeerError, StreamError, n_of, peer_of, wire
from chaincode.shim.identity import ATTRIBUTES_OID
from chaincode.shim.transaction import MAX_MESSAGE
from chaincode.shim.writes import PeerLimits
from protocol.agreement.collections import own, trees

M = wire.Message
START = datetime(2026, 11, 16, tzinfo=UTC)
CERTIFICATE_DAYS = 365
VALID, MVCC_CONFLICT, PHANTOM = "VALID", "MVCC_READ_CONFLICT", "PHANTOM_READ_CONFLICT"
POLICY_FAILURE = "ENDORSEMENT_POLICY_FAILURE"
IMPLICIT = "_implicit_org_"
PART = 100
# The same in every interpreter, so that two of them can be compared byte for byte.
KEY = ec.derive_private_key(7, ec.SECP256R1())
AUTHORITY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


class RefusedError(Exception):
    """The contract said no; `code` and `status` are what a client sees."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        found = json.loads(message)
        self.code, self.sentence = found["code"], found["message"]
        assert self.sentence not in ("", "None"), f"{self.code} says no cause"


class InvalidatedError(Exception):
    """The transaction was endorsed and then found invalid in its block."""


@dataclass
class Endorsed:
    """What an endorsing peer signs: the response and the read and write sets, by chaincode."""

    tx_id: str
    time: datetime
    status: int
    payload: bytes
    message: str
    event: tuple | None = None
    reads: dict = field(default_factory=dict)
    ranges: list = field(default_factory=list)
    writes: dict = field(default_factory=dict)
    policies: dict = field(default_factory=dict)
    endorsers: tuple | None = None

    @property
    def json(self):
        return json.loads(self.payload) if self.payload else None

    @property
    def bytes(self):
        """Everything two peers must agree on."""
        parts = (self.status, self.payload, self.message, self.event, self.reads, self.ranges, self.writes,
                 self.policies)  # fmt: skip
        return repr(parts).encode()


class Ledger:
    """The committed state of one channel and the contracts deployed on it.

    Private data is in the state under the namespace `chaincode$collection`.
    """

    organisations = ("Org1MSP", "Org2MSP", "Org3MSP")

    def __init__(self, *contracts):
        self.contracts = {contract.name: contract for contract in contracts}
        # Name -> the organisations whose peers hold it; Fabric's implicit ones need no entry.
        self.collections = {own(name): (name,) for name in self.organisations}
        for size in range(len(self.organisations) // 2 + 1, len(self.organisations) + 1):
            for members in combinations(self.organisations, size):
                self.collections |= {trees(members, blocks): members for blocks in (0, 1000)}
        self.state, self.versions, self.changes, self.policies = {}, {}, {}, {}
        self.events, self.blocks, self.time, self.count = [], 0, START, 0
        # How many changes were read for histories.
        self.sent = 0

    def member(self, name, organisation, **attributes):
        """An identity whose certificate carries these Fabric CA attributes."""
        return Member(self, name, organisation, certificate(name, tuple(sorted(attributes.items()))))

    def endorse(
        self, creator, chaincode, *arguments, tx_id=None, time=None, transient=None, peer=None, endorsers=None
    ):
        """Run a transaction on committed state and return what a peer would sign."""
        if tx_id is None:
            self.count += 1
            tx_id = hashlib.sha256(b"tx%d" % self.count).hexdigest()
        time = time or self.time
        raw = [part if isinstance(part, bytes) else encode(part) for part in arguments]
        peer = peer or wire.msp.SerializedIdentity.FromString(creator).mspid
        simulation = Simulation(self, tx_id, proposal(creator, chaincode, time, transient or {}), peer)
        answer, event = simulation.run(chaincode, raw, ())
        made = Endorsed(
            tx_id, time, answer.status, answer.payload, answer.message, event, endorsers=endorsers
        )
        if answer.status < 400:
            made.reads, made.ranges, made.writes = simulation.reads, simulation.ranges, simulation.writes
            made.policies = simulation.policies
        return made

    def commit(self, block):
        """Validate the transactions of a block in order and apply the valid ones; returns the verdicts."""
        verdicts = []
        self.blocks += 1
        for number, tx in enumerate(block):
            if tx.status >= 400:
                raise RefusedError(tx.status, tx.message)
            verdict = self._verdict(tx)
            verdicts.append(verdict)
            if verdict == VALID:
                self._apply(tx, (self.blocks, number))
        self.time += timedelta(seconds=1)
        return verdicts

    def members(self, collection):
        """The organisations whose peers hold a collection."""
        if collection.startswith(IMPLICIT):
            return (collection.removeprefix(IMPLICIT),)
        if collection not in self.collections:
            raise PeerError("private data", f"collection {collection} could not be found")
        return self.collections[collection]

    def _endorsed(self, tx):
        """Whether each key's policy holds: its own, its organisation's collection's, or the channel's."""
        for namespace, key in {**tx.writes, **tx.policies}:
            _, _, collection = namespace.partition("$")
            rule = majority(self.organisations)
            if collection.startswith((IMPLICIT, "own-")):
                rule = peer_of(*self.members(collection))
            if (namespace, key) in self.policies:
                rule = Endorsement.from_bytes(self.policies[namespace, key])
            if not satisfied(rule, tx.endorsers):
                return False
        return True

    def _verdict(self, tx):
        if tx.endorsers is not None and not self._endorsed(tx):
            return POLICY_FAILURE
        if any(self.versions.get(place) != version for place, version in tx.reads.items()):
            return MVCC_CONFLICT
        for namespace, start, end, found in tx.ranges:
            if self.keys(namespace, start, end) != [key for key, _ in found] or any(
                self.versions.get((namespace, key)) != version for key, version in found
            ):
                return PHANTOM
        return VALID

    def _apply(self, tx, version):
        for place, value in tx.writes.items():
            self.changes.setdefault(place, []).append((tx.tx_id, tx.time, value))
            if value is None:
                self.state.pop(place, None)
                self.versions.pop(place, None)
                self.policies.pop(place, None)
            else:
                self.state[place], self.versions[place] = value, version
        # As in Fabric, what no key has a value for gets no policy.
        self.policies |= {place: policy for place, policy in tx.policies.items() if place in self.state}
        if tx.event:
            self.events.append(tx.event)

    def keys(self, namespace, start, end):
        found = [key for space, key in self.state if space == namespace]
        inside = [
            key
            for key in found
            if start.encode() <= key.encode() and (not end or key.encode() < end.encode())
        ]
        return sorted(inside, key=str.encode)


@dataclass(frozen=True)
class Member:
    """A caller: one certificate of one organisation."""

    ledger: Ledger
    name: str
    organisation: str
    pem: bytes

    @property
    def creator(self):
        return wire.msp.SerializedIdentity(mspid=self.organisation, id_bytes=self.pem).SerializeToString()

    def endorse(self, chaincode, *arguments, **more):
        return self.ledger.endorse(self.creator, chaincode, *arguments, **more)

    def submit(self, chaincode, *arguments, **more):
        """Endorse and commit in a block of its own; returns the parsed answer or raises."""
        endorsed = self.endorse(chaincode, *arguments, **more)
        (verdict,) = self.ledger.commit([endorsed])
        if verdict != VALID:
            raise InvalidatedError(verdict)
        return endorsed.json

    def evaluate(self, chaincode, *arguments, **more):
        """Read; returns the parsed answer or raises."""
        endorsed = self.endorse(chaincode, *arguments, **more)
        if endorsed.status >= 400:
            raise RefusedError(endorsed.status, endorsed.message)
        return endorsed.json

    def code(self, chaincode, *arguments, **more):
        """The code of the refusal that this call must meet; nothing is committed."""
        endorsed = self.endorse(chaincode, *arguments, **more)
        assert endorsed.status >= 400, f"accepted: {endorsed.payload!r}"
        assert not endorsed.writes
        return json.loads(endorsed.message)["code"]


class Simulation:
    """One transaction on one peer, with every chaincode it calls."""

    def __init__(self, ledger, tx_id, signed, peer):
        self.ledger, self.tx_id, self.signed, self.peer = ledger, tx_id, signed, peer
        self.reads, self.ranges, self.writes, self.policies = {}, [], {}, {}
        self.paged = ""

    def run(self, chaincode, arguments, callers):
        """Do what the shim's session does with a transaction; returns response and event."""
        contract = self.ledger.contracts[chaincode]
        ctx = Context(Line(self, chaincode, callers), arguments, self.signed, PeerLimits(1000, 1000))
        answer = contract.invoke(ctx)
        event = None
        if answer.status < 400:
            ctx.flush()
            if ctx.event:
                event = (chaincode, ctx.event.event_name, ctx.event.payload)
        return answer, event


class Line:
    """The peer's end of one chaincode's conversation: takes the place of the shim's Transaction."""

    channel = "attestree"

    def __init__(self, simulation, namespace, callers):
        self.simulation, self.namespace, self.callers = simulation, namespace, callers
        self.ledger, self.tx_id = simulation.ledger, simulation.tx_id
        self.iterators = {}

    def call(self, kind, payload):
        answer = getattr(self, f"_{M.Type.Name(kind).lower()}")(payload)
        if len(answer) > MAX_MESSAGE:
            raise StreamError(f"the peer cannot send {len(answer)} bytes, and ends the stream")
        return answer

    def _place(self, key, collection="", private=True):
        """Where a key is; a peer outside the collection can neither read nor write it."""
        if not collection:
            return self.namespace, key
        members = self.ledger.members(collection)
        if private and self.simulation.peer not in members:
            raise PeerError("private data", "private data matching public hash version is not available")
        return f"{self.namespace}${collection}", key

    def _read(self, place):
        self.simulation.reads[place] = self.ledger.versions.get(place)
        return self.ledger.state.get(place, b"")

    def _get_state(self, payload):
        asked = wire.parse(wire.shim.GetState, payload)
        return self._read(self._place(asked.key, asked.collection))

    def _get_state_multiple(self, payload):
        asked = wire.parse(wire.shim.GetStateMultiple, payload)
        values = [self._read(self._place(key, asked.collection, private=False)) for key in asked.keys]
        if asked.collection and self.simulation.peer not in self.ledger.members(asked.collection):
            values = [b""] * len(values)  # as a v3.1 peer does, which refuses single keys alone
        return wire.shim.GetStateMultipleResult(values=values).SerializeToString()

    def _get_private_data_hash(self, payload):
        asked = wire.parse(wire.shim.GetState, payload)
        value = self._read(self._place(asked.key, asked.collection, private=False))
        return hashlib.sha256(value).digest() if value else b""

    def _get_state_metadata(self, payload):
        place = self._place(wire.parse(wire.shim.GetStateMetadata, payload).key)
        self._read(place)
        entries = []
        if place in self.ledger.policies:
            policy = self.ledger.policies[place]
            entries.append(wire.shim.StateMetadata(metakey="VALIDATION_PARAMETER", value=policy))
        return wire.shim.StateMetadataResult(entries=entries).SerializeToString()

    def _write_batch_state(self, payload):
        # A peer cannot check at commit what a page or a private range held, so it takes no write after one.
        if self.simulation.paged:
            raise PeerError("write", f"transaction has already performed {self.simulation.paged}")
        for record in wire.parse(wire.shim.WriteBatchState, payload).rec:
            # Whoever endorses a write has the value, whether its peer may keep it or not.
            place = self._place(record.key, record.collection, private=False)
            if record.type == wire.shim.WriteRecord.PUT_STATE_METADATA:
                self.simulation.policies[place] = record.metadata.value
            else:
                put = record.type == wire.shim.WriteRecord.PUT_STATE
                self.simulation.writes[place] = record.value if put else None
        return b""

    def _get_state_by_range(self, payload):
        asked = wire.parse(wire.shim.GetStateByRange, payload)
        paging = wire.parse(wire.shim.QueryMetadata, asked.metadata)
        namespace, start = self._place(paging.bookmark or asked.startKey, asked.collection)
        keys = self.ledger.keys(namespace, start, asked.endKey)
        bookmark = ""
        if asked.collection:
            self.simulation.paged = "a query on private data"
        if paging.pageSize:
            if self.simulation.writes:
                raise PeerError("page", "transaction has already performed writes")
            self.simulation.paged = "a paginated query"
            bookmark = keys[paging.pageSize] if len(keys) > paging.pageSize else ""
            keys = keys[: paging.pageSize]
        else:
            found = [(key, self.ledger.versions[(namespace, key)]) for key in keys]
            self.simulation.ranges.append((namespace, asked.startKey, asked.endKey, found))
        make = wire.queryresult.KV
        values = [make(key=key, value=self.ledger.state[(namespace, key)]) for key in keys]
        return response([value.SerializeToString() for value in values], bookmark)

    def _get_history_for_key(self, payload):
        key = wire.parse(wire.shim.GetHistoryForKey, payload).key
        results = []
        for tx_id, time, value in reversed(self.ledger.changes.get((self.namespace, key), [])):
            made = wire.queryresult.KeyModification(tx_id=tx_id, value=value or b"", is_delete=value is None)
            made.timestamp.FromDatetime(time)
            results.append(made.SerializeToString())
        return self._part(results)

    def _query_state_next(self, payload):
        return self._part(self.iterators.pop(wire.parse(wire.shim.QueryStateNext, payload).id))

    def _query_state_close(self, payload):
        del self.iterators[wire.parse(wire.shim.QueryStateClose, payload).id]
        return b""

    def _part(self, results):
        """Answer in parts, as a peer does, which says whether there is more."""
        self.ledger.sent += len(results[:PART])
        identifier = f"iterator{len(self.iterators)}"
        if rest := results[PART:]:
            self.iterators[identifier] = rest
        return response(results[:PART], identifier=identifier, has_more=bool(rest))

    def _invoke_chaincode(self, payload):
        specification = wire.parse(wire.chaincode.ChaincodeSpec, payload)
        called, callers = specification.chaincode_id.name, (*self.callers, self.namespace)
        if called == "_lifecycle":
            return M(type=M.COMPLETED, payload=self._definition().SerializeToString()).SerializeToString()
        if called not in self.ledger.contracts:
            text = f"chaincode {called} not found".encode()
            return M(type=M.ERROR, payload=text).SerializeToString()
        if called in callers:
            text = f"txid: {self.tx_id}({self.channel}) exists".encode()
            return M(type=M.ERROR, payload=text).SerializeToString()
        answer, _ = self.simulation.run(called, list(specification.input.args), callers)
        made = wire.response.Response(status=answer.status, message=answer.message, payload=answer.payload)
        return M(type=M.COMPLETED, payload=made.SerializeToString()).SerializeToString()

    def _definition(self):
        approvals = dict.fromkeys(self.ledger.organisations, True)
        found = wire.lifecycle.QueryChaincodeDefinitionResult(sequence=1, approvals=approvals)
        return wire.response.Response(status=200, payload=found.SerializeToString())


def majority(organisations):
    return n_of(len(organisations) // 2 + 1, *map(peer_of, organisations))


def satisfied(rule, endorsers):
    """Whether these organisations' endorsements are enough."""
    if rule.organisation:
        return rule.organisation in endorsers
    return sum(satisfied(each, endorsers) for each in rule.rules) >= rule.count


def response(results, bookmark="", identifier="iterator", has_more=False):
    metadata = wire.shim.QueryResponseMetadata(bookmark=bookmark).SerializeToString()
    parts = [wire.shim.QueryResultBytes(resultBytes=result) for result in results]
    made = wire.shim.QueryResponse(results=parts, id=identifier, metadata=metadata, has_more=has_more)
    return made.SerializeToString()


def encode(part):
    """Write an argument as a client would: text as it is, everything else as JSON."""
    return part.encode() if isinstance(part, str) else json.dumps(part).encode()


def proposal(creator, chaincode, time, transient):
    identifier = wire.chaincode.ChaincodeID(name=chaincode)
    extension = wire.proposal.ChaincodeHeaderExtension(chaincode_id=identifier).SerializeToString()
    channel = wire.common.ChannelHeader(type=3, channel_id=Line.channel, extension=extension)
    channel.timestamp.FromDatetime(time)
    signature = wire.common.SignatureHeader(creator=creator, nonce=b"nonce")
    header = wire.common.Header(
        channel_header=channel.SerializeToString(), signature_header=signature.SerializeToString()
    )
    payload = wire.proposal.ChaincodeProposalPayload(TransientMap=transient)
    made = wire.proposal.Proposal(header=header.SerializeToString(), payload=payload.SerializeToString())
    return wire.proposal.SignedProposal(proposal_bytes=made.SerializeToString())


@cache
def certificate(name, attributes):
    """Make a certificate with Fabric CA attributes; all have one key, as nobody verifies here."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(START - timedelta(days=1))
        .not_valid_after(START + timedelta(days=CERTIFICATE_DAYS))
    )
    if attributes:
        raw = json.dumps({"attrs": dict(attributes)}).encode()
        builder = builder.add_extension(x509.UnrecognizedExtension(ATTRIBUTES_OID, raw), critical=False)
    return builder.sign(AUTHORITY, None).public_bytes(serialization.Encoding.PEM)
