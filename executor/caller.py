"""Who asks: an identity of an organisation, on a network, by a transport."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from executor.exits import end_with
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.transport import Transport
from executor.network import Network, NetworkError
from protocol.errors import AttestreeError

TRANSPORTS = ("gateway", "hfc")
ORGANISATION = "ATTESTREE_ORGANISATION"
IDENTITY = "ATTESTREE_IDENTITY"
TRANSPORT = "ATTESTREE_TRANSPORT"


@dataclass(frozen=True)
class Caller:
    """Everything that decides how the ledger is asked, and as whom."""

    network: Network
    organisation: str
    identity: str
    transport: str = TRANSPORTS[0]

    def ledger(self) -> Ledger:
        """Open the ledger; use it as a context manager."""
        return Ledger(self._connect())

    def _connect(self) -> Transport:
        if self.transport == "hfc":
            # In an environment of its own, which only those who ask for it have.
            from executor.ledger.hfc.client import HfcTransport  # noqa: PLC0415

            return HfcTransport.connect(self.network, self.organisation, self.identity)
        # gRPC takes its time to load.
        from executor.ledger.gateway_transport import GatewayTransport  # noqa: PLC0415

        return GatewayTransport.connect(self.network, self.organisation, self.identity)


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
    )
