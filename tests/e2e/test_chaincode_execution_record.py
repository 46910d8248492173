"""The execution record on live peers: a whole round, what an auditor reads of it, and who is refused."""

from dataclasses import replace

import pytest
from support.channel import DIGESTS, admin1, admin2, auditor1, auditor2, scientist1, scientist2
from support.federation import node_of, nodes, running_process
from support.player import EXECUTION, N_NEW, N_SHARE, Player, fitted

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator

pytestmark = pytest.mark.usefixtures("network")


@pytest.fixture(scope="module")
def players(network: None) -> list[Player]:
    """Two nodes of two organisations that have completed their first iteration of two."""
    process = running_process(iterations=2)
    made = [Player(member, process) for member in nodes()]
    for player in made:
        player.member.submit(*player.call_open())
        call, options = player.call_share()
        player.member.submit(*call, **options)
    for player in made:
        call, options = player.call_complete()
        player.member.submit(*call, **options)
    return made


@pytest.fixture(scope="module")
def opened(network: None) -> list[Player]:
    """Two nodes of another process whose tasks are open."""
    process = running_process(iterations=2)
    made = [Player(member, process) for member in nodes()]
    for player in made:
        player.member.submit(*player.call_open())
    return made


def test_a_round_advances_the_process(players: list[Player]) -> None:
    status = auditor2.evaluate("orchestration", "Status", players[0].process)
    assert [node["completed"] for node in status["nodes"]] == [0, 0]


def test_the_papers_questions_are_answered_at_the_peer_cli(players: list[Player]) -> None:
    first, second = players
    process, auditor = first.process, auditor2.cli
    artifacts = auditor1.cli.evaluate(EXECUTION, "Artifacts", process)["items"]
    assert [item["node"] for item in artifacts] == sorted(player.node for player in players)
    theirs = auditor.evaluate(EXECUTION, "ArtifactsOf", process, "Org2MSP", second.node, 0)["items"]
    assert [item["node"] for item in theirs] == [second.node]
    assert len(theirs[0]["created"]) == N_NEW
    (slot,) = auditor.evaluate(EXECUTION, "Slots", process, first.node)["items"]
    assert (slot["sender"], len(slot["ids"])) == (second.node, N_SHARE)
    found = auditor.evaluate(EXECUTION, "Estimator", process, f"{first.node}/0000")
    assert found["digest"] == str(fitted(first.node)[0].tree.digest)
    lineage = auditor.evaluate(EXECUTION, "Lineage", process, f"{first.node}/0000")
    assert lineage["creator"] == first.node
    assert lineage["image"]["image_id"] == DIGESTS[2]
    assert lineage["offers"][0]["recipients"] == [second.node]
    assert [entry["node"] for entry in lineage["taken"]] == [second.node]
    parts = [process, first.node, "0"]
    history = auditor.evaluate(EXECUTION, "History", "task", parts)["items"]
    assert [change["value"]["state"] for change in history] == ["completed", "shared", "open"]


def test_tasks_are_listed_page_by_page(players: list[Player]) -> None:
    process, first = players[0].process, players[0]
    page = auditor2.evaluate(EXECUTION, "ListTasks", process, "", 1)
    rest = auditor2.evaluate(EXECUTION, "ListTasks", process, "", 1, page["bookmark"])
    assert [page["items"][0]["node"], rest["items"][0]["node"]] == sorted(p.node for p in players)
    assert auditor1.evaluate(EXECUTION, "Standing", process, first.node)["next_counter"] == N_NEW


def test_b1_replays_are_idempotent(players: list[Player]) -> None:
    player = players[0]
    for call, options in (player.call_share(), player.call_complete()):
        assert player.member.evaluate(*call, **options)["replayed"] is True
        player.member.submit(*call, **options)
    parts = [player.process, player.node, "0"]
    assert len(auditor1.evaluate(EXECUTION, "History", "task", parts)["items"]) == 3


