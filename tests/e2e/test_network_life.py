"""A network is interrupted, goes on, stays the same, keeps its ledger, is upgraded; the doctor watches.

Then its peers, orderers and chaincode services die: they come back by themselves, and nothing is lost.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from support.channel import unique
from support.gateway import Gateway, GatewayError
from support.network import (
    PROJECT,
    ROOT,
    answers,
    chain,
    containers,
    definition,
    done,
    invoke,
    invoked,
    kill_process,
    query,
    raft_leader,
    run,
    until,
)
from support.outages import cut_off, logs, succeeds
from support.own_network import SERVICES, own_network
from support.printed import EXECUTOR
from support.probe import Probe, refusal

from executor.network import Network

pytestmark = pytest.mark.timeout(900)

SECONDS = 120
OWN = {"orgs": ["Org1MSP"]}
Checks = tuple[int, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def own(network: None) -> Iterator[Network]:
    """A network whose start was interrupted once."""
    with own_network("life", interrupted_at="[5/7]") as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def at_first(own: Network) -> Checks:
    """What the doctor finds as soon as the network is up."""
    return doctor()


@pytest.fixture
def probe(own: Network) -> Iterator[Probe]:
    """The probe through org1's peer."""
    with closing(Gateway(own, "org1")) as client:
        yield Probe(client)


@pytest.fixture
def prefix() -> str:
    """Begin this test's keys with something no other test uses."""
    return f"t{secrets.token_hex(6)}-"


def doctor() -> Checks:
    ran = run(EXECUTOR, "doctor", "--json")
    return ran.returncode, {check["name"]: check for check in json.loads(ran.stdout)["checks"]}


def sound(found: Checks) -> None:
    code, checks = found
    assert code == 0, [check for check in checks.values() if not check["ok"]]


def test_up_that_was_interrupted_has_finished(own: Network, at_first: Checks) -> None:
    assert len(containers()) == SERVICES
    users = {path.name for path in (own.folder("org2") / "users").iterdir()}
    assert {"admin", "auditor", "data-scientist", "node03"} <= users
    sound(at_first)


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
    before = definition("probe")
    image = done("docker", "inspect", "-f", "{{.Config.Image}}", containers()["chaincode.org1"]).strip()
    upgraded = f"{image.partition(':')[0]}:{PROJECT}-upgraded"
    container = done("docker", "create", image).strip()
    done("docker", "commit", "--change", "LABEL attestree.test=upgrade", container, upgraded)
    done("docker", "rm", container)
    try:
        done("network/up.sh", ATTESTREE_CHAINCODE_IMAGE=upgraded)
        after = definition("probe")
        assert after["sequence"] == before["sequence"] + 1
        assert after["version"] != before["version"]
        assert query("org2", "auditor", "get", key) == "data"
        invoked("org2", "node03", "put", key, "newer")
        sound(doctor())
        doctor_finds_the_old_image(own, image)
        doctor_finds_a_stopped_peer()
    finally:
        done("network/up.sh")
        done("docker", "rmi", upgraded)
    assert definition("probe")["version"] == before["version"]
    sound(doctor())


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


def test_e1_peer_killed_mid_transaction_comes_back_and_is_served_again(probe: Probe, prefix: str) -> None:
    probe.submit("put", prefix, "kept")
    tx_id, call = probe.client.begin("probe", "get_each", "absent", 100_000, **OWN)
    # Calls that came after it have been served, so it is on its way.
    for _ in range(3):
        probe.evaluate("metadata", **OWN)
    assert not call.done()
    kill_process("peer.org1")
    assert call.exception(SECONDS) is not None
    until(SECONDS, "the chaincode gives it up", lambda: f"tx={tx_id} given up" in logs("chaincode.org1"))
    until(SECONDS, "the peer is served again", lambda: succeeds(probe.evaluate, "get", prefix, **OWN))
    assert probe.evaluate("get", prefix, **OWN) == b"kept"
    # A peer that comes back has to meet the other peers again before it can collect endorsements.
    until(SECONDS, "a transaction commits", lambda: succeeds(probe.submit, "put", prefix, "after"))
    assert probe.evaluate("get", prefix) == b"after"


def test_e3_killed_raft_leader_is_replaced(probe: Probe) -> None:
    leader, key = raft_leader(), unique("after")
    kill_process(leader)
    until(
        SECONDS, "a transaction commits", lambda: invoke("org1", "node01", "put", key, leader).returncode == 0
    )
    until(SECONDS, "every organisation has it", lambda: query("org2", "auditor", "get", key) == leader)
    until(SECONDS, f"{leader} runs again", lambda: leader in containers())


def test_e16_an_organisation_that_is_cut_off_is_missed_read_around_and_catches_up(
    probe: Probe, prefix: str
) -> None:
    """Of two organisations both have to endorse: nothing is written without the other, and nothing lost."""
    probe.submit("put", prefix, "before")
    with cut_off("peer.org2"):
        refusal(probe.submit, "put", prefix, "meanwhile")
        assert probe.evaluate("get", prefix, **OWN) == b"before"
    until(SECONDS, "a transaction commits", lambda: succeeds(probe.submit, "put", prefix, "after"))
    until(SECONDS, "the other has it too", lambda: query("org2", "auditor", "get", prefix) == "after")


def test_e6_killed_chaincode_service_comes_back_by_itself(probe: Probe) -> None:
    kill_process("chaincode.org2")
    until(SECONDS, "org2's chaincode answers", lambda: answers("org2", "whoami"))
    until(
        SECONDS,
        "a transaction commits",
        lambda: invoke("org2", "node03", "put", "after", "chaincode").returncode == 0,
    )


def test_e6_chaincode_that_is_away_is_an_error_and_found_again(probe: Probe, prefix: str) -> None:
    probe.submit("put", prefix, "kept")
    service = containers()["chaincode.org1"]
    done("docker", "kill", service)
    try:
        refusal(probe.evaluate, "get", prefix, **OWN)
    finally:
        done("docker", "start", service)
    until(SECONDS, "the chaincode is found again", lambda: succeeds(probe.evaluate, "get", prefix, **OWN))
    assert probe.evaluate("get", prefix, **OWN) == b"kept"
    until(SECONDS, "a transaction commits", lambda: succeeds(probe.submit, "put", prefix, "after"))
    assert probe.evaluate("get", prefix) == b"after"


def test_e6_chaincode_restarted_under_load_loses_no_committed_write(probe: Probe, prefix: str) -> None:
    """A graceful restart: every call either commits or says that it did not, and both are true."""
    stop, kept, failed = threading.Event(), [], []

    def load(worker: int) -> None:
        number = 0
        while not stop.is_set():
            key = f"{prefix}{worker}-{number:05d}"
            number += 1
            try:
                kept.append((key, probe.submit("put", key, key).tx_id))
            except GatewayError as error:
                failed.append((key, error))

    with ThreadPoolExecutor(8) as pool:
        workers = [pool.submit(load, worker) for worker in range(8)]
        try:
            until(SECONDS, "writes are committed", lambda: len(kept) > 20)
            done("docker", "restart", containers()["chaincode.org1"])
            before = len(kept)
            until(SECONDS, "writes are committed again", lambda: len(kept) > before + 20)
        finally:
            stop.set()
        for worker in workers:
            worker.result(SECONDS)
    found = {item["key"] for item in probe.json("range", prefix, prefix + "~", 10_000)}
    assert found == {key for key, _ in kept}
    assert not found & {key for key, _ in failed}
