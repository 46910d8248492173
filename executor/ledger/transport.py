"""What every transport to the ledger does: evaluate, on one word or on enough, submit, read blocks, events.

The Gateway client (executor/ledger/gateway_transport.py) is the default; `--transport hfc` puts fabric-sdk-py
behind the same interface. A refusal by chaincode is raised in the refusal's own class (protocol.errors), from
the PhaseError that carries the transaction id and what each peer said; everything else is a LedgerError.
"""

from collections.abc import Container, Iterator, Mapping
from typing import Protocol

from executor.ledger.gateway.values import Argument, ChaincodeEvent, ChainInfo, Receipt

__all__ = ["Argument", "ChainInfo", "ChaincodeEvent", "Receipt", "Transport"]


class Transport(Protocol):
    """One identity's way to one channel."""

    def evaluate(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read for information: run a function on a peer of the caller's organisation."""

    def evaluate_agreed(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read what decides something: what enough organisations' peers answer alike."""

    def submit(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
        audience: Container[str] | None = None,
    ) -> Receipt:
        """Write: have a function endorsed and ordered; return once the transaction is valid in a block.

        With an audience, the transient data is for the peers of these organisations alone.
        """

    def chain_info(self) -> ChainInfo:
        """Return the height of the channel as the caller's peer has it."""

    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""

    def events(self, chaincode: str, start: int, seconds: float) -> Iterator[ChaincodeEvent]:
        """Follow a chaincode's events from block `start` on; ends after `seconds`, or when closed."""

    def close(self) -> None:
        """Give the connections back."""
