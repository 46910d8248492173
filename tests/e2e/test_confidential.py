"""A confidential process of three of the network's organisations; the fourth one's peer holds no tree."""

import base64
import json
from pathlib import Path

import pytest
from support.channel import Member, auditor1, auditor2, client_of, register, unique
from support.coalition import chosen
from support.commands import done, refused
from support.federation import node_of
from support.gateway import VALID, GatewayError
from support.launching import height, ledger
from support.player import EXECUTION, MODEL, N_FEATURES, N_MAX, N_NEW, N_SHARE, Player, fitted

from executor.network import Network

pytestmark = pytest.mark.usefixtures("network")

MEMBERS = ("org1", "org2", "org3")
OUTSIDER = "org4"


@pytest.fixture(scope="module")
def before(network: None) -> int:
    return height()


@pytest.fixture(scope="module")
def players(before: int, tmp_path_factory: pytest.TempPathFactory) -> list[Player]:
    """Three nodes that have shared, completed and published, each call endorsed as the Gateway chose."""
    version = unique("1")
    register(version)
    found = [node for node in map(node_of, MEMBERS) if node is not None]
    content = {
        "process": unique("confidential"),
        "nodes": {node.identity: node.organisation for node in found},
        "image": f"attestree/learner:{version}",
        "iterations": 1,
        "seed": 7,
        "n_new": N_NEW,
        "n_max": N_MAX,
        "n_share": N_SHARE,
        "features": [f"V{i}" for i in range(N_FEATURES)],
        "label": "fraud",
        "confidential": True,
    }
    path = tmp_path_factory.mktemp("federation") / "federation.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    process = done("process", "create", "--spec", str(path))["process"]
    for organisation in MEMBERS:
        done("process", "accept", process, "--spec", str(path), organisation=organisation)
    done("process", "start", process)
    made = [Player(node, process) for node in found]
    for player in made:
        assert chosen(player.member, (player.call_open(), {})) == VALID
        assert chosen(player.member, player.call_share()) == VALID
    for player in made:
        assert chosen(player.member, player.call_complete()) == VALID
    for player in made:
        assert chosen(player.member, player.call_publish()) == VALID
    return made


def test_members_read_the_trees_and_export_the_models(players: list[Player], tmp_path: Path) -> None:
    process, first = players[0].process, players[0].node
    for auditor in (auditor1, auditor2, Member("org3", "auditor")):
        answer = auditor.evaluate(EXECUTION, "Estimators", process, [f"{first}/0000"])
        assert answer["estimators"][0]["digest"] == str(fitted(first)[0].tree.digest)
    for organisation, player in zip(MEMBERS, reversed(players), strict=True):
        target = tmp_path / organisation
        done("model", "export", process, player.node, "--out", str(target), organisation=organisation)
        assert (target / "model.json").is_file()


def test_the_outsiders_blocks_hold_digests_and_no_tree(players: list[Player], before: int) -> None:
    transport = ledger(OUTSIDER).transport
    blocks = [transport.block(number) for number in range(before, transport.chain_info().height)]
    trees = [estimator.tree for player in players for estimator in fitted(player.node)]
    for tree in trees:
        raw = tree.to_bytes()
        digest = str(tree.digest).encode()
        assert any(digest in block for block in blocks)
        for form in (raw, base64.b64encode(raw), raw.hex().encode()):
            assert not any(form in block for block in blocks)


def test_the_outsiders_peer_has_no_tree_to_read(players: list[Player]) -> None:
    process, first = players[0].process, players[0].node
    ids = json.dumps([f"{first}/0000"])
    outside = [Network.load().msp_id(OUTSIDER)]
    assert refused("model", "export", process, first, organisation=OUTSIDER) == (12, "ACCESS_GRANT")
    assert Member(OUTSIDER, "auditor").code(EXECUTION, "Estimators", process, ids) == "ACCESS_ORGANISATION"
    for call in ((EXECUTION, "Estimators", process, ids), (MODEL, "Trees", process, first)):
        with pytest.raises(GatewayError) as refusal:
            client_of(auditor1).evaluate(*call, orgs=outside)
        assert refusal.value.code == "PEER_REFUSED"
