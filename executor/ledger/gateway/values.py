"""What calls take and return."""

from dataclasses import dataclass

Argument = str | bytes
"""Text travels as UTF-8."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A transaction that is on the ledger, and what chaincode answered."""

    tx_id: str
    block: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class ChainInfo:
    """How far a peer's copy of the channel is: the next block number, and the hash of the last header."""

    height: int
    current: bytes


@dataclass(frozen=True, slots=True)
class ChaincodeEvent:
    """What a committed, valid transaction announced."""

    block: int
    tx_id: str
    name: str
    payload: bytes
