"""The network starts once, stays the same, keeps its ledger, and survives the loss of its parts."""

import json

import pytest
from support.network import (
    answers,
    chain,
    containers,
    done,
    invoke,
    kill_process,
    query,
    raft_leader,
    run,
    until,
)

pytestmark = pytest.mark.alone


def test_second_up_changes_nothing_and_prints_a_query_that_works() -> None:
    before, height = containers(), chain("org1")
    line = done("network/up.sh").strip()
    assert containers() == before
    assert chain("org1") == height
    answer = run("bash", "-c", line)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["msp"] == "Org1MSP"


def test_three_organisations_read_what_one_wrote() -> None:
    assert invoke("org1", "node01", "put", "colour", "green").returncode == 0
    for organisation in ("org2", "org3", "org4"):
        assert query(organisation, "auditor", "get", "colour") == "green"


def test_certificates_carry_role_and_node() -> None:
    who = json.loads(query("org2", "node06", "whoami"))
    assert who["msp"] == "Org2MSP"
    assert who["attributes"]["role"] == "node"
    assert who["attributes"]["node"] == "node06"
    assert json.loads(query("org3", "auditor", "whoami"))["attributes"]["role"] == "auditor"
    assert json.loads(query("org4", "data-scientist", "whoami"))["attributes"]["role"] == "data-scientist"


def test_e17_ledger_is_kept_over_down_and_up() -> None:
    assert invoke("org1", "node01", "put", "kept", "yes").returncode == 0
    before = chain("org1")
    done("network/down.sh")
    assert containers() == {}
    done("network/up.sh")
    assert chain("org1") == before
    assert query("org2", "auditor", "get", "kept") == "yes"


def test_e1_killed_peer_comes_back_by_itself() -> None:
    kill_process("peer.org2")
    # An invoke would do without the killed peer while it is away, so the peer itself is asked first.
    until(90, "org2's peer answers", lambda: answers("org2", "whoami"))
    assert invoke("org2", "node06", "put", "after", "peer").returncode == 0
    until(60, "org2 reads it", lambda: answers("org2", "get", "after") == "peer")


def test_e3_killed_raft_leader_is_replaced() -> None:
    leader = raft_leader()
    kill_process(leader)
    until(
        90, "a transaction commits", lambda: invoke("org1", "node01", "put", "after", leader).returncode == 0
    )
    until(60, "every organisation has it", lambda: query("org4", "auditor", "get", "after") == leader)
    until(60, f"{leader} runs again", lambda: leader in containers())


def test_e6_killed_chaincode_service_comes_back_by_itself() -> None:
    kill_process("chaincode.org3")
    until(
        90,
        "org3's chaincode answers",
        lambda: invoke("org3", "node11", "put", "after", "chaincode").returncode == 0,
    )


def test_chaincode_upgrade_takes_a_new_sequence_and_keeps_data() -> None:
    assert invoke("org1", "node01", "put", "old", "data").returncode == 0
    before = definition()
    image = done("docker", "inspect", "-f", "{{.Config.Image}}", containers()["chaincode.org1"]).strip()
    upgraded = image.partition(":")[0] + ":upgraded"
    container = done("docker", "create", image).strip()
    done("docker", "commit", "--change", "LABEL attestree.test=upgrade", container, upgraded)
    done("docker", "rm", container)
    try:
        done("network/up.sh", ATTESTREE_CHAINCODE_IMAGE=upgraded)
        after = definition()
        assert after["sequence"] == before["sequence"] + 1
        assert after["version"] != before["version"]
        assert query("org4", "auditor", "get", "old") == "data"
        assert invoke("org4", "node16", "put", "new", "data").returncode == 0
        assert run(".venv/bin/executor", "doctor").returncode == 0
    finally:
        done("network/up.sh")
        done("docker", "rmi", upgraded)
    assert definition()["version"] == before["version"]


def definition() -> dict[str, object]:
    arguments = ("lifecycle", "chaincode", "querycommitted", "-C", "attestree", "-n", "probe", "-O", "json")
    found: dict[str, object] = json.loads(done("network/peer.sh", "org1", "--", *arguments))
    return found
