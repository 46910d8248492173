"""The default transport: the Gateway client on this network, its errors in the project's classes."""

from collections.abc import Container, Iterator, Mapping
from typing import Self

from executor.ledger.errors import translated
from executor.ledger.gateway import Gateway, Trust
from executor.ledger.identities import (
    authorities_of,
    check_organisation,
    check_trust,
    load_identity,
    peers_of,
)
from executor.ledger.transport import Argument, ChaincodeEvent, ChainInfo, Receipt
from executor.network import CHANNEL, Network


class GatewayTransport:
    """A gateway behind the interface that the proxies use; threads may share it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    @classmethod
    def connect(
        cls,
        network: Network,
        organisation: str,
        identity: str,
        trust: Trust = Trust(),  # noqa: B008 - frozen
        *,
        own_peer_only: bool = False,
    ) -> Self:
        """Act as a user of an organisation; `trust` says whose word counts.

        With `own_peer_only` no other organisation's peer is ever asked, whatever becomes of the own one.
        """
        check_organisation(network, organisation)
        check_trust(network, trust)
        authorities = authorities_of(network)
        peers = peers_of(network, organisation)[: 1 if own_peer_only else None]
        return cls(
            Gateway(load_identity(network, organisation, identity), peers, CHANNEL, authorities, trust)
        )

    @translated()
    def evaluate(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read on the own peer's word, or on that of enough others while it does not answer."""
        return self.gateway.contract(chaincode).evaluate(function, *arguments)

    @translated()
    def evaluate_agreed(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read what enough organisations say alike."""
        return self.gateway.contract(chaincode).evaluate_agreed(function, *arguments)

    @translated()
    def submit(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
        audience: Container[str] | None = None,
    ) -> Receipt:
        """Write: return once the transaction is valid in a block; one that others overtook is made anew."""
        contract = self.gateway.contract(chaincode)
        return contract.submit(function, *arguments, transient=transient, audience=audience)

    @translated()
    def chain_info(self) -> ChainInfo:
        """Return the height of the channel; a peer whose chain gets shorter is not believed."""
        return self.gateway.chain_info()

    @translated()
    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""
        return self.gateway.block(number)

    def events(self, chaincode: str, start: int, seconds: float) -> "TranslatedEvents":
        """Follow a chaincode's events from block `start` on; ends after `seconds`, or when closed."""
        return TranslatedEvents(self.gateway, chaincode, start, seconds)

    def close(self) -> None:
        """Give the connections back."""
        self.gateway.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TranslatedEvents(Iterator[ChaincodeEvent]):
    """A stream of events that fails in the project's classes; another thread may close it."""

    def __init__(self, gateway: Gateway, chaincode: str, start: int, seconds: float) -> None:
        self._stream = gateway.contract(chaincode).events(start, seconds)

    @translated()
    def __next__(self) -> ChaincodeEvent:
        return next(self._stream)

    def close(self) -> None:
        """End the stream; a thread that waits for the next event is released."""
        self._stream.close()
