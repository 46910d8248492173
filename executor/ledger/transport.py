"""What every transport to the ledger does: evaluate, submit, read blocks, follow events.

The Gateway client (executor/gateway.py) is the default; `--transport hfc` puts fabric-sdk-py behind the same
interface. A refusal by chaincode is raised in the refusal's own class (protocol.errors), from the phase error
that carries the transaction id and what each peer said; everything else is a LedgerError.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

Argument = str | bytes


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


class Transport(Protocol):
    """One identity's way to one channel."""

    def evaluate(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read: run a function on a peer of the caller's organisation and return its answer."""

    def submit(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
    ) -> Receipt:
        """Write: have a function endorsed and ordered; return once the transaction is valid in a block."""

    def chain_info(self) -> ChainInfo:
        """Return the height of the channel as the caller's peer has it."""

    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""

    def events(self, chaincode: str, start: int, seconds: float) -> Iterator[ChaincodeEvent]:
        """Follow a chaincode's events from block `start` on; ends after `seconds`, or when closed."""

    def close(self) -> None:
        """Give the connections back."""
