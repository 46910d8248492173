"""What a coalition can write about another organisation's node on live peers: nothing without that one."""

import pytest
from support.channel import Member, admin1, as_text, client_of
from support.federation import nodes, proposed_process, running_process
from support.gateway import VALID
from support.player import Call, Player

from executor.network import Network

pytestmark = pytest.mark.usefixtures("network")

POLICY_FAILURE = 10


def without(member: Member, call: Call) -> int:
    """Have every organisation but the caller's own endorse a call; returns the verdict of the channel."""
    arguments, options = call
    live = Network.load()
    others = [live.msp_id(name) for name in live.organisations if name != member.organisation]
    return _verdict(member, arguments, options | {"orgs": others})


def chosen(member: Member, call: Call) -> int:
    """Let the Gateway service choose who endorses."""
    return _verdict(member, *call)


def _verdict(member: Member, arguments: tuple[object, ...], options: dict[str, object]) -> int:
    chaincode, *rest = arguments
    return int(client_of(member).submit(chaincode, *as_text(tuple(rest)), **options).code)


def test_h1_a_coalition_cannot_act_for_a_node_without_its_organisation() -> None:
    """The majority that endorses runs the true chaincode and holds the node's key: it is not enough."""
    process = running_process(iterations=1)
    first, second = (Player(member, process) for member in nodes())
    opening = (first.call_open(), {})
    assert without(first.member, opening) == POLICY_FAILURE
    assert chosen(first.member, opening) == VALID
    assert chosen(second.member, (second.call_open(), {})) == VALID
    for player in (first, second):
        assert without(player.member, player.call_share()) == POLICY_FAILURE
        assert chosen(player.member, player.call_share()) == VALID
    for player in (first, second):
        result = player.call_complete()
        assert without(player.member, result) == POLICY_FAILURE
        assert chosen(player.member, result) == VALID


def test_h1_a_coalition_cannot_accept_a_process_for_another_organisation() -> None:
    acceptance = (("orchestration", "Accept", proposed_process()), {})
    assert without(admin1, acceptance) == POLICY_FAILURE
    assert chosen(admin1, acceptance) == VALID
