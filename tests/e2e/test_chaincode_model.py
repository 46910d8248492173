"""The model chaincode on live peers: publish, grant, read, revoke."""

import base64

import pytest
from support.channel import DIGESTS, Member, admin1, admin2, auditor1, auditor2, scientist1
from support.federation import node_of, nodes, running_process
from support.player import EXECUTION, MODEL, Player

from protocol.identifiers import EstimatorId
from protocol.task.result import ensemble_digest
from protocol.trees.tree import FORMAT_LIMITS, Tree


@pytest.fixture(scope="module")
def published(network: None) -> Player:
    """A node that has done its only iteration and published its model; the other has done it too."""
    process = running_process(iterations=1)
    players = [Player(member, process) for member in nodes()]
    assert (
        players[0].member.code(MODEL, "Publish", process, players[0].node, [], DIGESTS[1], {})
        == "TASK_UNKNOWN"
    )
    for player in players:
        player.member.submit(*player.call_open())
        call, options = player.call_share()
        player.member.submit(*call, **options)
    for player in players:
        call, options = player.call_complete()
        player.member.submit(*call, **options)
    first, second = players
    call, options = first.call_publish()
    assert second.member.code(*call, **options) == "ACCESS_ORGANISATION"
    assert first.member.code(*call[:4], [*call[4], "node99/0000"], *call[5:], **options) == "MODEL_ESTIMATORS"
    assert first.member.code(*call[:5], DIGESTS[1], *call[6:], **options) == "MODEL_DIGEST"
    first.member.submit(*call, **options)
    return first


@pytest.fixture
def stranger() -> Member:
    found = node_of("org3")
    if found is None:
        pytest.skip("the network has no third organisation")
    return Member("org3", "auditor")


def test_the_consortium_reads_and_verifies_the_model_at_the_peer_cli(published: Player) -> None:
    auditor = auditor2.cli
    model = auditor.evaluate(MODEL, "Get", published.process, published.node)
    page = auditor.evaluate(MODEL, "Trees", published.process, published.node)
    trees = {
        EstimatorId.parse(item["id"]): Tree.from_bytes(base64.b64decode(item["tree"]), FORMAT_LIMITS).digest
        for item in page["items"]
    }
    assert str(ensemble_digest(list(trees.items()))) == model["digest"]
    last = auditor.evaluate(EXECUTION, "LastResult", published.process, published.node)
    assert last["ensemble_digest"] == model["digest"]
    lineage = auditor.evaluate(EXECUTION, "Lineage", published.process, f"{published.node}/0000")
    assert lineage["models"] == [published.node]
    listed = auditor.evaluate(MODEL, "List", published.process)["items"]
    assert [item["node"] for item in listed] == [published.node]


def test_c14_a_model_is_published_once(published: Player) -> None:
    call, options = published.call_publish()
    assert published.member.code(*call, **options) == "MODEL_EXISTS"


def test_c15_access_is_granted_revoked_and_remembered(published: Player) -> None:
    place = (published.process, published.node)
    admin1.submit(MODEL, "Revoke", *place, "Org2MSP")
    assert auditor2.code(MODEL, "Get", *place) == "ACCESS_GRANT"
    scientist1.cli.submit(MODEL, "Grant", *place, "Org2MSP", "2099-01-01T00:00:00Z")
    assert auditor2.evaluate(MODEL, "Get", *place)["node"] == published.node
    # Another test may have granted to another organisation before.
    history = auditor2.evaluate(MODEL, "AccessHistory", *place)["items"]
    changes = [entry["value"]["change"] for entry in history]
    assert [change["action"] for change in changes if change["organisation"] == "Org2MSP"] == [
        "grant",
        "revoke",
    ]
    assert changes[-1]["action"] == "publish"
    granted = auditor1.evaluate(MODEL, "Access", *place)["organisations"]["Org2MSP"]
    assert granted["expires"].startswith("2099-01-01")


def test_only_the_owner_grants(published: Player) -> None:
    call = (MODEL, "Grant", published.process, published.node, "Org3MSP")
    assert admin2.code(*call) == "ACCESS_ORGANISATION"
    assert auditor1.code(*call) == "ACCESS_ROLE"
    assert admin1.code(*call[:-1], "Org1MSP") == "GRANT_OWNER"
    assert admin1.code(*call, "2001-01-01T00:00:00Z") == "GRANT_EXPIRY"


def test_c4_a_stranger_reads_with_a_grant_and_not_without(published: Player, stranger: Member) -> None:
    place = (published.process, published.node)
    assert stranger.code(MODEL, "Get", *place) == "ACCESS_GRANT"
    admin1.submit(MODEL, "Grant", *place, "Org3MSP")
    assert stranger.evaluate(MODEL, "Get", *place)["node"] == published.node
    assert stranger.evaluate(MODEL, "Trees", *place)["items"]
    assert stranger.code(EXECUTION, "Estimator", place[0], f"{place[1]}/0000") == "ACCESS_ORGANISATION"
    admin1.submit(MODEL, "Revoke", *place, "Org3MSP")
    assert stranger.code(MODEL, "Trees", *place) == "ACCESS_GRANT"
