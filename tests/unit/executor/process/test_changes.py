"""From which iteration on a change is asked for when nobody says."""

from typing import Any

import pytest
from support.memory.federation import Federation, prepared
from support.memory.scenario import changed
from support.memory.story import MemberTransport

from executor.ledger.chaincodes.proxies import Ledger
from executor.process.asks import agreed, first_of, rejoin
from protocol.agreement.course import ChangeKind

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
    return first_of(Ledger(MemberTransport(federation.scientist2)), P, more.pop("iteration", None), **more)


def test_it_is_the_first_that_has_begun_nowhere() -> None:
    federation = Federation(APART)
    assert first(federation) == 1
    assert first(federation, iteration=3) == 3


def test_h9_where_a_node_has_begun_the_last_it_is_the_present_one(federation: Any) -> None:
    assert first(federation) == 0


def test_h9_a_node_comes_back_after_what_it_has_done_and_the_ledger_takes_it(federation: Any) -> None:
    federation.scientist2.submit("orchestration", "Leave", P, "node03", 2)
    back = rejoin(Ledger(MemberTransport(federation.scientist2)), P, "node03", "Org2MSP", None)
    assert (back.answer.iteration, back.answer.change) == (2, 1)


def test_a_node_comes_back_from_the_first_iteration_on_that_its_neighbours_have_not_begun() -> None:
    federation = Federation(changed("steps", 0, "iterations", 4))
    federation.scientist2.submit("orchestration", "Leave", P, "node03", 0)
    back = rejoin(Ledger(MemberTransport(federation.scientist2)), P, "node03", "Org2MSP", None)
    assert (back.answer.iteration, back.answer.change) == (1, 1)


def test_when_all_are_done_the_ledger_says_so() -> None:
    federation = Federation(changed("steps", 0, "iterations", 1, base=APART))
    for player in federation.players.values():
        player.open(0)
        player.complete()
    assert first(federation) == 1


# --- agreeing to what others ask for ---

THREE = changed("steps", 0, "iterations", 6, base=APART) | {
    "organisations": ["Org1MSP", "Org2MSP", "Org3MSP"],
    "nodes": {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"},
}
RING = {"kind": "ring"}


@pytest.fixture
def three() -> Any:
    return prepared(lambda: Federation(THREE))()


def asked(federation: Any, iteration: int, who: str = "scientist1") -> Any:
    caller = getattr(federation, who)
    return caller.submit("orchestration", "ChangeTopology", P, iteration, RING)


def agrees(federation: Any, number: int, iteration: int | None = None) -> Any:
    ledger = Ledger(MemberTransport(getattr(federation, f"scientist{number}")))
    return agreed(ledger, P, ChangeKind.TOPOLOGY, RING, iteration, f"Org{number}MSP")


def test_h4_an_ask_for_the_last_iteration_does_not_collect_the_agreements_to_one_for_now(three: Any) -> None:
    """Its asker comes first in every list: all who say no iteration would agree to do nothing for long."""
    asked(three, 5)
    assert agrees(three, 2) is None
    asked(three, 1, "scientist2")
    found = agrees(three, 3).answer
    assert (found.asked, found.iteration, found.agreed) == ("Org2MSP", 1, ("Org2MSP", "Org3MSP"))
    assert agrees(three, 3, 5).answer.asked == "Org1MSP"


def test_an_ask_whose_iteration_is_over_keeps_nobody_from_asking_again(three: Any) -> None:
    asked(three, 1)
    for node in three.players:
        three.players[node].open(0)
        three.players[node].complete()
    three.play(1)
    assert agrees(three, 2) is None
    assert [ask["agreed"] for ask in three.admin1.evaluate("orchestration", "Asks", P)["items"]] == [
        ["Org1MSP"]
    ]


def test_of_two_asks_for_the_same_the_one_with_more_agreements_comes_first(three: Any) -> None:
    asked(three, 1)
    three.agree(three.admin2, asked(three, 1, "scientist3"))
    assert agrees(three, 1).answer.holds


def test_an_image_that_holds_is_agreed_to_whenever_it_does(three: Any) -> None:
    three.register(version="2.0.0")
    ask = three.scientist1.submit("orchestration", "UpdateImage", P, 5, "2.0.0")
    assert three.agree(three.admin2, ask)["change"] == 0
    ledger = Ledger(MemberTransport(three.scientist3))
    done = agreed(ledger, P, ChangeKind.IMAGE, {"version": "2.0.0"}, None, "Org3MSP")
    assert done is not None
    assert done.answer.missing == ()
