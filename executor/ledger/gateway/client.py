"""The client of the peers' Gateway service.

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

from .commits import Commit, Deadlines, find_commit
from .errors import EndorseError, EvaluateError, SubmitError
from .events import EventStream
from .identity import Identity
from .messages import gateway, ledger, orderer
from .peer import Link, Peer, status_of
from .proposal import Proposal, Transaction
from .retry import PAUSES, agreed, first_answer, raise_failure
from .values import Argument, ChainInfo, Receipt

Status = grpc.StatusCode

CONFLICT_ATTEMPTS = 6
"""How often a call is made before it is given up because others write the same keys."""
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
    """One identity on one channel, through the first of several peers that answers; threads may share it.

    The own organisation's peer goes first. When another stands in, a warning is logged, once.
    """

    def __init__(
        self,
        identity: Identity,
        peers: Sequence[Peer],
        channel: str,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> None:
        self.identity = identity
        self.channel = channel
        self.deadlines = deadlines
        self._links = [Link(peer) for peer in peers]

    def contract(self, chaincode: str) -> "Contract":
        """Return the chaincode of that name; whether there is one shows in the first call."""
        return Contract(self, chaincode)

    def evaluate(self, proposal: Proposal) -> bytes:
        """Run a proposal on the first peer that answers, and on none that it would pick instead."""

        def ask(link: Link) -> bytes:
            request = gateway.EvaluateRequest(
                transaction_id=proposal.tx_id,
                channel_id=self.channel,
                proposed_transaction=proposal.signed,
                target_organizations=[link.peer.msp],
            )
            return bytes(link.call("Evaluate", request, self.deadlines.evaluate).result.payload)

        return first_answer(self._links, EvaluateError, proposal.tx_id, ask)[1]

    def endorse(self, proposal: Proposal) -> Transaction:
        """Have the peers sign; returns the transaction, compared with the proposal and signed."""
        request = gateway.EndorseRequest(
            transaction_id=proposal.tx_id, channel_id=self.channel, proposed_transaction=proposal.signed
        )

        def ask(link: Link) -> Any:
            return agreed(link, lambda: link.call("Endorse", request, self.deadlines.endorse))

        link, answer = first_answer(self._links, EndorseError, proposal.tx_id, ask)
        return proposal.endorsed(answer.prepared_transaction, self.identity, link.peer.address)

    def order(self, transaction: Transaction) -> Commit:
        """Hand a transaction to the orderers, once, and find out what became of it."""
        request = gateway.SubmitRequest(
            transaction_id=transaction.tx_id,
            channel_id=self.channel,
            prepared_transaction=transaction.envelope,
        )
        link = self._from(transaction.led_by)[0]
        try:
            link.call("Submit", request, self.deadlines.submit)
        except grpc.RpcError as error:
            if status_of(error) in _NOT_ORDERED:
                raise_failure(SubmitError, transaction.tx_id, [(link, error)])
        return self.commit_status(transaction.tx_id, transaction.led_by)

    def commit_status(self, tx_id: str, first: str = "") -> Commit:
        """Wait until a peer, the one at `first` before the others, knows in which block a transaction is."""
        return find_commit(self._from(first), self.identity, self.channel, tx_id, self.deadlines)

    def chain_info(self) -> ChainInfo:
        """Return the height of the channel as the first peer that answers has it."""
        raw = self.contract("qscc").evaluate("GetChainInfo", self.channel)
        found = ledger.BlockchainInfo.FromString(raw)
        return ChainInfo(found.height, bytes(found.currentBlockHash))

    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""
        return self.contract("qscc").evaluate("GetBlockByNumber", self.channel, str(number))

    def close(self) -> None:
        """Give the connections back."""
        for link in self._links:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self, chaincode: str, start: int, seconds: float) -> EventStream:
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

    def _from(self, address: str) -> list[Link]:
        """The peers in their order, the one at that address before all others."""
        return sorted(self._links, key=lambda link: link.peer.address != address)


class Contract:
    """One chaincode on the channel of a gateway."""

    def __init__(self, opened: Gateway, chaincode: str) -> None:
        self.chaincode = chaincode
        self._gateway = opened

    def propose(
        self, function: str, *arguments: Argument, transient: Mapping[str, bytes] | None = None
    ) -> Proposal:
        """Build and sign a call under a new transaction id; nothing is sent yet."""
        opened = self._gateway
        return Proposal.make(
            opened.identity, opened.channel, self.chaincode, [function, *arguments], transient
        )

    def evaluate(self, function: str, *arguments: Argument) -> bytes:
        """Read: run a function on the first peer that answers and return what it answers."""
        return self._gateway.evaluate(self.propose(function, *arguments))

    def submit(
        self, function: str, *arguments: Argument, transient: Mapping[str, bytes] | None = None
    ) -> Receipt:
        """Write: return once the transaction is valid in a block; one that others overtook is made anew."""
        for _ in range(CONFLICT_ATTEMPTS):
            transaction = self._gateway.endorse(self.propose(function, *arguments, transient=transient))
            commit = self._gateway.order(transaction)
            if commit.valid:
                return Receipt(commit.tx_id, commit.block, transaction.answer)
            if not commit.overtaken:
                raise commit.error("TRANSACTION_INVALID")
            time.sleep(random.uniform(0, PAUSES[1]))  # noqa: S311 - lets contenders part
        raise commit.error("LEDGER_CONFLICT")

    def events(self, start: int, seconds: float) -> EventStream:
        """Follow its events from block `start` on; ends after `seconds`, or when closed."""
        return self._gateway._follow(self.chaincode, start, seconds)
