"""From a call to a transaction: the proposal, its id, the check of what peers endorsed, what is signed."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from google.protobuf.message import DecodeError

from .identity import Identity
from .members import Untrue
from .messages import chaincode as calls
from .messages import common, proposal, response, transaction
from .values import Argument

NONCE_BYTES = 24
SUCCESS = 200


@dataclass(frozen=True)
class Proposal:
    """A signed call of a chaincode function; its id is the hash of a fresh nonce and its creator."""

    tx_id: str
    channel: str
    chaincode: str
    header: bytes
    input: bytes
    signed: Any
    """peer.SignedProposal"""

    @classmethod
    def make(
        cls,
        identity: Identity,
        channel: str,
        chaincode: str,
        arguments: Sequence[Argument],
        transient: Mapping[str, bytes] | None = None,
    ) -> Self:
        """Build and sign a proposal under a new transaction id."""
        nonce, creator = secrets.token_bytes(NONCE_BYTES), identity.creator
        tx_id = sha256(nonce + creator).hexdigest()
        header = _header(channel, tx_id, chaincode, creator, nonce)
        called = _input(chaincode, arguments)
        payload = proposal.ChaincodeProposalPayload(input=called, TransientMap=transient or {})
        raw = proposal.Proposal(header=header, payload=payload.SerializeToString()).SerializeToString()
        signed = proposal.SignedProposal(proposal_bytes=raw, signature=identity.sign(raw))
        return cls(tx_id, channel, chaincode, header, called, signed)

    def result_in(self, envelope: Any) -> "tuple[Result, list[Any]]":
        """Read result and endorsements that a peer brought; Untrue if it is no result of this call alone."""
        try:
            payload = common.Payload.FromString(envelope.payload)
            if payload.header.SerializeToString() != self.header:
                raise Untrue("its transaction has another header")
            actions = transaction.Transaction.FromString(payload.data).actions
            if len(actions) != 1:
                raise Untrue(f"its transaction has {len(actions)} actions")
            action = transaction.ChaincodeActionPayload.FromString(actions[0].payload)
            proposed = proposal.ChaincodeProposalPayload.FromString(action.chaincode_proposal_payload)
            if proposed.input != self.input:
                raise Untrue("its transaction calls something else")
            raw = bytes(action.action.proposal_response_payload)
            found = response.ProposalResponsePayload.FromString(raw)
            result = proposal.ChaincodeAction.FromString(found.extension)
        except DecodeError as error:
            raise Untrue(f"its transaction cannot be read ({error})") from error
        if found.proposal_hash != self._hash():
            raise Untrue("the result is of another proposal")
        if result.chaincode_id.name != self.chaincode:
            raise Untrue(f"the result is of chaincode {result.chaincode_id.name!r}")
        if result.response.status != SUCCESS:
            raise Untrue(f"the result has status {result.response.status}")
        return Result(raw, bytes(result.response.payload)), list(action.action.endorsements)

    def endorsed(
        self, result: "Result", endorsements: Mapping[str, Any], identity: Identity
    ) -> "Transaction":
        """Assemble and sign the transaction of an endorsed result; nothing in it but that is a peer's."""
        header = common.Header.FromString(self.header)
        action = transaction.ChaincodeActionPayload(
            chaincode_proposal_payload=self._called(),
            action={"proposal_response_payload": result.payload, "endorsements": endorsements.values()},
        )
        content = transaction.Transaction(
            actions=[{"header": header.signature_header, "payload": action.SerializeToString()}]
        )
        raw = common.Payload(header=header, data=content.SerializeToString()).SerializeToString()
        envelope = common.Envelope(payload=raw, signature=identity.sign(raw))
        return Transaction(self.tx_id, self.channel, envelope, result.answer, tuple(endorsements))

    def _called(self) -> bytes:
        """The call as it stands in the transaction: without what was transient."""
        return bytes(proposal.ChaincodeProposalPayload(input=self.input).SerializeToString())

    def _hash(self) -> bytes:
        header = common.Header.FromString(self.header)
        return sha256(header.channel_header + header.signature_header + self._called()).digest()


@dataclass(frozen=True)
class Result:
    """What a chaincode made of a proposal: the bytes that endorsers sign, and the answer in them."""

    payload: bytes
    """peer.ProposalResponsePayload"""
    answer: bytes


@dataclass(frozen=True)
class Transaction:
    """An endorsed and signed transaction, ready for the orderers, with the answer it has if it is valid."""

    tx_id: str
    channel: str
    envelope: Any
    """common.Envelope"""
    answer: bytes
    endorsers: tuple[str, ...] = ()
    """The organisations that endorsed it; their peers hand it to the orderers."""


def _header(channel: str, tx_id: str, chaincode: str, creator: bytes, nonce: bytes) -> bytes:
    called = proposal.ChaincodeHeaderExtension(chaincode_id=calls.ChaincodeID(name=chaincode))
    channel_header = common.ChannelHeader(
        type=common.ENDORSER_TRANSACTION,
        channel_id=channel,
        tx_id=tx_id,
        extension=called.SerializeToString(),
    )
    channel_header.timestamp.GetCurrentTime()
    header = common.Header(
        channel_header=channel_header.SerializeToString(),
        signature_header=common.SignatureHeader(creator=creator, nonce=nonce).SerializeToString(),
    )
    return bytes(header.SerializeToString())


def _input(chaincode: str, arguments: Sequence[Argument]) -> bytes:
    raw = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    specification = calls.ChaincodeSpec(
        chaincode_id=calls.ChaincodeID(name=chaincode), input=calls.ChaincodeInput(args=raw)
    )
    made = calls.ChaincodeInvocationSpec(chaincode_spec=specification)
    return bytes(made.SerializeToString())
