"""From which iteration on a change is asked for when nobody says."""

from typing import Any

import pytest
from support.memory.federation import Federation, prepared
from support.memory.scenario import changed
from support.memory.story import MemberTransport

from executor.ledger.chaincodes.proxies import Ledger
from executor.process.changes import _first

P = "fraud-2026"
APART = changed("topology", {"kind": "disconnected"})


def ahead() -> Federation:
    """Four nodes without neighbours: one has done everything, one two iterations, two nothing."""
    federation = Federation(APART)
    for node, iterations in (("node01", 4), ("node03", 2)):
        player = federation.players[node]
        for iteration in range(iterations):
            player.open(iteration)
            player.complete()
    return federation


@pytest.fixture
def federation() -> Any:
    return prepared(ahead)()


def first(federation: Any, **more: Any) -> int:
    return _first(Ledger(MemberTransport(federation.scientist2)), P, more.pop("iteration", None), **more)


def test_it_is_the_first_that_has_begun_nowhere() -> None:
    federation = Federation(APART)
    assert first(federation) == 1
    assert first(federation, iteration=3) == 3


def test_h9_where_a_node_has_begun_the_last_it_is_the_present_one(federation: Any) -> None:
    assert first(federation) == 0


def test_h9_a_node_comes_back_after_what_it_has_done_and_the_ledger_takes_it(federation: Any) -> None:
    federation.scientist2.submit("orchestration", "Leave", P, "node03", 2)
    assert first(federation, node="node03") == 2
    back = federation.scientist2.submit("orchestration", "Join", P, "node03", "Org2MSP", 2)
    assert back["change"] == 1


def test_when_all_are_done_the_ledger_says_so() -> None:
    federation = Federation(changed("steps", 0, "iterations", 1, base=APART))
    for player in federation.players.values():
        player.open(0)
        player.complete()
    assert first(federation) == 1
