"""What the ledger refused, or failed to do, in the project's own classes: the one place that translates.

A refusal by chaincode is no failure of the ledger: it is raised in the class that the chaincode raised it in
(protocol.errors), with the failed phase as its `__cause__`. Everything else is a PhaseError.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from executor import codes
from executor.errors import LedgerError
from executor.ledger.gateway.errors import ACCESS_DENIED, GatewayError, PeerDetail, Phase, Refusal
from protocol.errors import AccessError, AttestreeError, define, error_from_message


class PhaseError(LedgerError):
    """A phase of a call failed; with the transaction, if there is one, and what each peer said."""

    def __init__(
        self,
        code: str,
        cause: str,
        phase: Phase = "evaluate",
        tx_id: str = "",
        details: Sequence[PeerDetail] = (),
    ) -> None:
        super().__init__(code, cause)
        self.phase = phase
        self.tx_id = tx_id
        self.details = tuple(details)

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), self.__dict__)


define(PhaseError, codes.PHASE)
define(AccessError, codes.ACCESS)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the Gateway client raises within in the project's classes; decorates functions, too."""
    try:
        yield
    except GatewayError as error:
        failure = PhaseError(error.code, error.cause, error.phase, error.tx_id, error.details)
        failure.__cause__ = error
        raise_failure(failure, error.refusal)


def raise_failure(failure: PhaseError, refusal: Refusal | None) -> NoReturn:
    """Raise what was refused, from the phase in which it was; or that the phase failed."""
    if refusal is not None:
        raise refused(refusal) from failure
    raise failure


def refused(refusal: Refusal) -> AttestreeError:
    """Make the error that chaincode, or the channel, refused with."""
    if refusal.code == ACCESS_DENIED:
        return AccessError(ACCESS_DENIED, refusal.message)
    return error_from_message(refusal.code, refusal.message)
