"""What became of a transaction, asked of one peer after the other until one knows."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from .errors import CommitError, CommitStatusError
from .identity import Identity
from .messages import gateway, transaction
from .peer import Link, status_of
from .retry import PAUSES, Attempt, raise_failure

_FINAL = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that one attempt of each phase may take; `commit` is for all attempts together."""

    evaluate: float = 20
    endorse: float = 30
    submit: float = 20
    commit: float = 60
    another_look: float = 5
    """For each other peer, once one did not know of a commit within the time."""


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


def find_commit(
    links: Sequence[Link], identity: Identity, channel: str, tx_id: str, deadlines: Deadlines
) -> Commit:
    """Wait at the first peer that answers; once the time is over, look for a moment at each of the others.

    One that is not ordered yet is waited for, so this also tells what became of a submission that was lost
    on its way; while no peer answers, all are asked again.
    """
    status = gateway.CommitStatusRequest(
        transaction_id=tx_id, channel_id=channel, identity=identity.creator
    ).SerializeToString()
    request = gateway.SignedCommitStatusRequest(request=status, signature=identity.sign(status))
    end = time.monotonic() + deadlines.commit
    while True:
        attempts: list[Attempt] = []
        for link in links:
            left = max(end - time.monotonic(), deadlines.another_look)
            try:
                answer = link.call("CommitStatus", request, left)
            except grpc.RpcError as error:
                attempts.append((link, error))
                if status_of(error) in _FINAL:
                    raise_failure(CommitStatusError, tx_id, attempts)
            else:
                return Commit(tx_id, answer.block_number, answer.result)
        if time.monotonic() >= end:
            raise_failure(CommitStatusError, tx_id, attempts)
        time.sleep(PAUSES[2])
