"""What a failed call says: a refusal, which is an answer, or nothing; and what is raised in the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import grpc

from .errors import (
    CommitStatusError,
    EndorseError,
    EvaluateError,
    GatewayError,
    PeerDetail,
    Refusal,
    SubmitError,
    refusal_in,
)
from .inquiry import Statement, Undecided
from .peer import Link, message_of, peer_details, status_of

Attempt = tuple[Link, grpc.RpcError]
Status = grpc.StatusCode


@dataclass(frozen=True, slots=True)
class Denial:
    """A no, as one of those that said it did."""

    link: Link
    error: grpc.RpcError


_RETRY_CODE = "UNAVAILABLE"
"""What a chaincode that is just stopping answers with."""
_CODES = {
    EvaluateError: "EVALUATE_FAILED",
    EndorseError: "ENDORSE_FAILED",
    SubmitError: "SUBMIT_FAILED",
    CommitStatusError: "COMMIT_UNKNOWN",
}
# What another peer may do better at; to everything else it would answer the same.
_ANOTHER_PEER = (
    Status.UNAVAILABLE,
    Status.DEADLINE_EXCEEDED,
    Status.ABORTED,
    Status.CANCELLED,
    Status.RESOURCE_EXHAUSTED,
    Status.FAILED_PRECONDITION,
)
_TOO_LARGE = ("larger than max", "exceeds maximum", "too large")


def refused(link: Link, error: grpc.RpcError) -> Statement[Denial] | None:
    """Read a no as the statement it is; None if the peer just did not answer."""
    refusal = refusal_of(error)
    if refusal is not None:
        return Statement(("refused", refusal.code), Denial(link, error), f"refused: {refusal.code}")
    status = status_of(error)
    if _too_large(error):
        return Statement(("failed", "too large"), Denial(link, error), message_of(error)[:200])
    if status not in _ANOTHER_PEER:
        return Statement(("failed", status.name), Denial(link, error), message_of(error)[:200])
    return None


def raise_failure(
    phase: type[GatewayError], tx_id: str, attempts: Sequence[Attempt], said: Sequence[PeerDetail] = ()
) -> NoReturn:
    """Raise the phase's error, in the words of the peer that came furthest, with what was refused."""
    last = _telling(attempts)
    details = [*said, *(detail for link, error in attempts for detail in link.said(error))]
    code, cause = _code(phase, last), _cause(last, attempts)
    if said:
        cause = f"only {', '.join(detail.msp for detail in said)} answered; {cause}"
    status = status_of(last).name
    raise phase(code, cause, tx_id, details, status=status, refusal=refusal_of(last)) from last


def raise_undecided(phase: type[GatewayError], tx_id: str, found: Undecided, what: str) -> NoReturn:
    """Raise that organisations contradict each other, and who said what; or that too few answered."""
    said = [*found.said, *found.untrue]
    if not found.disagree and not found.untrue and found.failed:
        raise_failure(phase, tx_id, found.failed, said)
    code = "TRANSACTION_ALTERED" if found.untrue and phase is EndorseError else "PEERS_DISAGREE"
    details = [*said, *(detail for link, error in found.failed for detail in link.said(error))]
    who = "; ".join(f"{detail.msp}: {detail.message[:120]}" for detail in details)
    raise phase(code, f"too few organisations agree on {what} ({who})", tx_id, details)


def refusal_of(error: grpc.RpcError) -> Refusal | None:
    """Find what chaincode, or the channel, refused; None if a peer just failed."""
    texts = [*(detail.message for detail in peer_details(error)), message_of(error)]
    if status_of(error) is Status.PERMISSION_DENIED:
        texts.append(f"access denied: {message_of(error)}")
    found = refusal_in(texts)
    return None if found is None or found.code == _RETRY_CODE else found


def _telling(attempts: Sequence[Attempt]) -> grpc.RpcError:
    """A peer that answered tells more than one that cannot be reached, and the last tells most."""
    errors = [error for _, error in attempts]
    answered = [error for error in errors if status_of(error) is not Status.UNAVAILABLE]
    return (answered or errors)[-1]


def _cause(error: grpc.RpcError, attempts: Sequence[Attempt]) -> str:
    said = [detail.message for detail in peer_details(error)]
    where = ", ".join(link.peer.address for link, _ in attempts)
    return f"{message_of(error)[:300]}{': ' + said[-1][:300] if said else ''} (asked {where})"


def _code(phase: type[GatewayError], error: grpc.RpcError) -> str:
    if _too_large(error):
        return "TRANSACTION_TOO_LARGE"
    if phase is CommitStatusError:
        return "COMMIT_UNKNOWN"
    if status_of(error) is Status.UNAVAILABLE:
        return "LEDGER_UNREACHABLE"
    if status_of(error) is Status.DEADLINE_EXCEEDED:
        return "LEDGER_TIMEOUT"
    return _CODES[phase]


def _too_large(error: grpc.RpcError) -> bool:
    return any(sign in message_of(error) for sign in _TOO_LARGE)
