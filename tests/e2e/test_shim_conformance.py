"""Every service the shim offers, on live peers, through the probe: calls, load, large values, restarts.

ATTESTREE_PROJECT, ATTESTREE_PORTS and ATTESTREE_STATE choose the network, as for its scripts.
"""

import base64
import hashlib
import json
import os
import secrets
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import gateway

pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[2]
PROJECT = os.environ.get("ATTESTREE_PROJECT", "attestree")
PORTS = os.environ.get("ATTESTREE_PORTS", "7")
STATE = Path(os.environ.get("ATTESTREE_STATE", ROOT / "network" / "state" / PROJECT))
MB = 1024 * 1024
DEADLINE = 90


@pytest.fixture(scope="module")
def organisations():
    """The names of the network's organisations."""
    lines = (STATE / "network.env").read_text().splitlines()
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    return [f"org{number}" for number in range(1, int(values["ORGS"]) + 1)]


@pytest.fixture(scope="module")
def gateways(organisations):
    made = {org: client(org) for org in organisations}
    yield made
    for each in made.values():
        each.close()


@pytest.fixture(scope="module")
def probe(gateways):
    return Probe(gateways["org1"])


@pytest.fixture
def prefix():
    """Begin this test's keys with something no other test uses."""
    return f"t{secrets.token_hex(6)}-"


class Probe:
    """The probe contract as one identity sees it."""

    def __init__(self, client):
        self.client = client

    def evaluate(self, *arguments, **more):
        return self.client.evaluate("probe", *arguments, **more)

    def submit(self, *arguments, **more):
        committed = self.client.submit("probe", *arguments, **more)
        assert committed.code == 0
        return committed

    def json(self, *arguments, **more):
        return json.loads(self.evaluate(*arguments, **more))


def client(org, user="admin"):
    return gateway.Gateway(STATE, org, user, port=int(f"{PORTS}{org.removeprefix('org')}51"))


def refusal(call, *arguments, **more):
    with pytest.raises(gateway.GatewayError) as caught:
        call(*arguments, **more)
    return caught.value


def test_put_get_delete(probe, prefix):
    probe.submit("put", prefix, b"\x00\xff")
    assert probe.evaluate("get", prefix) == b"\x00\xff"
    probe.submit("delete", prefix)
    assert refusal(probe.evaluate, "get", prefix).code == "NOT_FOUND"


def test_every_organisations_peer_reads_the_same_state(gateways, probe, prefix):
    block = probe.submit("put", prefix, "everywhere").block
    for org, each in gateways.items():
        wait_until(lambda org=org, each=each: height(each, org) > block)
        assert each.evaluate("probe", "get", prefix, orgs=[msp(org)]) == b"everywhere"


def test_a_transaction_does_not_read_its_own_writes(probe, prefix):
    assert json.loads(probe.submit("put_then_get", prefix, "first").result) == {"before": None}
    assert json.loads(probe.submit("put_then_get", prefix, "second").result) == {"before": "first"}
    assert probe.evaluate("get", prefix) == b"second"


@pytest.mark.parametrize("count", [1, 1000, 2500])
def test_batched_writes_and_multi_key_reads(probe, prefix, count):
    probe.submit("put_many", prefix, count, 50)
    many = probe.json("get_many", prefix, count)
    assert (many["found"], many["bytes"]) == (count, 50 * count)
    assert many == probe.json("get_each", prefix, count)
    assert probe.json("get_many", prefix, count + 1)["found"] == count


def test_range_with_and_without_pages(probe, prefix):
    probe.submit("put_many", prefix, 250, 10)
    keys = [f"{prefix}{number:06d}" for number in range(250)]
    assert [item["key"] for item in probe.json("range", prefix, prefix + "~")] == keys
    assert [item["key"] for item in probe.json("range", prefix, prefix + "~", 7)] == keys[:7]
    found, bookmark = [], ""
    while True:
        page = probe.json("range_page", prefix, prefix + "~", 100, bookmark)
        found += [item["key"] for item in page["items"]]
        bookmark = page["bookmark"]
        if not bookmark:
            break
    assert found == keys


def test_partial_composite_keys_with_and_without_pages(probe, prefix):
    parts = [[prefix, "a", "1"], [prefix, "a", "2"], [prefix, "ab", "1"], [prefix, "b", "1"]]
    for each in parts:
        probe.submit("put_part", "kind", json.dumps(each), "-".join(each))
    found = probe.json("partial", "kind", json.dumps([prefix, "a"]))
    assert [base64.b64decode(item["value"]).decode() for item in found] == [
        "-".join(each) for each in parts[:2]
    ]
    first = probe.json("partial_page", "kind", json.dumps([prefix]), 3)
    second = probe.json("partial_page", "kind", json.dumps([prefix]), 3, first["bookmark"])
    values = [base64.b64decode(item["value"]).decode() for item in first["items"] + second["items"]]
    assert values == ["-".join(each) for each in parts]
    assert second["bookmark"] == ""


