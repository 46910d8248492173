"""A small client of a peer's Gateway service, for tests that need many calls at once from one process."""

import json
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import grpc
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from fabric_protos.common import common_pb2 as common
from fabric_protos.gateway import gateway_pb2 as messages
from fabric_protos.gateway import gateway_pb2_grpc as service
from fabric_protos.msp import identities_pb2 as msp
from fabric_protos.orderer import ab_pb2 as orderer
from fabric_protos.peer import chaincode_pb2 as chaincode
from fabric_protos.peer import proposal_pb2 as proposals
from fabric_protos.peer import proposal_response_pb2 as responses
from fabric_protos.peer import transaction_pb2 as transactions

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
MESSAGE_LIMIT = 100 * 1024 * 1024
SECONDS = 60


class GatewayError(Exception):
    """A call failed; `code` is the chaincode's error code where the chaincode refused."""

    def __init__(self, error):
        details = [error.details()]
        for name, value in error.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                details += [messages.ErrorDetail.FromString(raw).message for raw in any_values(value)]
        super().__init__(" | ".join(details))
        self.status = error.code()
        self.code = next((code for text in details if (code := chaincode_code(text))), None)


@dataclass(frozen=True)
class Committed:
    """A transaction that reached a block, with its validation code (0 is valid)."""

    tx_id: str
    result: bytes
    code: int
    block: int


