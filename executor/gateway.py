"""The client of the peers' Gateway service: the default transport to the ledger (docs/gateway.md).

A read is repeated at another peer when one does not answer, and so is an endorsement, because neither writes
anything. What has gone to the orderers is never sent twice: if its outcome is unknown, its status is asked
for, at any peer, until the deadline. A transaction that others overtook is invalid for good, so the call is
made anew.
"""

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import grpc

from executor.errors import UsageError
from executor.ledger.attempts import PAUSES, agreed, first_answer, raise_failure
from executor.ledger.commits import Commit, Deadlines, find_commit
from executor.ledger.errors import CommitError, EndorseError, EvaluateError, SubmitError
from executor.ledger.events import EventStream
from executor.ledger.identity import Identity
from executor.ledger.link import Link, Peer, status_of
from executor.ledger.messages import gateway, ledger, orderer
from executor.ledger.proposal import Proposal, Transaction
from executor.ledger.transport import Argument, ChainInfo, Receipt
from executor.network import CHANNEL, Network

Status = grpc.StatusCode

CONFLICT_ATTEMPTS = 6
"""How often a call is made before it is given up because others write the same records."""
# The orderers have certainly not taken a transaction that was answered so.
_NOT_ORDERED = (
    Status.INVALID_ARGUMENT,
    Status.FAILED_PRECONDITION,
    Status.NOT_FOUND,
    Status.ABORTED,
    Status.RESOURCE_EXHAUSTED,
    Status.PERMISSION_DENIED,
    Status.UNIMPLEMENTED,
)


class Gateway:
    """One identity on one channel, through the first of several peers that answers; threads may share it."""

    def __init__(
        self,
        identity: Identity,
        peers: Sequence[Peer],
        channel: str = CHANNEL,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> None:
        self.identity = identity
        self.channel = channel
        self.deadlines = deadlines
        self._links = [Link(peer) for peer in peers]

    @classmethod
    def connect(cls, network: Network, organisation: str, identity: str) -> Self:
        """Act as a user of an organisation: through its own peer, or through others while that is down."""
        if organisation not in network.organisations:
            known = ", ".join(network.organisations)
            raise UsageError(
                "ORGANISATION_UNKNOWN",
                f"{organisation!r} is no organisation of {network.project}",
                f"Choose one of {known}.",
            )
        others = [name for name in network.organisations if name != organisation]
        peers = [
            Peer(network.peer_address(name), network.msp_id(name), _tls_ca(network, name))
            for name in [organisation, *others]
        ]
        found = Identity.load(network.msp_folder(organisation, identity), network.msp_id(organisation))
        return cls(found, peers)

    def evaluate(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read: run a function on the first peer that answers, and on none that it would pick instead."""
        proposal = self._propose(chaincode, function, arguments)

        def ask(link: Link) -> bytes:
            request = gateway.EvaluateRequest(
                transaction_id=proposal.tx_id,
                channel_id=self.channel,
                proposed_transaction=proposal.signed,
                target_organizations=[link.peer.msp],
            )
            return bytes(link.call("Evaluate", request, self.deadlines.evaluate).result.payload)

        return first_answer(self._links, EvaluateError, proposal.tx_id, ask)[1]

    def submit(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
    ) -> Receipt:
        """Write: return once the transaction is valid in a block; one that others overtook is made anew."""
        for _ in range(CONFLICT_ATTEMPTS):
            link, transaction = self.endorse(chaincode, function, *arguments, transient=transient)
            commit = self.order(link, transaction)
            if commit.valid:
                return Receipt(commit.tx_id, commit.block, transaction.answer)
            if not commit.overtaken:
                raise CommitError("TRANSACTION_INVALID", commit.tx_id, commit.block, commit.validation)
            time.sleep(random.uniform(0, PAUSES[1]))  # noqa: S311 - lets contenders part
        raise CommitError("LEDGER_CONFLICT", commit.tx_id, commit.block, commit.validation)

    def endorse(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
    ) -> tuple[Link, Transaction]:
        """Have the peers sign a new transaction; returns it, checked and signed, and the peer that led."""
        proposal = self._propose(chaincode, function, arguments, transient)
        request = gateway.EndorseRequest(
            transaction_id=proposal.tx_id, channel_id=self.channel, proposed_transaction=proposal.signed
        )

        def ask(link: Link) -> Any:
            return agreed(link, lambda: link.call("Endorse", request, self.deadlines.endorse))

        link, answer = first_answer(self._links, EndorseError, proposal.tx_id, ask)
        return link, proposal.endorsed(answer.prepared_transaction, self.identity)

    def order(self, link: Link, transaction: Transaction) -> Commit:
        """Hand a transaction to the orderers, once, and find out what became of it."""
        request = gateway.SubmitRequest(
            transaction_id=transaction.tx_id,
            channel_id=self.channel,
            prepared_transaction=transaction.envelope,
        )
        try:
            link.call("Submit", request, self.deadlines.submit)
        except grpc.RpcError as error:
            if status_of(error) in _NOT_ORDERED:
                raise_failure(SubmitError, transaction.tx_id, [(link, error)])
        return self.commit_status(transaction.tx_id, link)

    def commit_status(self, tx_id: str, first: Link | None = None) -> Commit:
        """Wait until a peer knows in which block a transaction is, and whether it is valid there."""
        links = sorted(self._links, key=lambda link: link is not first)
        return find_commit(links, self.identity, self.channel, tx_id, self.deadlines)

    def chain_info(self) -> ChainInfo:
        """Return the height of the channel as the first peer that answers has it."""
        raw = self.evaluate("qscc", "GetChainInfo", self.channel)
        found = ledger.BlockchainInfo.FromString(raw)
        return ChainInfo(found.height, bytes(found.currentBlockHash))

    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""
        return self.evaluate("qscc", "GetBlockByNumber", self.channel, str(number))

    def events(self, chaincode: str, start: int, seconds: float) -> EventStream:
        """Follow a chaincode's events from block `start` on; ends after `seconds`, or when closed."""

        def request(block: int) -> Any:
            position = orderer.SeekPosition(specified=orderer.SeekSpecified(number=block))
            raw = gateway.ChaincodeEventsRequest(
                channel_id=self.channel,
                chaincode_id=chaincode,
                identity=self.identity.creator,
                start_position=position,
            ).SerializeToString()
            return gateway.SignedChaincodeEventsRequest(request=raw, signature=self.identity.sign(raw))

        return EventStream(self._links, request, start, seconds)

    def close(self) -> None:
        """Give the connections back."""
        for link in self._links:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _propose(
        self,
        chaincode: str,
        function: str,
        arguments: Sequence[Argument],
        transient: Mapping[str, bytes] | None = None,
    ) -> Proposal:
        return Proposal.make(self.identity, self.channel, chaincode, [function, *arguments], transient)


def _tls_ca(network: Network, organisation: str) -> bytes:
    path = network.folder(organisation) / "tlsca.pem"
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            "NETWORK_INCOMPLETE", f"{path} cannot be read: {error.strerror}", "Run network/up.sh."
        ) from error
