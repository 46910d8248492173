"""Who endorses a call: those whom the Gateway service chooses, or all but the caller's own organisation."""

from collections.abc import Mapping
from typing import Any

from executor.network import Network
from support.channel import Member, as_text, client_of, committed_everywhere
from support.gateway import VALID
from support.player import Call

POLICY_FAILURE = 10


def chosen(member: Member, call: Call) -> int:
    """Let the Gateway service choose who endorses; returns the verdict of the channel."""
    return _verdict(member, *call)


def without(member: Member, call: Call) -> int:
    """Have every organisation but the caller's own endorse a call; returns the verdict of the channel."""
    live = Network.load()
    others = [live.msp_id(name) for name in live.organisations if name != member.organisation]
    arguments, options = call
    return _verdict(member, arguments, options | {"orgs": others})


def _verdict(member: Member, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> int:
    chaincode, *rest = arguments
    committed = client_of(member).submit(chaincode, *as_text(tuple(rest)), **options)
    if committed.code == VALID:
        committed_everywhere(committed.tx_id)
    return int(committed.code)