class Gateway:
    """One identity at one organisation's peer."""

    def __init__(
        self, state: Path, org: str, user: str = "admin", channel: str = "attestree", port: int | None = None
    ):
        folder = state / "organisations" / org
        certificate = (folder / "users" / user / "msp/signcerts/cert.pem").read_bytes()
        key = (folder / "users" / user / "msp/keystore/key.pem").read_bytes()
        self._key = serialization.load_pem_private_key(key, None)
        self._creator = msp.SerializedIdentity(
            mspid=f"Org{org.removeprefix('org')}MSP", id_bytes=certificate
        ).SerializeToString()
        self._channel_id = channel
        options = [
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
        ]
        credentials = grpc.ssl_channel_credentials((folder / "tlsca.pem").read_bytes())
        port = port or 7051 + 100 * int(org.removeprefix("org"))
        self._channel = grpc.secure_channel(f"localhost:{port}", credentials, options)
        self._stub = service.GatewayStub(self._channel)

    def close(self):
        self._channel.close()

    def evaluate(self, name, *arguments, transient=None, orgs=()):
        tx_id, signed = self._proposal(name, arguments, transient)
        request = messages.EvaluateRequest(
            transaction_id=tx_id,
            channel_id=self._channel_id,
            proposed_transaction=signed,
            target_organizations=orgs,
        )
        return _call(self._stub.Evaluate, request).result.payload

    def endorse(self, name, *arguments, transient=None, orgs=()):
        """Return the transaction id, the signed envelope and the chaincode's result."""
        tx_id, signed = self._proposal(name, arguments, transient)
        request = messages.EndorseRequest(
            transaction_id=tx_id,
            channel_id=self._channel_id,
            proposed_transaction=signed,
            endorsing_organizations=orgs,
        )
        envelope = _call(self._stub.Endorse, request).prepared_transaction
        envelope.signature = self._sign(envelope.payload)
        return tx_id, envelope, _result(envelope)

    def submit(self, name, *arguments, transient=None, orgs=()):
        """Endorse, order and wait for the block."""
        tx_id, envelope, result = self.endorse(name, *arguments, transient=transient, orgs=orgs)
        self.order(tx_id, envelope)
        return self.committed(tx_id, result)

    def order(self, tx_id, envelope):
        """Hand an endorsed transaction to the orderers."""
        request = messages.SubmitRequest(
            transaction_id=tx_id, channel_id=self._channel_id, prepared_transaction=envelope
        )
        _call(self._stub.Submit, request)

    def committed(self, tx_id, result=b""):
        """Wait for the block of an ordered transaction."""
        status = messages.CommitStatusRequest(
            transaction_id=tx_id, channel_id=self._channel_id, identity=self._creator
        ).SerializeToString()
        signed = messages.SignedCommitStatusRequest(request=status, signature=self._sign(status))
        answer = _call(self._stub.CommitStatus, signed)
        return Committed(tx_id, result, answer.result, answer.block_number)

    def events(self, name, block):
        """Iterate over (block number, event name, payload, transaction id) from a block on."""
        position = orderer.SeekPosition(specified=orderer.SeekSpecified(number=block))
        request = messages.ChaincodeEventsRequest(
            channel_id=self._channel_id, chaincode_id=name, identity=self._creator, start_position=position
        ).SerializeToString()
        signed = messages.SignedChaincodeEventsRequest(request=request, signature=self._sign(request))
        for answer in self._stub.ChaincodeEvents(signed, timeout=SECONDS):
            for event in answer.events:
                yield answer.block_number, event.event_name, event.payload, event.tx_id

    def _proposal(self, name, arguments, transient):
        nonce = secrets.token_bytes(24)
        tx_id = sha256(nonce + self._creator).hexdigest()
        identifier = chaincode.ChaincodeID(name=name)
        raw = [argument if isinstance(argument, bytes) else str(argument).encode() for argument in arguments]
        specification = chaincode.ChaincodeInvocationSpec(
            chaincode_spec=chaincode.ChaincodeSpec(
                chaincode_id=identifier, input=chaincode.ChaincodeInput(args=raw)
            )
        )
        channel = common.ChannelHeader(
            type=common.ENDORSER_TRANSACTION,
            channel_id=self._channel_id,
            tx_id=tx_id,
            extension=proposals.ChaincodeHeaderExtension(chaincode_id=identifier).SerializeToString(),
        )
        channel.timestamp.GetCurrentTime()
        signature = common.SignatureHeader(creator=self._creator, nonce=nonce)
        header = common.Header(
            channel_header=channel.SerializeToString(), signature_header=signature.SerializeToString()
        )
        payload = proposals.ChaincodeProposalPayload(
            input=specification.SerializeToString(), TransientMap=transient or {}
        )
        made = proposals.Proposal(
            header=header.SerializeToString(), payload=payload.SerializeToString()
        ).SerializeToString()
        return tx_id, proposals.SignedProposal(proposal_bytes=made, signature=self._sign(made))

    def _sign(self, message):
        """Sign with the low S that Fabric insists on."""
        r, s = utils.decode_dss_signature(self._key.sign(message, ec.ECDSA(hashes.SHA256())))
        return utils.encode_dss_signature(r, min(s, P256_ORDER - s))


def chaincode_code(text):
    """Find the code in an error text that ends with a chaincode's JSON error."""
    start = text.find('{"code":')
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]["code"]
    except (ValueError, KeyError, TypeError):
        return None


def any_values(raw):
    """Yield the details of a google.rpc.Status: field 3, each an Any with its value in field 2."""
    for number, content in fields(raw):
        if number == 3:
            yield from (value for inner, value in fields(content) if inner == 2)


def fields(raw):
    """Walk the length-delimited fields of a protobuf message; varints are skipped."""
    position = 0

    def varint():
        nonlocal position
        value = shift = 0
        while True:
            byte = raw[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(raw):
        tag = varint()
        if tag & 7 == 0:
            varint()
        else:
            length = varint()
            yield tag >> 3, raw[position : position + length]
            position += length


def _call(method, request):
    try:
        return method(request, timeout=SECONDS)
    except grpc.RpcError as error:
        raise GatewayError(error) from None


def _result(envelope):
    payload = common.Payload.FromString(envelope.payload)
    action = transactions.ChaincodeActionPayload.FromString(
        transactions.Transaction.FromString(payload.data).actions[0].payload
    )
    answer = responses.ProposalResponsePayload.FromString(action.action.proposal_response_payload)
    return proposals.ChaincodeAction.FromString(answer.extension).response.payload
