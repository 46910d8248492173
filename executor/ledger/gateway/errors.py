"""How a call can fail: one class per phase, each with a stable code, the transaction and what each peer said.

    GatewayError
    ├── IdentityError       certificate and key are of no use; nothing was sent
    ├── TrustError          more, or fewer, organisations are to agree than the channel has
    ├── EvaluateError       a read was not answered
    ├── EndorseError        the peers did not agree to sign; nothing was ordered
    ├── SubmitError         the orderers did not take the transaction; nothing was written
    ├── CommitStatusError   nobody could say what became of a transaction that may be ordered
    ├── CommitError         the transaction is in a block, marked invalid; nothing was written
    └── EventsError         the stream of events was lost and no peer takes it up

    code                    meaning
    IDENTITY_UNKNOWN        there is no certificate or no key at the place named
    IDENTITY_UNUSABLE       they cannot be read, do not belong together, or are not ECDSA on P-256
    AGREEMENT_RANGE         no so many organisations can agree
    LEDGER_UNREACHABLE      no peer could be reached, or not enough of them
    LEDGER_TIMEOUT          no peer answered in time
    LEDGER_CONFLICT         others wrote the same keys again and again
    EVALUATE_FAILED, ENDORSE_FAILED, SUBMIT_FAILED, EVENTS_FAILED
                            the phase failed in another way
    COMMIT_UNKNOWN          the transaction may still be committed
    TRANSACTION_INVALID     it is in a block, and was marked invalid there
    TRANSACTION_TOO_LARGE   it is more than a message, or the orderers, take
    TRANSACTION_ALTERED     too few endorsements stand up to the check, because peers brought forged ones
    PEERS_DISAGREE          peers said different things, and no answer has enough organisations behind it

What chaincode refused, or the channel's policy, is in `refusal`, whatever the phase.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

ACCESS_DENIED = "ACCESS_DENIED"
"""The code of a refusal by the channel itself, which does not admit the identity."""

Phase = Literal["", "evaluate", "endorse", "submit", "commit status", "commit", "events"]


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


@dataclass(frozen=True, slots=True)
class Refusal:
    """A no that is an answer: by chaincode, with the code it chose, or by the channel (ACCESS_DENIED)."""

    code: str
    message: str


class GatewayError(Exception):
    """The root; `status` is the name of the gRPC status, empty if it was not gRPC that failed."""

    phase: ClassVar[Phase] = ""

    def __init__(
        self,
        code: str,
        cause: str,
        tx_id: str = "",
        details: Sequence[PeerDetail] = (),
        *,
        status: str = "",
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(code, cause)
        self.code = code
        self.cause = cause
        self.tx_id = tx_id
        self.details = tuple(details)
        self.status = status
        self.refusal = refusal

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}"


class IdentityError(GatewayError):
    """A certificate and a key with which nothing can be signed."""


class TrustError(GatewayError):
    """An agreement that the channel's organisations cannot reach."""


class EvaluateError(GatewayError):
    """A read was not answered."""

    phase = "evaluate"


class EndorseError(GatewayError):
    """The peers did not agree to sign the transaction; nothing was ordered."""

    phase = "endorse"


class SubmitError(GatewayError):
    """The orderers did not take the transaction; nothing was written."""

    phase = "submit"


class CommitStatusError(GatewayError):
    """Nobody could say what became of a transaction that may have been ordered."""

    phase = "commit status"


class CommitError(GatewayError):
    """The transaction is in a block and was marked invalid there; `validation` says why."""

    phase = "commit"

    def __init__(
        self, code: str, cause: str, tx_id: str = "", *, block: int = 0, validation: str = ""
    ) -> None:
        super().__init__(code, cause, tx_id)
        self.block = block
        self.validation = validation


class EventsError(GatewayError):
    """The stream of events was lost, and no peer takes it up again."""

    phase = "events"


def refusal_in(texts: Iterable[str]) -> Refusal | None:
    """Find what chaincode, or the channel's policy, refused in what peers said; None if neither did."""
    said = list(texts)
    for text in said:
        found = _chaincode_refusal(text)
        if found is not None:
            return found
    for text in said:
        if "access denied" in text.lower():
            return Refusal(ACCESS_DENIED, f"the channel does not admit this identity: {text[:300]}")
    return None


def _chaincode_refusal(text: str) -> Refusal | None:
    """Read the JSON object {"code", "message"} that a text of a peer ends with."""
    start = text.find('{"code":')
    if start < 0:
        return None
    try:
        found = json.JSONDecoder().raw_decode(text[start:])[0]
    except (ValueError, RecursionError):
        return None
    code, message = found.get("code"), found.get("message")
    return Refusal(code, message) if isinstance(code, str) and isinstance(message, str) else None