def test_e19_history_is_newest_first_and_complete(probe, prefix):
    transactions = [probe.submit("put", prefix, str(number)).tx_id for number in range(3)]
    transactions.append(probe.submit("delete", prefix).tx_id)
    found = probe.json("history", prefix)
    assert [item["tx"] for item in found] == transactions[::-1]
    assert [item["value"] for item in found] == [None, "2", "1", "0"]
    assert [item["value"] for item in probe.json("history", prefix, 1, 2)] == ["2", "1"]


def test_creator_has_the_attributes_of_its_certificate(organisations):
    node = next((STATE / "organisations" / "org1" / "users").glob("node*")).name
    found = Probe(client("org1", node)).json("whoami", transient={"t": b"123"})
    assert (found["msp"], found["name"], found["channel"]) == ("Org1MSP", node, "attestree")
    assert found["attributes"]["role"] == "node"
    assert found["attributes"]["node"] == node
    assert found["transient"] == {"t": 3}
    assert abs(time.time() - timestamp(found["time"])) < 60


def test_transient_data_is_written_without_being_an_argument(probe, prefix):
    value = secrets.token_bytes(100)
    committed = probe.submit("put_transient", prefix, transient={"value": value})
    assert committed.result.decode() == hashlib.sha256(value).hexdigest()
    assert probe.evaluate("get", prefix) == value


def test_event_arrives_with_its_block(probe, prefix):
    committed = probe.submit("announce", prefix, "payload")
    event = next(event for event in probe.client.events("probe", committed.block) if event[1] == prefix)
    assert event == (committed.block, prefix, b"payload", committed.tx_id)


def test_call_of_another_chaincode(probe):
    # The lifecycle chaincode is on every channel and answers calls from others: its argument is {1: "probe"}.
    answer = probe.evaluate("relay", "_lifecycle", json.dumps(["QueryChaincodeDefinition", "\n\x05probe"]))
    assert b"Org1MSP" in answer


@pytest.mark.parametrize("callee", ["absent", "probe", "qscc"])
def test_call_that_fails_is_an_error_and_leaves_the_peer_alive(probe, callee):
    error = refusal(probe.evaluate, "relay", callee, '["metadata"]')
    assert error.code in ("PEER_REFUSED", "CALL_REFUSED")
    assert probe.json("metadata")["contract"] == "probe"


@pytest.mark.parametrize("how", ["refuse", "bug"])
def test_failed_transaction_writes_nothing(probe, how):
    error = refusal(probe.submit, "fail", how)
    assert error.code == {"refuse": "PROBE_REFUSED", "bug": "INTERNAL"}[how]
    assert refusal(probe.evaluate, "get", "failed").code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nothing",), "UNKNOWN_FUNCTION"),
        (("put", "k"), "BAD_ARGUMENT_COUNT"),
        (("range", "a", "b", "1.5"), "BAD_ARGUMENT"),
        (("put", "", "v"), "MISUSE"),
        (("range_page", "a", "b", "0"), "MISUSE"),
    ],
)
def test_bad_calls_are_refused_by_code(probe, arguments, code):
    assert refusal(probe.evaluate, *arguments).code == code


def test_metadata_lists_every_function_called_here(probe):
    names = {function["name"] for function in probe.json("metadata")["functions"]}
    assert {"put", "get", "delete", "range", "history", "whoami", "announce", "relay", "fail"} <= names


def test_value_of_5_mb_travels_both_ways_as_an_argument(probe, prefix):
    value = secrets.token_bytes(5 * MB)
    probe.submit("put", prefix, value)
    assert probe.evaluate("get", prefix) == value


def test_value_of_20_mb_travels_both_ways_as_transient_data(probe, prefix):
    """As an argument it would be in the transaction twice, of which peers and orderers hold many copies."""
    value = secrets.token_bytes(20 * MB)
    probe.submit("put_transient", prefix, transient={"value": value})
    assert probe.evaluate("get", prefix) == value


def test_answer_over_the_message_limit_fails_alone(probe):
    assert refusal(probe.evaluate, "fill", 101 * MB).code == "BAD_ARGUMENT"
    assert probe.json("metadata")["contract"] == "probe"


