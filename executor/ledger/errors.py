"""How the ledger can fail, one class per phase, each with the transaction id and what each peer said.

    LedgerError
    └── PhaseError
        ├── EvaluateError       a read was not answered
        ├── EndorseError        the peers did not agree to sign; nothing was ordered
        ├── SubmitError         the orderers did not take the transaction; nothing was written
        ├── CommitStatusError   nobody could say what became of a transaction that may be ordered
        ├── CommitError         the transaction is in a block, marked invalid; nothing was written
        └── EventsError         the stream of events was lost and no peer takes it up

A refusal by chaincode is no failure of the ledger: it is raised in its own class (protocol.errors), with the
phase error as its `__cause__`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from executor.errors import LedgerError
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


@dataclass(frozen=True, slots=True)
class PeerDetail:
    """What one peer or orderer said."""

    address: str
    msp: str
    message: str

    def __str__(self) -> str:
        return (
            f"{self.address} ({self.msp}): {self.message}" if self.msp else f"{self.address}: {self.message}"
        )


class PhaseError(LedgerError):
    """A phase of a transaction failed; `status` is the gRPC status, empty if it was not gRPC that failed."""

    def __init__(
        self, code: str, cause: str, tx_id: str = "", details: Sequence[PeerDetail] = (), status: str = ""
    ) -> None:
        super().__init__(code, cause, REMEDIES[code])
        self.tx_id = tx_id
        self.details = tuple(details)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), self.__dict__)


class EvaluateError(PhaseError):
    """A read was not answered."""


class EndorseError(PhaseError):
    """The peers did not agree to sign the transaction; nothing was ordered."""


class SubmitError(PhaseError):
    """The orderers did not take the transaction; nothing was written."""


class CommitStatusError(PhaseError):
    """Nobody could say what became of a transaction that may have been ordered."""


class CommitError(PhaseError):
    """The transaction is in a block and was marked invalid there; `validation` says why."""

    def __init__(self, code: str, tx_id: str, block: int, validation: str) -> None:
        super().__init__(code, f"transaction {tx_id[:16]} is invalid in block {block}: {validation}", tx_id)
        self.block = block
        self.validation = validation


class EventsError(PhaseError):
    """The stream of events was lost, and no peer takes it up again."""


def refusal_in(texts: Iterable[str]) -> AttestreeError | None:
    """Find what chaincode, or the channel's policy, refused in what peers said; None if neither did."""
    said = list(texts)
    for text in said:
        found = _chaincode_error(text)
        if found is not None:
            return error_from_message(*found)
    for text in said:
        if "access denied" in text.lower():
            return AccessError(
                "ACCESS_DENIED",
                f"the channel does not admit this identity: {text[:300]}",
                "Use an identity that the organisation's CA issued and has not revoked, within its time.",
            )
    return None


def _chaincode_error(text: str) -> tuple[str, str] | None:
    """Read the JSON object {"code", "message"} that a text of a peer ends with."""
    start = text.find('{"code":')
    if start < 0:
        return None
    try:
        found = json.JSONDecoder().raw_decode(text[start:])[0]
    except (ValueError, RecursionError):
        return None
    code, message = found.get("code"), found.get("message")
    return (code, message) if isinstance(code, str) and isinstance(message, str) else None
