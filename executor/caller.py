"""Who asks: an identity of an organisation, on a network, by a transport."""

import functools
import os
from collections.abc import Callable
from typing import Any

import click

from executor.exits import end_with
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.gateway.trust import Trust
from executor.ledger.transport import Transport
from executor.network import Network, NetworkError
from protocol.errors import AttestreeError
from protocol.values import dataclass

TRANSPORTS = ("gateway", "hfc")
ORGANISATION = "ATTESTREE_ORGANISATION"
IDENTITY = "ATTESTREE_IDENTITY"
TRANSPORT = "ATTESTREE_TRANSPORT"
TRUST_OWN_PEER = "ATTESTREE_TRUST_OWN_PEER"
TRUST_PEERS = "ATTESTREE_TRUST_PEERS"
AGREEMENT = "ATTESTREE_AGREEMENT"


@dataclass(frozen=True)
class Caller:
    """Everything that decides how the ledger is asked, and as whom."""

    network: Network
    organisation: str
    identity: str
    transport: str = TRANSPORTS[0]
    trust: Trust = Trust()

    def ledger(self) -> Ledger:
        """Open the ledger; use it as a context manager."""
        return Ledger(self._connect())

    def own_peer(self) -> Transport:
        """Open the way to the own organisation's peer and to no other, which only the Gateway client has."""
        from executor.ledger.gateway_transport import GatewayTransport  # noqa: PLC0415 - gRPC loads slowly

        return GatewayTransport.connect(
            self.network, self.organisation, self.identity, self.trust, own_peer_only=True
        )

    def _connect(self) -> Transport:
        if self.transport == "hfc":
            # In an environment of its own, which only those who ask for it have.
            from executor.ledger.hfc.client import HfcTransport  # noqa: PLC0415

            return HfcTransport.connect(self.network, self.organisation, self.identity, self.trust)
        # gRPC takes its time to load.
        from executor.ledger.gateway_transport import GatewayTransport  # noqa: PLC0415

        return GatewayTransport.connect(self.network, self.organisation, self.identity, self.trust)


def group_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the whole program; commands read them through caller_options."""
    options = (
        click.option(
            "--transport",
            type=click.Choice(TRANSPORTS),
            envvar=TRANSPORT,
            help="How to reach the ledger. [default: gateway]",
        ),
        click.option("--organisation", envvar=ORGANISATION, help="Whose identity to use. [default: org1]"),
        click.option("--identity", envvar=IDENTITY, help="Which identity. [default: the command's]"),
        click.option(
            "--trust-own-peer",
            is_flag=True,
            envvar=TRUST_OWN_PEER,
            help="Believe the own organisation's peer alone, in everything.",
        ),
        click.option(
            "--trust-peers",
            is_flag=True,
            envvar=TRUST_PEERS,
            help="Believe any single peer in what decides nothing, while the own one is down.",
        ),
        click.option(
            "--agreement",
            type=click.IntRange(min=1),
            envvar=AGREEMENT,
            metavar="N",
            help="How many organisations make a fact. [default: more than a third]",
        ),
    )
    return functools.reduce(lambda made, option: option(made), reversed(options), command)


def caller_options(
    identity: str, unless: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command `caller`: by its own options, the program's, the environment, or else the default.

    `unless` names an option with which the command asks nobody; `caller` is then None, and no network needed.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            given = {"organisation": kwargs.pop("organisation"), "identity": kwargs.pop("identity")}
            if unless is not None and kwargs.get(unless):
                return command(*args, caller=None, **kwargs)
            try:
                caller = _caller(given, identity)
            except (AttestreeError, NetworkError) as error:
                end_with(error, bool(kwargs.get("as_json")))
            return command(*args, caller=caller, **kwargs)

        shown = click.option("--identity", help=f"As whom to call. [default: {identity}]")(wrapped)
        return click.option("--organisation", help="For which organisation. [default: org1]")(shown)

    return decorate


def _caller(given: dict[str, str | None], identity: str) -> Caller:
    root = click.get_current_context().find_root().params

    def chosen(name: str, variable: str, default: str) -> str:
        return given.get(name) or root.get(name) or os.environ.get(variable) or default

    return Caller(
        Network.load(),
        chosen("organisation", ORGANISATION, "org1"),
        chosen("identity", IDENTITY, identity),
        chosen("transport", TRANSPORT, TRANSPORTS[0]),
        _trust(root),
    )


def _trust(root: dict[str, Any]) -> Trust:
    """Whose word counts: by the program's options, or by the environment where a command runs without it."""

    def flag(name: str, variable: str) -> bool:
        given = root.get(name)
        return bool(click.BOOL(os.environ.get(variable) or "no") if given is None else given)

    agreement = root.get("agreement") or os.environ.get(AGREEMENT)
    return Trust(
        own_peer=flag("trust_own_peer", TRUST_OWN_PEER),
        peers=flag("trust_peers", TRUST_PEERS),
        agreement=click.INT(agreement) if agreement else None,
    )
