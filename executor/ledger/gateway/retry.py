"""Which failed call is repeated where, and what is raised when nobody is left to ask."""

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import grpc

from .errors import (
    CommitStatusError,
    EndorseError,
    EvaluateError,
    GatewayError,
    Refusal,
    SubmitError,
    refusal_in,
)
from .peer import Link, message_of, peer_details, status_of

log = logging.getLogger(__name__)
T = TypeVar("T")
Attempt = tuple[Link, grpc.RpcError]
Status = grpc.StatusCode

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""How long peers get to catch up with each other when they disagree, each times a random factor."""

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
    Status.RESOURCE_EXHAUSTED,
    Status.FAILED_PRECONDITION,
)
_TOO_LARGE = ("larger than max", "exceeds maximum", "too large")


def first_answer(
    links: Sequence[Link], phase: type[GatewayError], tx_id: str, ask: Callable[[Link], T]
) -> tuple[Link, T]:
    """Ask one peer after the other, for what may be asked twice; a refusal is an answer and ends it."""
    attempts: list[Attempt] = []
    for link in links:
        try:
            answer = ask(link)
        except grpc.RpcError as error:
            attempts.append((link, error))
            if _refusal(error) is not None or _too_large(error) or status_of(error) not in _ANOTHER_PEER:
                break
        else:
            _tell(attempts, link)
            return link, answer
    return raise_failure(phase, tx_id, attempts)


def agreed(link: Link, ask: Callable[[], T]) -> T:
    """Repeat an endorsement while only other peers object: they may be a block behind the one that leads."""
    for pause in PAUSES:
        try:
            return ask()
        except grpc.RpcError as error:
            objectors = {detail.msp for detail in peer_details(error)}
            if not objectors or link.peer.msp in objectors:
                raise
        time.sleep(pause * random.uniform(0.5, 2))  # noqa: S311 - no secret
    return ask()


def raise_failure(phase: type[GatewayError], tx_id: str, attempts: Sequence[Attempt]) -> NoReturn:
    """Raise the phase's error, in the words of the peer that came furthest, with what was refused."""
    last = _telling(attempts)
    details = [detail for link, error in attempts for detail in link.said(error)]
    code, cause = _code(phase, last), _cause(last, attempts)
    status = status_of(last).name
    raise phase(code, cause, tx_id, details, status=status, refusal=_refusal(last)) from last


def _tell(attempts: Sequence[Attempt], link: Link) -> None:
    """Say once that a peer stands in: who trusts only the own organisation's peer wants to know."""
    if attempts and not attempts[0][0].stood_in_for:
        attempts[0][0].stood_in_for = True
        own = attempts[0][0].peer
        log.warning(
            "the peer of %s does not answer (%s); %s of %s does",
            own.msp, own.address, link.peer.address, link.peer.msp,
        )  # fmt: skip


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


def _refusal(error: grpc.RpcError) -> Refusal | None:
    texts = [*(detail.message for detail in peer_details(error)), message_of(error)]
    if status_of(error) is Status.PERMISSION_DENIED:
        texts.append(f"access denied: {message_of(error)}")
    found = refusal_in(texts)
    return None if found is None or found.code == _RETRY_CODE else found
