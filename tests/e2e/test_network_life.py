"""A network is interrupted, goes on, stays the same, keeps its ledger, is upgraded; the doctor watches."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.channel import unique
from support.network import PROJECT, ROOT, chain, containers, done, invoked, query, run
from support.own_network import SERVICES, own_network
from support.printed import EXECUTOR

from executor.network import Network

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module", autouse=True)
def own(network: None) -> Iterator[Network]:
    """A network whose start was interrupted once."""
    with own_network("life", interrupted_at="[5/7]") as made:
        yield made


def doctor() -> tuple[int, dict[str, Any]]:
    ran = run(EXECUTOR, "doctor", "--json")
    return ran.returncode, {check["name"]: check for check in json.loads(ran.stdout)["checks"]}


def sound() -> None:
    code, checks = doctor()
    assert code == 0, [check for check in checks.values() if not check["ok"]]


def test_up_that_was_interrupted_has_finished(own: Network) -> None:
    assert len(containers()) == SERVICES
    users = {path.name for path in (own.folder("org2") / "users").iterdir()}
    assert {"admin", "auditor", "data-scientist", "node03"} <= users
    sound()


def test_second_up_changes_nothing_and_prints_a_query_that_works() -> None:
    before, height = containers(), chain("org1")
    line = done("network/up.sh").strip()
    assert containers() == before
    assert chain("org1") == height
    answer = run("bash", "-c", line)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"bookmark": "", "items": []}


def test_e17_ledger_is_kept_over_down_and_up_which_may_add_nodes(own: Network) -> None:
    key = unique("kept")
    invoked("org1", "node01", "put", key, "yes")
    before = chain("org1")
    done("network/down.sh")
    assert containers() == {}
    done("network/up.sh", "--nodes", str(own.n_nodes + 1))
    assert chain("org1") == before
    added = f"node{own.n_nodes + 1:02d}"
    # What is up takes transactions at once: the orderers have chosen a leader again.
    invoked("org1", "node01", "put", unique("new"), "yes")
    assert query("org2", added, "get", key) == "yes"
    assert json.loads(query("org2", added, "whoami"))["attributes"]["node"] == added


def test_chaincode_upgrade_takes_a_new_sequence_and_keeps_data(own: Network) -> None:
    """And the doctor finds the organisation that runs the old image, and one without its peer."""
    key = unique("old")
    invoked("org1", "node01", "put", key, "data")
    before = definition()
    image = done("docker", "inspect", "-f", "{{.Config.Image}}", containers()["chaincode.org1"]).strip()
    upgraded = f"{image.partition(':')[0]}:{PROJECT}-upgraded"
    container = done("docker", "create", image).strip()
    done("docker", "commit", "--change", "LABEL attestree.test=upgrade", container, upgraded)
    done("docker", "rm", container)
    try:
        done("network/up.sh", ATTESTREE_CHAINCODE_IMAGE=upgraded)
        after = definition()
        assert after["sequence"] == before["sequence"] + 1
        assert after["version"] != before["version"]
        assert query("org2", "auditor", "get", key) == "data"
        invoked("org2", "node03", "put", key, "newer")
        sound()
        doctor_finds_the_old_image(own, image)
        doctor_finds_a_stopped_peer()
    finally:
        done("network/up.sh")
        done("docker", "rmi", upgraded)
    assert definition()["version"] == before["version"]
    sound()


def definition() -> dict[str, Any]:
    arguments = ("lifecycle", "chaincode", "querycommitted", "-C", "attestree", "-n", "probe", "-O", "json")
    found: dict[str, Any] = json.loads(done("network/peer.sh", "org1", "--", *arguments))
    return found


def doctor_finds_the_old_image(own: Network, image: str) -> None:
    settings = str((own.state / "compose.env").relative_to(ROOT))
    done("docker", "compose", "--env-file", settings, "up", "-d", "chaincode.org2", CHAINCODE_IMAGE=image)
    code, checks = doctor()
    assert code == 1
    assert checks["probe: image"]["ok"] is False
    assert "org2 runs" in checks["probe: image"]["detail"]
    assert "network/up.sh" in checks["probe: image"]["remedy"]


def doctor_finds_a_stopped_peer() -> None:
    done("docker", "stop", containers()["peer.org2"])
    code, checks = doctor()
    assert code == 1
    assert checks["containers"]["ok"] is False
    assert "peer.org2" in checks["containers"]["detail"]
    assert "network/up.sh" in checks["containers"]["remedy"]
