"""One signed proposal put before the peer of every organisation, and what each of them made of it."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import grpc
from fabric_protos.common import common_pb2 as common
from fabric_protos.common import ledger_pb2 as ledger
from fabric_protos.ledger.rwset import rwset_pb2 as rwset
from fabric_protos.peer import peer_pb2_grpc as service
from fabric_protos.peer import proposal_pb2 as proposals
from fabric_protos.peer import proposal_response_pb2 as responses
from fabric_protos.peer import transaction_pb2 as transactions

from executor.network import CHANNEL, Network
from support.channel import Member, as_text, committed_everywhere, gateway
from support.gateway import MESSAGE_LIMIT, SECONDS, Gateway

SETTLING_SECONDS = 150


@dataclass(frozen=True)
class Answers:
    """What the peers answered to one proposal, by organisation."""

    tx_id: str
    signed: Any
    by_organisation: dict[str, Any]

    @property
    def first(self) -> Any:
        return next(iter(self.by_organisation.values()))

    @property
    def status(self) -> int:
        return int(self.first.response.status)

    @property
    def distinct(self) -> set[tuple[bytes, bytes]]:
        """The different answers: response, and payload with read-write set, event and proposal hash."""
        return {
            (answer.response.SerializeToString(), answer.payload) for answer in self.by_organisation.values()
        }

    @property
    def namespaces(self) -> list[str]:
        """The chaincodes whose keys the first peer's read-write set touches."""
        found = responses.ProposalResponsePayload.FromString(self.first.payload)
        results = proposals.ChaincodeAction.FromString(found.extension).results
        return [entry.namespace for entry in rwset.TxReadWriteSet.FromString(results).ns_rwset]


class Endorsers:
    """The peers of all organisations of the network, each asked directly."""

    def __init__(self) -> None:
        network = Network.load()
        self._channels = {name: _connect(network, name) for name in network.organisations}
        self._stubs = {name: service.EndorserStub(channel) for name, channel in self._channels.items()}
        self._clients: dict[Member, Client] = {}
        self._threads = ThreadPoolExecutor(len(self._stubs))

    @property
    def organisations(self) -> list[str]:
        return list(self._stubs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        for closable in (*self._clients.values(), *self._channels.values()):
            closable.close()

    def ask(
        self,
        member: Member,
        chaincode: str,
        *arguments: Any,
        transient: dict[str, bytes] | None = None,
        ahead: int = 0,
    ) -> Answers:
        """Have every peer run one proposal; its client claims a time so many seconds ahead.

        A peer that has not yet committed the newest block reads another state, so a difference counts only
        if all peers were at one height before and after.
        """
        tx_id, signed = self._client(member).propose(chaincode, arguments, transient, ahead)
        end = time.monotonic() + SETTLING_SECONDS
        while True:
            before = self.heights()
            answers = Answers(tx_id, signed, self.put(lambda _: signed))
            settled = len(set(before.values())) == 1 and before == self.heights()
            if settled or len(answers.distinct) == 1 or time.monotonic() > end:
                return answers

    def put(self, choose: Callable[[str], Any]) -> dict[str, Any]:
        """Give each organisation's peer the proposal chosen for it, all at once."""
        asked = {
            name: self._threads.submit(partial(stub.ProcessProposal, timeout=SECONDS), choose(name))
            for name, stub in self._stubs.items()
        }
        return {name: future.result() for name, future in asked.items()}

    def commit(self, member: Member, answers: Answers) -> None:
        """Order the transaction that all peers endorsed; returns when all of them have it, valid."""
        client = self._client(member)
        client.order(answers.tx_id, client.envelope(answers))
        committed_everywhere(answers.tx_id)

    def heights(self) -> dict[str, int]:
        _, signed = self._client(Member("org1", "auditor")).propose("qscc", ("GetChainInfo", CHANNEL))
        found = self.put(lambda _: signed)
        return {
            name: ledger.BlockchainInfo.FromString(answer.response.payload).height
            for name, answer in found.items()
        }

    def _client(self, member: Member) -> "Client":
        if member not in self._clients:
            self._clients[member] = gateway(member.organisation, member.identity, Client)
        return self._clients[member]


class Client(Gateway):
    """A client that shows its proposals to the peers itself and makes a transaction of their answers."""

    def propose(
        self,
        chaincode: str,
        arguments: tuple[Any, ...],
        transient: dict[str, bytes] | None = None,
        ahead: int = 0,
    ) -> tuple[str, Any]:
        tx_id, signed = self._proposal(chaincode, as_text(arguments), transient)
        return tx_id, self._later(signed, ahead) if ahead else signed

    def envelope(self, answers: Answers) -> Any:
        """Assemble and sign what orderers take; transient data stays behind."""
        proposal = proposals.Proposal.FromString(answers.signed.proposal_bytes)
        header = common.Header.FromString(proposal.header)
        visible = proposals.ChaincodeProposalPayload.FromString(proposal.payload)
        visible.ClearField("TransientMap")
        endorsed = transactions.ChaincodeEndorsedAction(
            proposal_response_payload=answers.first.payload,
            endorsements=[answer.endorsement for answer in answers.by_organisation.values()],
        )
        content = transactions.ChaincodeActionPayload(
            chaincode_proposal_payload=visible.SerializeToString(), action=endorsed
        )
        action = transactions.TransactionAction(
            header=header.signature_header, payload=content.SerializeToString()
        )
        data = transactions.Transaction(actions=[action]).SerializeToString()
        payload = common.Payload(header=header, data=data).SerializeToString()
        return common.Envelope(payload=payload, signature=self._sign(payload))

    def _later(self, signed: Any, seconds: int) -> Any:
        """Sign the proposal again with a later time; its transaction id does not depend on it."""
        proposal = proposals.Proposal.FromString(signed.proposal_bytes)
        header = common.Header.FromString(proposal.header)
        channel = common.ChannelHeader.FromString(header.channel_header)
        channel.timestamp.seconds += seconds
        header.channel_header = channel.SerializeToString()
        proposal.header = header.SerializeToString()
        raw = proposal.SerializeToString()
        return proposals.SignedProposal(proposal_bytes=raw, signature=self._sign(raw))


def _connect(network: Network, organisation: str) -> grpc.Channel:
    roots = (network.folder(organisation) / "tlsca.pem").read_bytes()
    # Whatever proxy whoever runs the tests has, the peer is on this host.
    options = [("grpc.max_receive_message_length", MESSAGE_LIMIT), ("grpc.enable_http_proxy", 0)]
    address = network.peer_address(organisation)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options)
