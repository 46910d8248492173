"""From a call to a transaction: the proposal, its id, and the check of what peers give back to be signed."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from google.protobuf.message import DecodeError

from .errors import EndorseError
from .identity import Identity
from .messages import chaincode as calls
from .messages import common, proposal, response, transaction
from .values import Argument

NONCE_BYTES = 24


@dataclass(frozen=True)
class Proposal:
    """A signed call of a chaincode function; its id is the hash of a fresh nonce and its creator."""

    tx_id: str
    channel: str
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
        return cls(tx_id, channel, header, called, signed)

    def endorsed(self, envelope: Any, identity: Identity, led_by: str = "") -> "Transaction":
        """Sign what the peers prepared, if it is this call and nothing else, and read its answer."""
        try:
            answer = self._check(common.Payload.FromString(envelope.payload))
        except DecodeError as error:
            raise self._altered(f"it cannot be read ({error})") from error
        envelope.signature = identity.sign(envelope.payload)
        return Transaction(self.tx_id, self.channel, envelope, answer, led_by)

    def _check(self, payload: Any) -> bytes:
        """Compare header and input with what was proposed; a signature is worth what it was given for."""
        if payload.header.SerializeToString() != self.header:
            raise self._altered("it has another header")
        actions = transaction.Transaction.FromString(payload.data).actions
        if len(actions) != 1:
            raise self._altered(f"it has {len(actions)} actions")
        action = transaction.ChaincodeActionPayload.FromString(actions[0].payload)
        proposed = proposal.ChaincodeProposalPayload.FromString(action.chaincode_proposal_payload)
        if proposed.input != self.input:
            raise self._altered("it calls something else")
        raw = action.action.proposal_response_payload
        extension = response.ProposalResponsePayload.FromString(raw).extension
        result = proposal.ChaincodeAction.FromString(extension)
        return bytes(result.response.payload)

    def _altered(self, how: str) -> EndorseError:
        return EndorseError(
            "TRANSACTION_ALTERED",
            f"the peer prepared another transaction than was proposed: {how}",
            self.tx_id,
        )


@dataclass(frozen=True)
class Transaction:
    """An endorsed and signed transaction, ready for the orderers, with the answer it has if it is valid."""

    tx_id: str
    channel: str
    envelope: Any
    """common.Envelope"""
    answer: bytes
    led_by: str = ""
    """The address of the peer that collected the endorsements; it is asked first from here on."""


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
