"""A confidential process: its trees are for the peers of its organisations, all else as ever."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from support.memory.federation import EXECUTION, MODEL, TWO_ROUNDS, Federation, changed, estimators, in_base64

from protocol.agreement import collections
from protocol.ledger import keys

P, OUTSIDER = "fraud-2026", "Org3MSP"
CONFIDENTIAL = changed("confidential", True, base=TWO_ROUNDS)
COLLECTION = collections.trees(["Org1MSP", "Org2MSP"])


@cache
def ended():
    """Two rounds, and a model with trees that were never shared."""
    federation = Federation(CONFIDENTIAL)
    for iteration in (0, 1):
        for name, player in federation.players.items():
            player.open(iteration)
            player.share(estimators(name, iteration)[:4] if name == "node01" else None)
        for player in federation.players.values():
            player.complete()
    federation.players["node01"].publish()
    return federation.snapshot()


@pytest.fixture
def federation():
    return ended()()


def test_the_trees_are_in_the_collection_and_nowhere_else(federation):
    trees = [
        in_base64(e.tree.to_bytes()).encode() for node in federation.players for e in estimators(node, 0)
    ]
    private = {place for place in federation.state if place[0].endswith(f"${COLLECTION}")}
    kinds = {keys.parse(key).kind for _, key in private}
    assert kinds == {"sharedtree", "tree"}
    for place, value in federation.state.items():
        assert place in private or not any(tree in value for tree in trees), place
    for _, _, payload in federation.events:
        assert not any(tree in payload for tree in trees)


def test_members_read_the_trees_at_their_own_peers(federation):
    for auditor in (federation.auditor1, federation.auditor2):
        found = auditor.evaluate(EXECUTION, "Estimators", P, ["node01/0000", "node03/0000"])
        assert [item["id"] for item in found["estimators"]] == ["node01/0000", "node03/0000"]
        assert len(auditor.evaluate(MODEL, "Trees", P, "node01")["items"]) == 50


def test_an_outsiders_peer_holds_no_tree_and_every_digest(federation):
    outside = federation.auditor3
    assert outside.code(EXECUTION, "Estimators", P, ["node01/0000"]) == "ACCESS_ORGANISATION"
    member = federation.auditor1
    call = (EXECUTION, "Estimators", P, ["node01/0000"])
    assert member.code(*call, peer=OUTSIDER) == "PEER_REFUSED"
    found = outside.evaluate(EXECUTION, "Digests", P, ["node01/0000"])
    assert found["estimators"][0]["digest"] == str(estimators("node01", 0)[0].tree.digest)


def test_a_granted_outsider_reads_at_a_members_peer(federation):
    federation.admin1.submit(MODEL, "Grant", P, "node01", OUTSIDER)
    call = (MODEL, "Trees", P, "node01")
    assert federation.auditor3.code(*call) == "PEER_REFUSED"
    assert len(federation.auditor3.evaluate(*call, peer="Org2MSP")["items"]) == 50


def test_a_share_needs_no_outsider(federation):
    fresh = Federation(CONFIDENTIAL)
    player = fresh.players["node01"]
    player.open(0)
    player.share(endorsers=("Org1MSP", "Org2MSP"))


def test_trees_as_an_argument_are_refused():
    player = Federation(CONFIDENTIAL).players["node01"]
    player.open(0)
    arguments, options = player.call_share()
    raw = options["transient"]["share"]
    assert player.member.code(*arguments, in_base64(raw)) == "TREES_CONFIDENTIAL"


def test_trees_of_a_model_as_an_argument_are_refused():
    assert (
        Federation(CONFIDENTIAL)
        .nodes["node01"]
        .code(
            MODEL,
            "Publish",
            P,
            "node01",
            [],
            f"sha256:{'0' * 64}",
            {},
            f"sha256:{'0' * 64}",
            in_base64(b"trees"),
        )
        == "TREES_CONFIDENTIAL"
    )


def test_an_organisation_that_cannot_hold_the_trees_cannot_join(federation):
    fresh = Federation(CONFIDENTIAL)
    call = ("orchestration", "Join", P, "node05", OUTSIDER, 1)
    assert fresh.admin1.code(*call) == "PROCESS_COLLECTION"


def test_a_life_in_blocks_is_another_collection():
    made = changed("confidential_blocks", 1000, base=CONFIDENTIAL)
    federation = Federation(made)
    federation.players["node01"].open(0)
    federation.players["node01"].share()
    name = f"{EXECUTION}${collections.trees(['Org1MSP', 'Org2MSP'], 1000)}"
    assert any(namespace == name for namespace, _ in federation.state)


def test_a_life_that_the_channel_does_not_offer_is_refused():
    federation = Federation()
    made = changed("confidential_blocks", 7, base=CONFIDENTIAL) | {"process": "other"}
    assert federation.scientist1.code("orchestration", "Create", made) == "PROCESS_COLLECTION"


def test_trees_whose_time_is_over_are_gone_and_their_digests_stay(federation):
    for place in [place for place in federation.state if place[0].endswith(f"${COLLECTION}")]:
        del federation.state[place]
    assert federation.auditor1.code(MODEL, "Trees", P, "node01") == "TREES_GONE"
    assert federation.auditor1.code(EXECUTION, "Estimator", P, "node01/0000") == "TREES_GONE"
    assert federation.auditor1.evaluate(MODEL, "Members", P, "node01")["estimators"]


@pytest.mark.parametrize(("organisations", "majorities"), [(2, 1), (3, 4), (4, 5), (8, 93)])
def test_the_network_defines_the_collections_that_the_chaincodes_name(organisations, majorities):
    script = Path(__file__).resolve().parents[3] / "network/lib/private_data.py"
    msps = [f"Org{number}MSP" for number in range(1, organisations + 1)]
    ran = subprocess.run(
        [sys.executable, script, *msps, "--blocks", "1000"], capture_output=True, text=True, check=True
    )
    found = {made["name"]: made for made in json.loads(ran.stdout)}
    assert len(found) == organisations + 2 * majorities
    assert found[collections.own("Org2MSP")]["policy"] == "OR('Org2MSP.member')"
    whole = found[collections.trees(msps, 1000)]
    assert (whole["blockToLive"], whole["policy"].count("member")) == (1000, organisations)
    assert found[collections.trees(msps)]["blockToLive"] == 0
