"""The client of the peers' Gateway service.

No single peer is the ledger. A plain read is answered by the own organisation's peer; what matters is read so
that enough organisations say the same (`evaluate_agreed`, inquiry.py). Endorsements are checked one by one
before anything is signed, and a transaction counts as committed when enough organisations report so.

Reads and endorsements write nothing, so they may be asked for again and elsewhere. A transaction has one id
and is written once, however often it is handed over; if its outcome is unknown, its status is asked for until
the deadline. One that others overtook is invalid for good, so the call is made anew.
"""

import random
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import grpc
from google.protobuf.message import DecodeError

from .commits import Commit, Deadlines, StatusQuestion, find_commit
from .endorsement import Collection, collect
from .errors import CommitStatusError, SubmitError
from .events import EventStream
from .failures import Attempt, raise_failure
from .identity import Identity
from .inquiry import Rule
from .members import Members, Untrue
from .messages import common, gateway, ledger, orderer
from .peer import Link, Peer, status_of
from .proposal import Proposal, Transaction
from .reads import Check, read
from .trust import Trust, majority
from .values import Argument, ChainInfo, Receipt

Status = grpc.StatusCode

CONFLICT_ATTEMPTS = 6
"""How often a call is made before it is given up because others write the same keys."""
CONFLICT_PAUSE = 0.1
OWN_SECONDS = 5.0
"""How long the own peer's endorsement, or its report of a commit, is waited for once enough others have come;
so that what was written can be read there at once."""
# The orderers have not taken a transaction that was answered so, if the peer tells the truth.
_UNDECIDED = ("COMMIT_UNKNOWN", "PEERS_DISAGREE")
"""What the next turn may settle: nobody knows yet, or a liar does and the honest are not as far."""
_NOT_ORDERED = (
    Status.INVALID_ARGUMENT,
    Status.FAILED_PRECONDITION,
    Status.NOT_FOUND,
    Status.ABORTED,
    Status.RESOURCE_EXHAUSTED,
    Status.PERMISSION_DENIED,
    Status.UNIMPLEMENTED,
)
_FILTER = 2
"""Where a block's metadata has the verdict on each transaction."""


