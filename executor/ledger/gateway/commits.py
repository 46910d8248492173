"""What became of a transaction: what enough organisations report alike."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import grpc

from .errors import CommitError, CommitStatusError
from .failures import Denial, raise_failure, raise_undecided, refused
from .identity import Identity
from .inquiry import Inquiry, Rule, Statement, Undecided
from .members import Untrue
from .messages import gateway, transaction
from .peer import Link, status_of

SHORTEST = 0.5
"""Seconds that a peer gets to answer even when the time is over."""
_FINAL = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that one attempt of each phase may take; `commit` is for all attempts together."""

    evaluate: float = 20
    endorse: float = 30
    submit: float = 10
    commit: float = 60
    agree: float = 15
    """For peers that disagree, until they say the same."""
    own_lag: float = 5
    """For the own peer, until others that agree are believed against it."""
    another_peer: float = 10
    """After so long, another peer hands an unknown transaction to the orderers, too; it is written once."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The block a transaction is in, and the code its peers gave it there."""

    tx_id: str
    block: int
    code: int

    @property
    def valid(self) -> bool:
        """Whether what it wrote is on the ledger."""
        return bool(self.code == transaction.VALID)

    @property
    def overtaken(self) -> bool:
        """Whether it was made invalid by others that wrote what it had read."""
        return self.code in (transaction.MVCC_READ_CONFLICT, transaction.PHANTOM_READ_CONFLICT)

    @property
    def validation(self) -> str:
        """The code by its name in Fabric, also one that this version does not know."""
        found = transaction.TxValidationCode.DESCRIPTOR.values_by_number.get(self.code)
        return str(found.name) if found else f"code {self.code}"

    def error(self, code: str) -> CommitError:
        """Make the error of a transaction that is not valid."""
        cause = f"transaction {self.tx_id[:16]} is invalid in block {self.block}: {self.validation}"
        return CommitError(code, cause, self.tx_id, block=self.block, validation=self.validation)


@dataclass(frozen=True)
class StatusQuestion:
    """The signed question what became of a transaction, and until when it is asked."""

    tx_id: str
    request: Any
    """gateway.SignedCommitStatusRequest"""
    end: float
    heights: Mapping[Link, int]
    """How high each peer said its chain was before the transaction was ordered; it cannot be below that."""

    @classmethod
    def make(
        cls, identity: Identity, channel: str, tx_id: str, seconds: float, heights: Mapping[Link, int]
    ) -> Self:
        """Sign a question that is asked for so many seconds."""
        status = gateway.CommitStatusRequest(
            transaction_id=tx_id, channel_id=channel, identity=identity.creator
        ).SerializeToString()
        request = gateway.SignedCommitStatusRequest(request=status, signature=identity.sign(status))
        return cls(tx_id, request, time.monotonic() + seconds, heights)

    @property
    def seconds(self) -> float:
        """How much time is left; a peer gets a moment to answer even when none is."""
        return max(self.end - time.monotonic(), SHORTEST)

    def start(self, link: Link) -> Any:
        """Ask a peer, which waits until it has the transaction."""
        return link.begin("CommitStatus", self.request, self.seconds)

    def take(self, link: Link, answer: Any, error: grpc.RpcError | None) -> Statement[Commit | Denial] | None:
        """Read in which block a peer has the transaction, and its verdict."""
        if error is not None:
            return refused(link, error) if status_of(error) in _FINAL else None
        commit = Commit(self.tx_id, answer.block_number, answer.result)
        before = self.heights.get(link, 0)
        if commit.block < before:
            raise Untrue(f"its block {commit.block} is below {before}, which its chain had reached before")
        link.height = max(link.height, commit.block + 1)
        return Statement((commit.block, commit.code), commit, f"{commit.validation} in block {commit.block}")


def find_commit(links: Sequence[Link], rule: Rule, question: StatusQuestion) -> Commit:
    """Wait until enough organisations report a transaction in the same block with the same verdict.

    One that is not ordered yet is waited for, so this also tells what became of a submission that was lost
    on its way; peers that fail are asked again until the time is over.
    """
    patient = replace(rule, own_lag=0, patience=question.seconds, insist=True)
    try:
        votes = Inquiry(links, patient, question.start, question.take).decide()
    except Undecided as undecided:
        raise_undecided(CommitStatusError, question.tx_id, undecided, f"transaction {question.tx_id[:16]}")
    found = next(iter(votes.values())).value
    if isinstance(found, Denial):
        raise_failure(CommitStatusError, question.tx_id, [(found.link, found.error)])
    return found
