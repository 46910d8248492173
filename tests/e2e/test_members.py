"""What one member can do to the others on live peers: nothing that holds them up for good."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from support.channel import (
    DIGESTS,
    IMAGE,
    Member,
    all_msps,
    as_text,
    auditor1,
    gateway,
    register,
    scientist1,
    scientist2,
    specification,
    unique,
)
from support.federation import node_of
from support.gateway import GatewayError
from support.network import until
from support.player import EXECUTION, N_MAX, N_NEW, N_SHARE, Player, played, shared

HERE = "orchestration"
pytestmark = pytest.mark.usefixtures("network")

scientist3 = Member("org3", "data-scientist")
MEMBERS = {"Org1MSP": scientist1, "Org2MSP": scientist2, "Org3MSP": scientist3}


@pytest.fixture(scope="module")
def version(network: None) -> str:
    if node_of("org3") is None:
        pytest.skip("the network has no third organisation")
    made = unique("1")
    register(made)
    return made


def started(version: str, iterations: int = 2, **fields: Any) -> tuple[str, list[Player]]:
    """A running process of three organisations with a node each."""
    process, members = unique("members"), [node_of(f"org{number}") for number in (1, 2, 3)]
    found = [member for member in members if member is not None]
    owners = {member.identity: f"Org{member.organisation[3:]}MSP" for member in found}
    made = specification(process, version, owners, iterations=iterations)
    made["steps"][0]["parameters"] |= {"n_new": N_NEW, "n_share": N_SHARE, "n_max": N_MAX}
    scientist1.propose(made | fields)
    for member in MEMBERS.values():
        member.submit(HERE, "Accept", process)
    scientist1.submit(HERE, "Start", process)
    return process, [Player(member, process) for member in found]


@contextmanager
def asking(process: str) -> Iterator[list[str]]:
    """Have one member ask for one topology after the other for as long as the block runs."""
    sent: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        with closing(gateway("org3", "data-scientist")) as client:
            for kind in itertools.cycle(("full", "disconnected")):
                if stop.is_set():
                    return
                call = as_text(("ChangeTopology", process, 1, {"kind": kind}))
                try:
                    tx_id, envelope, _ = client.endorse(HERE, *call, orgs=all_msps())
                    client.order(tx_id, envelope)
                    client.committed(tx_id)
                except GatewayError:
                    # Peers that are not equally far may endorse it differently: the next one is sent.
                    continue
                sent.append(tx_id)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        until(150, "a first ask is sent", lambda: sent)
        yield sent
    finally:
        stop.set()
        thread.join()


def test_h3_h4_a_stream_of_alternating_asks_invalidates_nobodys_results(version: str) -> None:
    process, players = started(version)
    with asking(process) as sent:
        shared(players)
        until(150, "more asks are sent meanwhile", lambda: len(sent) > 2)
    for player in players:
        player.complete()
    assert auditor1.evaluate(HERE, "Changes", process)["items"] == []
    asked = auditor1.evaluate(HERE, "Asks", process, 100)["items"]
    assert {ask["asked"] for ask in asked} == {"Org3MSP"}


def test_h5_t7_a_member_that_has_used_up_its_changes_keeps_nobody_from_theirs(version: str) -> None:
    process, players = started(version, change_quota=2)
    ask = (HERE, "ChangeTopology", process, 1, {"kind": "disconnected"})
    for _ in range(2):
        scientist3.submit(*ask)
    assert scientist3.code(*ask) == Member("org3", "admin").code(*ask) == "CHANGE_LIMIT"
    scientist3.submit(HERE, "Withdraw", process, 0)
    assert scientist3.code(*ask) == "CHANGE_LIMIT"
    scientist1.submit(HERE, "ChangeTopology", process, 1, {"kind": "full"})
    (own,) = [item for item in asked(process) if item["asked"] == "Org1MSP"]
    assert own["number"] == 0
    for member in (scientist2, scientist3):
        member.submit(*agreed(own))
    (change,) = auditor1.evaluate(HERE, "Changes", process)["items"]
    assert (change["subject"]["kind"], sorted(change["agreed"])) == ("full", sorted(MEMBERS))
    played(players)


def test_t12_asks_of_one_kind_stand_side_by_side_until_one_holds(version: str) -> None:
    process, _ = started(version, iterations=3)
    for at, kind in ((1, "full"), (2, "disconnected"), (1, "disconnected")):
        scientist1.submit(HERE, "ChangeTopology", process, at, {"kind": kind})
    scientist2.submit(HERE, "ChangeTopology", process, 2, {"kind": "full"})
    first, second, third, other = asked(process)
    assert [item["number"] for item in (first, second, third, other)] == [0, 1, 2, 0]
    # An agreement names the ask and what it is about: none is taken for another.
    swapped = (*agreed(second)[:-1], first["digest"])
    assert scientist3.code(*swapped) == "CHANGE_DIGEST"
    for member in (scientist2, scientist3):
        member.submit(*agreed(second))
    (change,) = auditor1.evaluate(HERE, "Changes", process)["items"]
    assert (change["ask"], change["iteration"], change["subject"]["kind"]) == (1, 2, "disconnected")
    # The others were asked for before it held: agreements to them would replace what was decided since.
    assert asked(process) == []
    assert scientist2.code(*agreed(first)) == scientist1.code(*agreed(other)) == "CHANGE_STALE"
    scientist1.submit(HERE, "Withdraw", process, 2)
    assert scientist2.code(*agreed(third)) == "CHANGE_UNKNOWN"
    scientist1.submit(HERE, "ChangeTopology", process, 1, {"kind": "full"})
    assert [ask["number"] for ask in asked(process)] == [3]


def asked(process: str) -> list[dict[str, Any]]:
    """What is asked for, by organisation and number."""
    items: list[dict[str, Any]] = auditor1.evaluate(HERE, "Asks", process)["items"]
    return items


def agreed(ask: dict[str, Any]) -> tuple[Any, ...]:
    """What to call to agree to an ask."""
    return (HERE, "Agree", ask["process"], ask["asked"], ask["number"], ask["digest"])


def test_h7_h10_a_retired_image_and_a_silent_node_do_not_end_a_process(version: str) -> None:
    own = unique("3")
    register(own)
    process, (first, second, silent) = started(own, silence_seconds=1)
    scientist1.submit("image", "Retire", IMAGE, own, "a fault")
    shared([first, second])
    assert scientist3.code(HERE, "LeaveOut", process, "nobody", "x") == "NODE_UNKNOWN"

    def left_out() -> bool:
        for member in (scientist1, scientist2):
            if not auditor1.evaluate(HERE, "Changes", process)["items"]:
                member.submit(HERE, "LeaveOut", process, silent.node, "no sign of life")
        return bool(auditor1.evaluate(HERE, "Changes", process)["items"])

    until(150, f"{silent.node} is left out", left_out)
    (change,) = auditor1.evaluate(HERE, "Changes", process)["items"]
    assert (change["kind"], sorted(change["agreed"])) == ("leave-out", ["Org1MSP", "Org2MSP"])
    for player in (first, second):
        player.complete()
    assert auditor1.evaluate(HERE, "Status", process)["present"] == ["Org1MSP", "Org2MSP"]
    assert scientist3.code(HERE, "Abort", process, "spite") == "ACCESS_ORGANISATION"


def test_h7_a_registrant_outside_the_consortium_stops_neither_start_nor_move(version: str) -> None:
    """It retires what is pinned before all have accepted it, and a version while they vote on it."""
    name, (first, second) = f"attestree/{unique('outside')}", ("1", "2")
    digests = (DIGESTS[1], DIGESTS[2], "registry.example:5000/outside", "for a test")
    scientist3.submit("image", "Register", name, first, *digests)
    members = [member for member in (node_of("org1"), node_of("org2")) if member is not None]
    owners = {member.identity: f"Org{member.organisation[3:]}MSP" for member in members}
    process = unique("outsider")
    made = specification(process, first, owners, iterations=2)
    made["steps"][0]["image"]["name"] = name
    made["steps"][0]["parameters"] |= {"n_new": N_NEW, "n_share": N_SHARE, "n_max": N_MAX}
    scientist1.propose(made)
    scientist1.submit(HERE, "Accept", process)
    scientist3.submit("image", "Retire", name, first, "spite")
    scientist2.submit(HERE, "Accept", process)
    scientist2.submit(HERE, "Start", process)
    played([Player(member, process) for member in members])
    scientist3.submit("image", "Register", name, second, *digests)
    scientist1.submit(HERE, "UpdateImage", process, 1, second)
    scientist3.submit("image", "Retire", name, second, "spite")
    (ask,) = asked(process)
    scientist2.submit(*agreed(ask))
    context = auditor1.evaluate(HERE, "TaskContext", process, members[0].identity, 1)
    assert (context["image"]["version"], context["image"]["agreed"]) == (second, True)
    # What was retired before anybody proposed or asked for it is refused as ever.
    assert scientist1.code(HERE, "Create", made | {"process": unique("late")}) == "IMAGE_RETIRED"
    assert scientist2.code(HERE, "UpdateImage", process, 1, first) == "IMAGE_RETIRED"


def test_h10_a_node_that_shows_signs_of_life_and_never_shares_is_left_out(version: str) -> None:
    process, (first, second, stalling) = started(version, silence_seconds=20)
    shared([first, second])
    place = (EXECUTION, "Refuse", process, stalling.node, 0, "IMAGE_MISMATCH", {"found": "another"})

    def left_out() -> bool:
        stalling.member.submit(*place)
        for member in (scientist1, scientist2):
            if not auditor1.evaluate(HERE, "Changes", process)["items"]:
                member.submit(HERE, "LeaveOut", process, stalling.node, "it never shares")
        return bool(auditor1.evaluate(HERE, "Changes", process)["items"])

    # Whoever has shared waits for it, and is not silent.
    assert scientist2.code(HERE, "LeaveOut", process, first.node, "x") == "NODE_WAITING"
    until(150, f"{stalling.node} is left out", left_out)
    for player in (first, second):
        player.complete()


def test_h8_a_process_whose_nodes_are_done_is_completed_and_not_aborted(version: str) -> None:
    process, players = started(version, iterations=1)
    played(players)
    assert scientist3.code(HERE, "Abort", process, "spite") == "PROCESS_FINISHED"
    assert scientist1.code(HERE, "Complete", process) == "PROCESS_UNPUBLISHED"
    for player in players:
        scientist1.submit("model", "PublishFor", process, player.node)
    scientist1.submit(HERE, "Complete", process)
    assert auditor1.evaluate(HERE, "Get", process)["status"] == "completed"


def test_h9_one_member_aborts_nothing_that_runs_and_one_that_left_nothing_at_all(version: str) -> None:
    process, players = started(version)
    scientist3.submit(HERE, "Abort", process, "alone")
    votes = auditor1.evaluate(HERE, "Votes", process)["abort"]
    assert (votes["status"], sorted(votes["voted"]), votes["needed"]) == ("running", ["Org3MSP"], 2)
    played(players)
    for player, member in zip(players, MEMBERS.values(), strict=True):
        if player is not players[0]:
            member.submit(HERE, "Leave", process, player.node, 1)
    assert scientist3.code(HERE, "Abort", process, "spite") == "ACCESS_ORGANISATION"
    scientist1.submit(HERE, "Abort", process, "the only one left")
    assert auditor1.evaluate(HERE, "Get", process)["status"] == "aborted"
