"""Every service the shim offers, on live peers, through the probe: calls, load, large values."""

import base64
import hashlib
import json
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime

import pytest
from support.channel import client_of, committed_everywhere
from support.federation import node_of
from support.gateway import Gateway
from support.probe import Probe, refusal

from executor.network import Network

MB = 1024 * 1024
POLICY_FAILURE = 10


@pytest.fixture(scope="module")
def live():
    return Network.load()


@pytest.fixture(scope="module")
def gateways(live):
    made = {org: Gateway(live, org) for org in live.organisations}
    yield made
    for each in made.values():
        each.close()


class Everywhere(Probe):
    """The probe for a test that goes on from what it wrote: whoever endorses next has it too."""

    def submit(self, *arguments, **more):
        committed = super().submit(*arguments, **more)
        committed_everywhere(committed.tx_id)
        return committed


@pytest.fixture(scope="module")
def probe(gateways):
    return Everywhere(gateways["org1"])


@pytest.fixture
def prefix():
    """Begin this test's keys with something no other test uses."""
    return f"t{secrets.token_hex(6)}-"


def test_put_get_delete(probe, prefix):
    probe.submit("put", prefix, b"\x00\xff")
    assert probe.evaluate("get", prefix) == b"\x00\xff"
    probe.submit("delete", prefix)
    assert refusal(probe.evaluate, "get", prefix).code == "NOT_FOUND"


def test_every_organisations_peer_reads_the_same_state(live, gateways, probe, prefix):
    probe.submit("put", prefix, "everywhere")
    for org, each in gateways.items():
        assert each.evaluate("probe", "get", prefix, orgs=[live.msp_id(org)]) == b"everywhere"


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


def test_creator_has_the_attributes_of_its_certificate():
    member = node_of("org1")
    began = int(time.time())
    found = Probe(client_of(member)).json("whoami", transient={"t": b"123"})
    assert (found["msp"], found["name"], found["channel"]) == ("Org1MSP", member.identity, "attestree")
    assert found["attributes"]["role"] == "node"
    assert found["attributes"]["node"] == member.identity
    assert found["transient"] == {"t": 3}
    assert began <= datetime.fromisoformat(found["time"]).timestamp() <= time.time()


def test_transient_data_is_written_without_being_an_argument(probe, prefix):
    value = secrets.token_bytes(100)
    committed = probe.submit("put_transient", prefix, transient={"value": value})
    assert committed.result.decode() == hashlib.sha256(value).hexdigest()
    assert probe.evaluate("get", prefix) == value


def test_private_data_stays_with_its_organisation(live, gateways, probe, prefix):
    own, value = f"_implicit_org_{live.msp_id('org1')}", secrets.token_bytes(100)
    members = [live.msp_id(org) for org in ("org1", "org2", "org3")]
    for key in (prefix + "a", prefix + "b"):
        written = probe.submit("put_private", own, key, transient={"value": value}, orgs=members)
    assert probe.evaluate("get_private", own, prefix + "a") == value
    found = probe.json("range_private", own, prefix, prefix + "~")
    assert [item["key"] for item in found] == [prefix + "a", prefix + "b"]
    outside = Probe(gateways["org4"])
    elsewhere = [live.msp_id("org4")]
    # Its peer may be blocks behind the one that was waited for.
    assert outside.client.committed(written.tx_id).code == 0
    assert refusal(outside.evaluate, "get_private", own, prefix + "a", orgs=elsewhere).code == "PEER_REFUSED"
    many = json.dumps([prefix + "a", prefix + "absent"])
    assert probe.json("get_many_private", own, many) == {"found": 1}
    assert refusal(outside.evaluate, "get_many_private", own, many, orgs=elsewhere).code == "PEER_REFUSED"
    hashed = outside.evaluate("private_hash", own, prefix + "a", orgs=elsewhere).decode()
    assert hashed == hashlib.sha256(value).hexdigest()


@pytest.mark.parametrize("purge", ["false", "true"])
def test_private_data_is_deleted_and_purged(live, probe, prefix, purge):
    own = f"_implicit_org_{live.msp_id('org1')}"
    probe.submit("mark_private", own, prefix, "value")
    probe.submit("delete_private", own, prefix, purge)
    assert refusal(probe.evaluate, "get_private", own, prefix).code == "NOT_FOUND"
    assert probe.evaluate("private_hash", own, prefix) == b""


def test_a_sealed_key_needs_the_endorsements_that_its_policy_names(live, gateways, probe, prefix):
    """The Gateway finds the endorsers by itself; a majority without the organisation named is not enough."""
    own, others = live.msp_id("org1"), [live.msp_id(org) for org in ("org2", "org3", "org4")]
    probe.submit("seal", prefix, "value", json.dumps([own, others[0]]))
    assert probe.json("sealed", prefix) == {"organisations": [own, others[0]]}
    outside = gateways["org2"]
    assert outside.submit("probe", "put", prefix, "forged", orgs=others).code == POLICY_FAILURE
    changed = outside.submit("probe", "put", prefix, "changed")
    # Said by the peer that is read from, too.
    assert changed.code == probe.client.committed(changed.tx_id).code == 0
    assert probe.evaluate("get", prefix) == b"changed"


def test_an_organisations_own_collection_needs_its_endorsement_from_the_first_write_on(
    live, gateways, prefix
):
    own, others = live.msp_id("org1"), [live.msp_id(org) for org in ("org2", "org3", "org4")]
    call = ("probe", "mark_private", f"_implicit_org_{own}", prefix, "value")
    assert gateways["org2"].submit(*call, orgs=others).code == POLICY_FAILURE
    assert gateways["org2"].submit(*call).code == 0


def test_event_arrives_with_its_block(probe, prefix):
    committed = probe.submit("announce", prefix, "payload")
    with closing(probe.client.events("probe", committed.block)) as events:
        event = next(event for event in events if event[1] == prefix)
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
            return clients[turn].submit("probe", "put", f"{prefix}{number:04d}", f"v{number}")

    with ThreadPoolExecutor(1000) as pool:
        committed = list(pool.map(one, range(1000)))
    assert [each.code for each in committed] == [0] * 1000
    # The peer that is read from may be blocks behind those that took the other calls.
    clients[0].committed(max(committed, key=lambda each: each.block).tx_id)
    found = Probe(clients[0]).json("range", prefix, prefix + "~", 2000, orgs=["Org1MSP"])
    assert [base64.b64decode(item["value"]).decode() for item in found] == [f"v{n}" for n in range(1000)]