class Gateway:
    """One identity on one channel, through peers of its organisations; threads may share it.

    `members` has the signing authority of every organisation of the channel, by MSP id, in PEM: what peers
    endorse is held against them, and how many agree is counted among them.
    """

    def __init__(  # noqa: PLR0917
        self,
        identity: Identity,
        peers: Sequence[Peer],
        channel: str,
        members: Mapping[str, bytes],
        trust: Trust = Trust(),  # noqa: B008 - frozen
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> None:
        self.identity = identity
        self.channel = channel
        self.members = Members(members)
        self.trust = trust
        self.agreement = trust.needed(len(self.members))
        self.deadlines = deadlines
        self._links = [Link(peer) for peer in peers]

    def contract(self, chaincode: str) -> "Contract":
        """Return the chaincode of that name; whether there is one shows in the first call."""
        return Contract(self, chaincode)

    def evaluate(self, proposal: Proposal) -> bytes:
        """Run a proposal on the own organisation's peer; on others, if that does not answer."""
        return self._read(proposal, self._plain)

    def evaluate_agreed(self, proposal: Proposal) -> bytes:
        """Run a proposal on so many organisations' peers that what enough of them say can be believed."""
        return self._read(proposal, self._decisive)

    def endorse(self, proposal: Proposal, audience: Container[str] | None = None) -> Transaction:
        """Have a majority of organisations endorse; returns the transaction, checked and signed.

        An audience is the organisations whose peers may see the proposal: all others are kept from it.
        """
        own = self.identity.msp_id
        links = sorted(self._links, key=lambda link: (link.peer.msp != own, link.rests))
        if audience is not None:
            links = [link for link in links if link.peer.msp in audience]
        needed = majority(len(self.members))
        rule = replace(self._rule(set()), needed=needed, own_wait=self._own_wait)
        direct = audience is not None or len({link.peer.msp for link in links}) >= needed
        believed = own if self.trust.own_peer else ""
        collection = Collection(
            proposal, self.members, direct, self.agreement, believed, self.deadlines.endorse
        )
        result, endorsements = collect(links, rule, collection)
        return proposal.endorsed(result, endorsements, self.identity)

    def order(self, transaction: Transaction) -> Commit:
        """Hand a transaction to the orderers, by a peer that endorsed it, and find out what became of it.

        While too few know of it, the next peer hands it over, too: one that swallows it stops nothing, nor
        does one that knows better. Only the last turn says that peers contradict each other.
        """
        heights = {link: link.height for link in self._links}
        end = time.monotonic() + self.deadlines.commit
        links = [link for link in self._preferred() if link.peer.msp in transaction.endorsers]
        noes: list[Attempt] = []
        for left in reversed(range(len(links))):
            submit = self.deadlines.submit
            no = self._hand_over(transaction, links[-1 - left], self._turn(submit) if left else submit)
            if no is not None:
                noes.append(no)
                alone = no[0].peer.msp in self._decisive.alone
                if alone or len(noes) >= self.agreement or len(noes) == len(links):
                    raise_failure(SubmitError, transaction.tx_id, noes)
                if left:
                    continue
            seconds = max(end - time.monotonic(), 0)
            try:
                return self._commit(transaction.tx_id, seconds if not left else self._turn(seconds), heights)
            except CommitStatusError as error:
                if not left or error.code not in _UNDECIDED or time.monotonic() >= end:
                    raise
        raise SubmitError("SUBMIT_FAILED", "none of the peers endorsed it", transaction.tx_id)

    def commit_status(self, tx_id: str) -> Commit:
        """Wait until enough organisations say in which block a transaction is, and whether it is valid."""
        return self._commit(tx_id, self.deadlines.commit, {})

    def chain_info(self) -> ChainInfo:
        """Return the height of the channel; a peer whose chain gets shorter is not believed."""
        heights = {link: link.height for link in self._links}

        def check(link: Link, raw: bytes) -> bytes:
            height = _info(raw).height
            if height < heights[link]:
                raise Untrue(f"its chain was {heights[link]} high and is {height}")
            link.height = max(link.height, height)
            return raw

        found = _info(self._qscc("GetChainInfo", self.channel, check=check))
        return ChainInfo(found.height, bytes(found.currentBlockHash))

    def has_block(self, number: int) -> bool:
        """Whether the channel has a block of this number, as enough organisations say alike."""

        def reaches(_: Link, raw: bytes) -> bytes:
            return b"yes" if _info(raw).height > number else b"no"

        proposal = self.contract("qscc").propose("GetChainInfo", self.channel)
        # The own peer's contradiction is what is asked about, so it holds nothing back.
        rule = replace(self._decisive, own_lag=0.0)
        return int(_info(self._read(proposal, rule, reaches)).height) > number

    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""
        return self._qscc("GetBlockByNumber", self.channel, str(number), check=_content)

    def close(self) -> None:
        """Give the connections back."""
        for link in self._links:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _decisive(self) -> Rule:
        """For what decides something: enough organisations, or the own one if it is trusted."""
        return self._rule({self.identity.msp_id} if self.trust.own_peer else set())

    @property
    def _plain(self) -> Rule:
        """For the rest: the own organisation alone, or else enough others, or any if all are trusted."""
        own = {self.identity.msp_id}
        return self._rule(own | self.members.keys() if self.trust.peers else own)

    def _rule(self, alone: set[str]) -> Rule:
        deadlines = self.deadlines
        return Rule(
            self.identity.msp_id, self.agreement, alone, own_lag=deadlines.own_lag, patience=deadlines.agree
        )

    def _preferred(self) -> list[Link]:
        """The own organisation's peer, those that are furthest, the others; who did not answer of late last.

        So whoever has just written asks first those that have reported the block.
        """
        own = self.identity.msp_id
        return sorted(self._links, key=lambda link: (link.rests, link.peer.msp != own, -link.height))

    def _read(self, proposal: Proposal, rule: Rule, check: Check | None = None) -> bytes:
        more = () if check is None else (check,)
        return read(self._preferred(), rule, proposal, self.deadlines.evaluate, *more)

    def _qscc(self, function: str, *arguments: str, check: Check) -> bytes:
        return self._read(self.contract("qscc").propose(function, *arguments), self._plain, check)

    def _hand_over(self, transaction: Transaction, link: Link, seconds: float) -> Attempt | None:
        """Give a transaction to the orderers; returns a clear no. Anything else leads to the status."""
        request = gateway.SubmitRequest(
            transaction_id=transaction.tx_id,
            channel_id=self.channel,
            prepared_transaction=transaction.envelope,
        )
        try:
            link.call("Submit", request, seconds)
        except grpc.RpcError as error:
            return (link, error) if status_of(error) in _NOT_ORDERED else None
        return None

    def _turn(self, seconds: float) -> float:
        return min(seconds, self.deadlines.another_peer)

    def _commit(self, tx_id: str, seconds: float, heights: Mapping[Link, int]) -> Commit:
        question = StatusQuestion.make(self.identity, self.channel, tx_id, seconds, heights)
        return find_commit(self._preferred(), replace(self._decisive, own_wait=self._own_wait), question)

    @property
    def _own_wait(self) -> float:
        own = [link for link in self._links if link.peer.msp == self.identity.msp_id]
        return 0 if all(link.rests for link in own) else OWN_SECONDS

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

        return EventStream(self._preferred(), request, start, seconds, self.has_block)


def _info(raw: bytes) -> Any:
    try:
        return ledger.BlockchainInfo.FromString(raw)
    except DecodeError as error:
        raise Untrue("what it says of its chain cannot be read") from error


def _content(_: Link, raw: bytes) -> bytes:
    """A block without its signatures: peers may have it from different orderers, each of which signs it."""
    try:
        block = common.Block.FromString(raw)
    except DecodeError as error:
        raise Untrue("its block cannot be read") from error
    verdicts = block.metadata.metadata[_FILTER : _FILTER + 1]
    parts = [block.header.SerializeToString(), block.data.SerializeToString(), *verdicts]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


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
        """Read on the word of the own organisation's peer, or of enough others while that is down."""
        return self._gateway.evaluate(self.propose(function, *arguments))

    def evaluate_agreed(self, function: str, *arguments: Argument) -> bytes:
        """Read what enough organisations say alike."""
        return self._gateway.evaluate_agreed(self.propose(function, *arguments))

    def submit(
        self,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
        audience: Container[str] | None = None,
    ) -> Receipt:
        """Write: return once the transaction is valid in a block; one that others overtook is made anew.

        With an audience, the transient data goes to the peers of these organisations alone.
        """
        for _ in range(CONFLICT_ATTEMPTS):
            proposal = self.propose(function, *arguments, transient=transient)
            transaction = self._gateway.endorse(proposal, audience)
            commit = self._gateway.order(transaction)
            if commit.valid:
                return Receipt(commit.tx_id, commit.block, transaction.answer)
            if not commit.overtaken:
                raise commit.error("TRANSACTION_INVALID")
            time.sleep(random.uniform(0, CONFLICT_PAUSE))  # noqa: S311 - lets contenders part
        raise commit.error("LEDGER_CONFLICT")

    def events(self, start: int, seconds: float) -> EventStream:
        """Follow its events from block `start` on; ends after `seconds`, or when closed."""
        return self._gateway._follow(self.chaincode, start, seconds)
