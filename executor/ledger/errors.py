"""What the ledger refused, or failed to do, in the project's own classes: the one place that translates.

A refusal by chaincode is no failure of the ledger: it is raised in the class that the chaincode raised it in
(protocol.errors), with the failed phase as its `__cause__`. Everything else is a PhaseError.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from executor.errors import LedgerError
from executor.ledger.gateway.errors import ACCESS_DENIED, GatewayError, PeerDetail, Phase, Refusal
from protocol.errors import AccessError, AttestreeError, error_from_message

_DOCTOR = "Run `executor doctor`, then try again."
REMEDIES = {
    "LEDGER_UNREACHABLE": "Start the network with network/up.sh, or check with `executor doctor`.",
    "LEDGER_TIMEOUT": "The peers are slow or cut off; run `executor doctor`, then try again.",
    "LEDGER_CONFLICT": "Others write the same records just now; nothing was written, so try again.",
    "LEDGER_ANSWER": "Compare the versions of this client and of the chaincode with `executor doctor`.",
    "TRANSACTION_ALTERED": "Do not use this peer: it asked for a signature on something else.",
    "TRANSACTION_INVALID": "Nothing was written; run `executor doctor` to compare the peers.",
    "TRANSACTION_TOO_LARGE": "Send less in one transaction: fewer or smaller estimators.",
    "EVALUATE_FAILED": _DOCTOR,
    "ENDORSE_FAILED": "Nothing was written. " + _DOCTOR,
    "SUBMIT_FAILED": "Nothing was written. " + _DOCTOR,
    "COMMIT_UNKNOWN": "Ask for the transaction again before repeating it: it may still be committed.",
    "EVENTS_FAILED": _DOCTOR,
}


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
        super().__init__(code, cause, REMEDIES[code])
        self.phase = phase
        self.tx_id = tx_id
        self.details = tuple(details)

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), self.__dict__)


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
        return AccessError(
            ACCESS_DENIED,
            refusal.message,
            "Use an identity that the organisation's CA issued and has not revoked, within its time.",
        )
    return error_from_message(refusal.code, refusal.message)