def test_1000_concurrent_transactions_without_a_failure(gateways, prefix):
    """All begin at once, spread over the peers: each admits 500 calls at a time and refuses the next."""
    clients = list(gateways.values())
    admitted = [threading.Semaphore(450) for _ in clients]
    gate = threading.Barrier(1000)

    def one(number):
        gate.wait()
        turn = number % len(clients)
        with admitted[turn]:
            return clients[turn].submit("probe", "put", f"{prefix}{number:04d}", f"v{number}").code

    with ThreadPoolExecutor(1000) as pool:
        assert list(pool.map(one, range(1000))) == [0] * 1000
    found = Probe(clients[0]).json("range", prefix, prefix + "~", 2000)
    assert [base64.b64decode(item["value"]).decode() for item in found] == [f"v{n}" for n in range(1000)]


def test_e1_peer_killed_mid_transaction_is_served_again(probe, prefix):
    probe.submit("put", prefix, "kept")
    since = time.time()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(refusal, probe.evaluate, "get_each", "absent", 100_000)
        wait_until(lambda: in_flight(probe))
        docker("kill", container("peer.org1"))
        try:
            running.result(DEADLINE)
            wait_until(lambda: "given up" in logs("chaincode.org1", since))
        finally:
            docker("start", container("peer.org1"))
    wait_until(lambda: succeeds(probe.evaluate, "get", prefix, orgs=["Org1MSP"]))
    assert probe.evaluate("get", prefix, orgs=["Org1MSP"]) == b"kept"
    # A peer that comes back has to meet the other peers again before it can collect endorsements.
    wait_until(lambda: succeeds(probe.submit, "put", prefix, "after"))
    assert probe.evaluate("get", prefix) == b"after"


def test_e6_chaincode_killed_and_restarted_is_found_again(probe, prefix):
    probe.submit("put", prefix, "kept")
    docker("kill", container("chaincode.org1"))
    try:
        refusal(probe.evaluate, "get", prefix, orgs=["Org1MSP"])
    finally:
        docker("start", container("chaincode.org1"))
    wait_until(lambda: succeeds(probe.evaluate, "get", prefix, orgs=["Org1MSP"]))
    assert probe.evaluate("get", prefix, orgs=["Org1MSP"]) == b"kept"
    # A peer that comes back has to meet the other peers again before it can collect endorsements.
    wait_until(lambda: succeeds(probe.submit, "put", prefix, "after"))
    assert probe.evaluate("get", prefix) == b"after"


def test_e6_chaincode_restarted_under_load_loses_no_committed_write(probe, prefix):
    """A graceful restart: every call either commits or says that it did not, and both are true."""
    stop, kept, failed = threading.Event(), [], []

    def load(worker):
        number = 0
        while not stop.is_set():
            key = f"{prefix}{worker}-{number:05d}"
            number += 1
            try:
                kept.append((key, probe.submit("put", key, key).tx_id))
            except gateway.GatewayError as error:
                failed.append((key, error))

    with ThreadPoolExecutor(8) as pool:
        workers = [pool.submit(load, worker) for worker in range(8)]
        wait_until(lambda: len(kept) > 20)
        docker("restart", container("chaincode.org1"))
        before = len(kept)
        wait_until(lambda: len(kept) > before + 20)
        stop.set()
        for worker in workers:
            worker.result(DEADLINE)
    found = {item["key"] for item in probe.json("range", prefix, prefix + "~", 10_000)}
    assert found == {key for key, _ in kept}
    assert not found & {key for key, _ in failed}


def in_flight(probe):
    """A call that came after another one has been served, so the other one is on its way."""
    return probe.json("metadata")["contract"] == "probe"


def succeeds(call, *arguments, **more):
    try:
        call(*arguments, **more)
    except gateway.GatewayError:
        return False
    return True


def height(client, org):
    """The number of blocks on an organisation's peer, from its qscc: BlockchainInfo has it in field 1."""
    raw = client.evaluate("qscc", "GetChainInfo", "attestree", orgs=[msp(org)])
    value = shift = 0
    for byte in raw[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value
    return value


def msp(org):
    return f"Org{org.removeprefix('org')}MSP"


def timestamp(text):
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def container(service):
    return f"{PROJECT}-{service}-1"


def logs(service, since):
    return docker("logs", "--since", str(int(since)), container(service))


def docker(*arguments):
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=DEADLINE, check=True
    )
    return done.stdout + done.stderr


def wait_until(condition):
    """Repeat a check until it holds; a container tells nobody when it is ready."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        threading.Event().wait(0.1)
