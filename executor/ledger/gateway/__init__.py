"""A client of the Gateway service of Hyperledger Fabric's peers; it knows nothing of any application.

    Gateway ── contract(name) ──▶ Contract        evaluate, submit, events: all that most programs need
       │                             │ propose
       │                             ▼
       ├── evaluate, endorse ◀── Proposal         one phase at a time, for those who want to act in between
       ├── order ◀────────────── Transaction
       └── commit_status ──────▶ Commit

No single peer is the ledger: what matters is read from so many organisations that enough say the same, what
peers endorse is checked before it is signed, and a commit is what enough organisations report.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import (
    ACCESS_DENIED,
    CommitError,
    CommitStatusError,
    EndorseError,
    EvaluateError,
    EventsError,
    GatewayError,
    IdentityError,
    PeerDetail,
    Refusal,
    SubmitError,
    TrustError,
)
from .trust import Trust
from .values import Argument, ChaincodeEvent, ChainInfo, Receipt

if TYPE_CHECKING:
    from .client import Contract, Gateway
    from .commits import Commit, Deadlines
    from .events import EventStream
    from .identity import Identity
    from .peer import Peer
    from .proposal import Proposal, Transaction

__all__ = [
    "ACCESS_DENIED",
    "Argument",
    "ChainInfo",
    "ChaincodeEvent",
    "Commit",
    "CommitError",
    "CommitStatusError",
    "Contract",
    "Deadlines",
    "EndorseError",
    "EvaluateError",
    "EventStream",
    "EventsError",
    "Gateway",
    "GatewayError",
    "Identity",
    "IdentityError",
    "Peer",
    "PeerDetail",
    "Proposal",
    "Receipt",
    "Refusal",
    "SubmitError",
    "Transaction",
    "Trust",
    "TrustError",
]

# gRPC and the messages take most of a second to load; errors and values are there without them.
_LATER = {
    "Commit": "commits",
    "Contract": "client",
    "Deadlines": "commits",
    "EventStream": "events",
    "Gateway": "client",
    "Identity": "identity",
    "Peer": "peer",
    "Proposal": "proposal",
    "Transaction": "proposal",
}


def __getattr__(name: str) -> object:
    """Load what needs gRPC when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)
