"""A client of a peer's Gateway service that does each phase by itself, so that tests can do them wrongly.

Identity, proposal and connection are those of the executor's client, which refuses what some tests want.
"""

from dataclasses import dataclass
from pathlib import Path

import grpc

from executor.ledger.gateway.errors import refusal_in
from executor.ledger.gateway.identity import Identity
from executor.ledger.gateway.messages import common, gateway, orderer, proposal, response, transaction
from executor.ledger.gateway.peer import MESSAGE_LIMIT, Link, Peer, message_of, peer_details, status_of
from executor.ledger.gateway.proposal import Proposal

__all__ = ["MESSAGE_LIMIT", "SECONDS", "Committed", "Gateway", "GatewayError"]

SECONDS = 60


class GatewayError(Exception):
    """A call failed; `code` is the chaincode's error code where the chaincode refused."""

    def __init__(self, error):
        details = [message_of(error), *(detail.message for detail in peer_details(error))]
        super().__init__(" | ".join(details))
        self.status = status_of(error)
        refusal = refusal_in(details)
        self.code = refusal.code if refusal else None


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
        msp = f"Org{org.removeprefix('org')}MSP"
        self._identity = Identity.load(folder / "users" / user / "msp", msp)
        port = port or 7051 + 100 * int(org.removeprefix("org"))
        self._link = Link(Peer(f"127.0.0.1:{port}", msp, (folder / "tlsca.pem").read_bytes()))
        self._channel_id = channel

    def close(self):
        self._link.close()

    def evaluate(self, name, *arguments, transient=None, orgs=()):
        tx_id, signed = self._proposal(name, arguments, transient)
        request = gateway.EvaluateRequest(
            transaction_id=tx_id,
            channel_id=self._channel_id,
            proposed_transaction=signed,
            target_organizations=orgs,
        )
        return self._call("Evaluate", request).result.payload

    def endorse(self, name, *arguments, transient=None, orgs=()):
        """Return the transaction id, the signed envelope and the chaincode's result."""
        tx_id, signed = self._proposal(name, arguments, transient)
        request = gateway.EndorseRequest(
            transaction_id=tx_id,
            channel_id=self._channel_id,
            proposed_transaction=signed,
            endorsing_organizations=orgs,
        )
        envelope = self._call("Endorse", request).prepared_transaction
        envelope.signature = self._sign(envelope.payload)
        return tx_id, envelope, _result(envelope)

    def submit(self, name, *arguments, transient=None, orgs=()):
        """Endorse, order and wait for the block."""
        tx_id, envelope, result = self.endorse(name, *arguments, transient=transient, orgs=orgs)
        self.order(tx_id, envelope)
        return self.committed(tx_id, result)

    def order(self, tx_id, envelope):
        """Hand an endorsed transaction to the orderers."""
        request = gateway.SubmitRequest(
            transaction_id=tx_id, channel_id=self._channel_id, prepared_transaction=envelope
        )
        self._call("Submit", request)

    def committed(self, tx_id, result=b""):
        """Wait for the block of an ordered transaction."""
        status = gateway.CommitStatusRequest(
            transaction_id=tx_id, channel_id=self._channel_id, identity=self._identity.creator
        ).SerializeToString()
        signed = gateway.SignedCommitStatusRequest(request=status, signature=self._sign(status))
        answer = self._call("CommitStatus", signed)
        return Committed(tx_id, result, answer.result, answer.block_number)

    def events(self, name, block):
        """Iterate over (block number, event name, payload, transaction id) from a block on."""
        position = orderer.SeekPosition(specified=orderer.SeekSpecified(number=block))
        request = gateway.ChaincodeEventsRequest(
            channel_id=self._channel_id,
            chaincode_id=name,
            identity=self._identity.creator,
            start_position=position,
        ).SerializeToString()
        signed = gateway.SignedChaincodeEventsRequest(request=request, signature=self._sign(request))
        for answer in self._link.stub.ChaincodeEvents(signed, timeout=SECONDS):
            for event in answer.events:
                yield answer.block_number, event.event_name, event.payload, event.tx_id

    def _proposal(self, name, arguments, transient):
        raw = [argument if isinstance(argument, bytes) else str(argument) for argument in arguments]
        made = Proposal.make(self._identity, self._channel_id, name, raw, transient)
        return made.tx_id, made.signed

    def _sign(self, message):
        return self._identity.sign(message)

    def _call(self, method, request):
        try:
            return self._link.call(method, request, SECONDS)
        except grpc.RpcError as error:
            raise GatewayError(error) from None


def _result(envelope):
    payload = common.Payload.FromString(envelope.payload)
    action = transaction.ChaincodeActionPayload.FromString(
        transaction.Transaction.FromString(payload.data).actions[0].payload
    )
    answer = response.ProposalResponsePayload.FromString(action.action.proposal_response_payload)
    return proposal.ChaincodeAction.FromString(answer.extension).response.payload
