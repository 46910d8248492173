"""A client of a peer's Gateway service that does each phase by itself, so that tests can do them wrongly.

Identity, proposal and connection are those of the executor's client, which refuses what some tests want.
"""

from dataclasses import dataclass

import grpc

from executor.ledger.gateway.errors import refusal_in
from executor.ledger.gateway.identity import Identity
from executor.ledger.gateway.messages import common, gateway, orderer, proposal, response, transaction
from executor.ledger.gateway.peer import MESSAGE_LIMIT, Link, Peer, message_of, peer_details, status_of
from executor.ledger.gateway.proposal import Proposal
from executor.network import CHANNEL, Network
from support.network import until

__all__ = ["CONFLICT", "MESSAGE_LIMIT", "SECONDS", "VALID", "Committed", "Gateway", "GatewayError"]

SECONDS = 150
VALID = 0
CONFLICT = transaction.MVCC_READ_CONFLICT


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

    def __init__(self, network: Network, org: str, user: str = "admin"):
        msp = network.msp_id(org)
        self._identity = Identity.load(network.msp_folder(org, user), msp)
        tls_ca = (network.folder(org) / "tlsca.pem").read_bytes()
        self._link = Link(Peer(network.peer_address(org), msp, tls_ca))
        self._channel_id = CHANNEL

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

    def begin(self, name, *arguments, orgs=()):
        """Send a call to be evaluated without waiting; returns its transaction id and its future."""
        tx_id, signed = self._proposal(name, arguments, None)
        request = gateway.EvaluateRequest(
            transaction_id=tx_id,
            channel_id=self._channel_id,
            proposed_transaction=signed,
            target_organizations=orgs,
        )
        return tx_id, self._link.stub.Evaluate.future(request, timeout=SECONDS)

    def endorse(self, name, *arguments, transient=None, orgs=()):
        """Return the transaction id, the signed envelope and the chaincode's result."""
        tx_id, signed = self._proposal(name, arguments, transient)
        request = gateway.EndorseRequest(
            transaction_id=tx_id,
            channel_id=self._channel_id,
            proposed_transaction=signed,
            endorsing_organizations=orgs,
        )

        def endorsed():
            try:
                return self._call("Endorse", request)
            except GatewayError as error:
                # A busy peer forgets others until they are heard of again.
                if "failed to find any endorsing peers" not in str(error):
                    raise
                return None

        answer = until(SECONDS, "the peer knows one of each organisation", endorsed)
        envelope = answer.prepared_transaction
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
        """Iterate over (block number, event name, payload, transaction id) from a block on; close it."""
        position = orderer.SeekPosition(specified=orderer.SeekSpecified(number=block))
        request = gateway.ChaincodeEventsRequest(
            channel_id=self._channel_id,
            chaincode_id=name,
            identity=self._identity.creator,
            start_position=position,
        ).SerializeToString()
        signed = gateway.SignedChaincodeEventsRequest(request=request, signature=self._sign(request))
        call = self._link.stub.ChaincodeEvents(signed, timeout=SECONDS)
        try:
            for answer in call:
                for event in answer.events:
                    yield answer.block_number, event.event_name, event.payload, event.tx_id
        finally:
            call.cancel()

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
