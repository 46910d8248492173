"""Peers, orderers and chaincode services that die: they come back by themselves, and nothing is lost."""

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from support.channel import unique
from support.gateway import Gateway, GatewayError
from support.network import answers, containers, done, invoke, kill_process, query, raft_leader, run, until
from support.own_network import own_network
from support.probe import Probe, refusal

pytestmark = pytest.mark.timeout(900)

SECONDS = 120
OWN = {"orgs": ["Org1MSP"]}


@pytest.fixture(scope="module")
def probe(network: None) -> Iterator[Probe]:
    """The probe of a network of this file's own, through org1's peer."""
    with own_network("crash") as made:
        client = Gateway(made, "org1")
        yield Probe(client)
        client.close()


@pytest.fixture
def prefix() -> str:
    """Begin this test's keys with something no other test uses."""
    return f"t{secrets.token_hex(6)}-"


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


@contextmanager
def cut_off(service: str) -> Iterator[None]:
    """Take a container out of its network, and put it back under the names it had."""
    container = containers()[service]
    (inspected,) = json.loads(done("docker", "inspect", container))
    ((network, found),) = inspected["NetworkSettings"]["Networks"].items()
    names = [f"--alias={name}" for name in found["Aliases"] if not container.startswith(name)]
    done("docker", "network", "disconnect", network, container)
    try:
        yield
    finally:
        done("docker", "network", "connect", *names, network, container)


def succeeds(call: Callable[..., Any], *arguments: Any, **more: Any) -> bool:
    try:
        call(*arguments, **more)
    except GatewayError:
        return False
    return True


def logs(service: str) -> str:
    ran = run("docker", "logs", containers()[service])
    return ran.stdout + ran.stderr
