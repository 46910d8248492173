"""Governance of models on the live network: the catalogue, a request on a licence, votes by command."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from support.channel import register, unique
from support.commands import done, printed, refused
from support.federation import nodes
from support.player import N_FEATURES, N_MAX, N_NEW, N_SHARE, Player, played

TEXT = "Use it for fraud in card payments, and for nothing else.\n"


@pytest.fixture(scope="module")
def licence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("licence") / "LICENCE.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def completed(network: None, tmp_path_factory: pytest.TempPathFactory) -> Player:
    """A completed process of two organisations that have to agree on who reads its models."""
    version = unique("1")
    register(version)
    content = {
        "process": unique("market"),
        "description": "finds fraud in card payments",
        "nodes": {member.identity: member.organisation for member in nodes()},
        "image": f"attestree/learner:{version}",
        "iterations": 1,
        "seed": 7,
        "n_new": N_NEW,
        "n_max": N_MAX,
        "n_share": N_SHARE,
        "features": [f"V{i}" for i in range(N_FEATURES)],
        "label": "fraud",
        "model_access": "majority",
        "model_licence": f"sha256:{sha256(TEXT.encode()).hexdigest()}",
    }
    path = tmp_path_factory.mktemp("federation") / "federation.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    process = done("process", "create", "--spec", str(path))["process"]
    for organisation in ("org1", "org2"):
        done("process", "accept", process, "--spec", str(path), organisation=organisation)
    done("process", "start", process)
    first, _ = played([Player(member, process) for member in nodes()])
    first.publish()
    done("process", "complete", process)
    return first


def test_a_model_is_asked_for_and_given_by_those_who_decide(completed: Player, licence: Path) -> None:
    process, node = completed.process, completed.node
    listed = done("model", "catalogue", process, organisation="org3")["models"]
    (entry,) = (item for item in listed if item["node"] == node)
    assert (entry["description"], entry["access"]) == ("finds fraud in card payments", "majority")
    assert f"executor model request {process} {node}" in printed("model", "catalogue", process).out
    ask = ("model", "request", process, node, "--purpose", "to compare")
    assert refused(*ask, organisation="org3") == (2, "LICENCE_FILE")
    assert refused("model", "show", process, node, organisation="org3") == (12, "ACCESS_GRANT")
    asked = done(*ask, "--licence", str(licence), organisation="org3")
    assert asked["missing"] == ["Org1MSP", "Org2MSP"]
    assert refused("model", "grant", process, node, "org3") == (13, "GRANT_GOVERNED")
    vote = ("model", "decide", process, node, "org3", "0")
    assert done(*vote, "--yes")["request"]["decision"] is None
    assert refused(*vote, "--no") == (13, "REQUEST_VOTED")
    assert refused(*vote, "--yes", organisation="org3") == (12, "ACCESS_ORGANISATION")
    (open_,) = done("model", "decide", process, organisation="org2")["requests"]
    assert (open_["agreed"], open_["missing"]) == (["Org1MSP"], ["Org2MSP"])
    assert done(*vote, "--yes", organisation="org2")["request"]["decision"]["granted"] is True
    assert done("model", "decide", process)["requests"] == []
    assert done("model", "show", process, node, organisation="org3")["owner"] == "Org1MSP"
    assert done("model", "access", process, node)["change"]["request"] == 0
    back = ("model", "revoke", process, node, "org3")
    assert refused(*back) == (13, "GRANT_GOVERNED")
    assert done(*back, "--purpose", "it is over")["missing"] == ["Org1MSP", "Org2MSP"]
    assert "that Org3MSP no longer reads" in printed("model", "decide", process).out
    for organisation in ("org1", "org2"):
        done("model", "decide", process, node, "org1", "0", "--yes", organisation=organisation)
    assert refused("model", "show", process, node, organisation="org3") == (12, "ACCESS_GRANT")