def test_b3_b4_other_keys_are_refused(opened: list[Player]) -> None:
    first, second = opened
    call, options = first.call_share(key=second.key)
    assert first.member.code(*call, **options) == "SIGNATURE_INVALID"
    assert first.member.code(*first.call_open()) == "LIFECYCLE_TRANSITION"


def test_b12_weak_and_used_keys_are_refused(opened: list[Player]) -> None:
    player = Player(opened[0].member, running_process(iterations=1))
    *call, opening, proof, profile = player.call_open()
    weak = opening | {"public_key": "ed25519:" + 64 * "0"}
    assert player.member.code(*call, weak, proof, profile) == "KEY_WEAK"
    again = Player(player.member, player.process, key=opened[0].key)
    assert again.member.code(*again.call_open()) == "KEY_USED"
    player.commitment = replace(player.commitment, image_id=Digest.parse(DIGESTS[9]))
    another = (player.commitment.to_dict(), player.proof().hex())
    assert player.member.code(*call, *another, profile) == "IMAGE_MISMATCH"
    player.member.submit(
        EXECUTION, "Refuse", player.process, player.node, 0, "IMAGE_MISMATCH", {"found": DIGESTS[9]}
    )
    (refusal,) = auditor2.evaluate(EXECUTION, "ListRefusals", player.process)["items"]
    assert refusal["evidence"] == {"found": DIGESTS[9]}
    player.member.submit(*player.call_open())
    player.member.submit(EXECUTION, "Fail", player.process, player.node, 0, "OOM", "memory")
    task = auditor1.evaluate(EXECUTION, "GetTask", player.process, player.node, 0)
    assert (task["state"], task["attempt"]) == ("failed", 2)


def test_c1_a_non_member_is_refused(opened: list[Player]) -> None:
    player = opened[0]
    call, options = player.call_share()
    stranger = node_of("org3")
    if stranger is not None:
        assert stranger.code(*call, **options) == "ACCESS_ORGANISATION"
    for caller in (auditor1, admin1, scientist1):
        assert caller.code(*call, **options) == "ACCESS_ROLE"


def test_c2_two_organisations_cannot_write_for_each_other(opened: list[Player]) -> None:
    first, second = opened
    for mine, theirs in ((first, second), (second, first)):
        call, options = mine.call_share()
        assert theirs.member.code(*call, **options) == "ACCESS_ORGANISATION"
    call = (EXECUTION, "Expire", first.process, first.node, 0)
    assert admin2.code(*call) == "ACCESS_ORGANISATION"
    assert admin1.code(*call) == "TASK_NOT_EXPIRED"


def test_c6_iterations_come_in_order(opened: list[Player]) -> None:
    player = opened[0]
    call = list(player.call_open())
    call[4] = 1
    assert player.member.code(*call) == "ITERATION_ORDER"
    call[4] = -1
    assert player.member.code(*call) == "COUNTER_RANGE"


def test_d15_a_forged_creator_is_refused(opened: list[Player]) -> None:
    first, second = opened
    forged = Estimator(EstimatorId(second.node, 0), fitted(first.node)[0].tree)
    call, options = first.call_share((forged,))
    assert first.member.code(*call, **options) == "ESTIMATOR_NOT_HELD"
    counter = Estimator(EstimatorId(first.node, N_NEW), fitted(first.node)[0].tree)
    call, options = first.call_share((counter,))
    assert first.member.code(*call, **options) == "ESTIMATOR_COUNTER"


def test_d19_bytes_that_are_no_share_are_refused(opened: list[Player]) -> None:
    player = opened[0]
    call, options = player.signed("Share", b"\x80\x04\x95pickle")
    assert player.member.code(*call, **options) == "SHARE_VERSION"


def test_c9_results_in_flight_when_the_process_is_aborted_are_refused() -> None:
    process = running_process(iterations=1)
    player = Player(nodes()[0], process)
    player.member.submit(*player.call_open())
    scientist2.submit("orchestration", "Abort", process, "a test")
    call, options = player.call_share()
    assert player.member.code(*call, **options) == "PROCESS_NOT_RUNNING"
