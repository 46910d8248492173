"""fabric-sdk-py as transport on the live network: its answers are the Gateway's, and its traps are closed.

The first call makes hfc's environment, if this machine has none yet.
"""

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.channel import DIGESTS, IMAGE, REPOSITORY, as_text, committed_everywhere, unique
from support.commands import here
from support.federation import nodes, running_process
from support.impostors import Dying, Rejecting, forging_peer, nesting_peer, orderer, serving, silent_peer
from support.network import refusing_port, run
from support.player import Player
from support.printed import EXECUTOR

from executor.errors import UsageError
from executor.exits import exit_code
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.follow import wait_until
from executor.ledger.gateway.messages import common, proposal, transaction
from executor.ledger.gateway_transport import GatewayTransport
from executor.ledger.hfc.call import WORKER, Worker
from executor.ledger.hfc.client import HfcTransport
from executor.ledger.hfc.environment import hfc_python
from executor.network import Network
from protocol.errors import AccessError, AttestreeError, StateError


@pytest.fixture(scope="module")
def live(network: None) -> Network:
    return Network.load()


@pytest.fixture(scope="module")
def nowhere() -> Iterator[str]:
    """An address that refuses connections."""
    with refusing_port() as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def hfc(live: Network) -> HfcTransport:
    return HfcTransport.connect(live, "org1", "data-scientist")


@pytest.fixture(scope="module")
def gateway(live: Network) -> Iterator[GatewayTransport]:
    with GatewayTransport.connect(live, "org1", "data-scientist") as opened:
        yield opened


def registration(version: str, description: str = "by hfc", name: str = IMAGE) -> tuple[str, ...]:
    return ("image", "Register", name, version, DIGESTS[1], DIGESTS[2], REPOSITORY, description)


@pytest.fixture(scope="module")
def version(hfc: HfcTransport) -> str:
    """A registered version that every peer knows and no test changes."""
    made = unique("1")
    committed_everywhere(hfc.submit(*registration(made)).tx_id)
    return made


def test_submit_returns_the_answer_the_block_and_the_transaction(
    hfc: HfcTransport, gateway: GatewayTransport
) -> None:
    made = unique("1")
    receipt = hfc.submit(*registration(made, "größer — 木"))
    assert json.loads(receipt.answer) == json.loads(gateway.evaluate("image", "Get", IMAGE, made))
    assert json.loads(receipt.answer)["registered"]["tx"] == receipt.tx_id
    assert json.loads(receipt.answer)["image"]["description"] == "größer — 木"
    assert receipt.tx_id.encode() in gateway.block(receipt.block)


def test_evaluate_and_history_are_the_gateways(
    hfc: HfcTransport, gateway: GatewayTransport, version: str
) -> None:
    for function in ("Get", "History"):
        assert hfc.evaluate("image", function, IMAGE, version) == gateway.evaluate(
            "image", function, IMAGE, version
        )
    assert hfc.evaluate("image", "metadata") == gateway.evaluate("image", "metadata")


def test_blocks_are_the_gateways_to_the_byte(
    hfc: HfcTransport, gateway: GatewayTransport, version: str
) -> None:
    height = gateway.chain_info().height
    assert hfc.chain_info().height >= height
    for number in (0, height - 1):
        assert hfc.block(number) == gateway.block(number)


def test_block_that_is_not_there_is_an_error(hfc: HfcTransport) -> None:
    with pytest.raises(PhaseError) as caught:
        hfc.block(10**9)
    assert (caught.value.code, caught.value.phase) == ("EVALUATE_FAILED", "evaluate")


def test_failed_endorsement_is_an_error_with_its_code(
    hfc: HfcTransport, gateway: GatewayTransport, version: str
) -> None:
    height = gateway.chain_info().height
    with pytest.raises(StateError) as caught:
        hfc.submit(*registration(version))
    assert caught.value.code == "IMAGE_EXISTS"
    phase = caught.value.__cause__
    assert isinstance(phase, PhaseError)
    assert (phase.phase, len(phase.tx_id)) == ("endorse", 64)
    assert {detail.msp for detail in phase.details} == {"Org1MSP", "Org2MSP", "Org3MSP", "Org4MSP"}
    for number in range(height, gateway.chain_info().height):
        assert phase.tx_id.encode() not in gateway.block(number)


def test_refusals_are_the_gateways(hfc: HfcTransport, gateway: GatewayTransport) -> None:
    for call in (
        ("image", "Get", IMAGE, "never"),
        ("image", "Get"),
        ("image", "Nonsense"),
        ("image", "Get", b"\xff\x00\xfe", "1"),
    ):
        refusals = []
        for transport in (hfc, gateway):
            with pytest.raises(AttestreeError) as caught:
                transport.evaluate(*call)
            refusals.append(caught.value)
        assert type(refusals[0]) is type(refusals[1])
        assert str(refusals[0]) == str(refusals[1])


def test_calls_at_once_do_not_mix_up_their_results(hfc: HfcTransport, live: Network, version: str) -> None:
    other = HfcTransport.connect(live, "org2", "data-scientist")
    fresh = [unique("1") for _ in range(2)]

    def attempt(transport: HfcTransport, made: str, name: str = IMAGE) -> str:
        try:
            answer = transport.submit(*registration(made, name=name)).answer
        except (AccessError, StateError) as error:
            return error.code
        return str(json.loads(answer)["image"]["version"])

    calls = [(hfc, fresh[0]), (hfc, version), (other, fresh[1], "org2/learner"), (other, version)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda call: attempt(*call), calls))
    assert found == [fresh[0], "IMAGE_EXISTS", fresh[1], "IMAGE_OWNER"]


def test_of_two_that_write_the_same_record_one_succeeds(live: Network, hfc: HfcTransport) -> None:
    made = unique("1")
    committed_everywhere(hfc.submit(*registration(made)).tx_id)
    contenders = [HfcTransport.connect(live, "org1", name) for name in ("data-scientist", "admin")]

    def retire(transport: HfcTransport) -> str:
        try:
            transport.submit("image", "Retire", IMAGE, made, "race")
        except AttestreeError as error:
            return error.code
        return "valid"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(retire, contenders)) == ["LIFECYCLE_TRANSITION", "valid"]


def test_trees_travel_as_transient_data(live: Network) -> None:
    process = running_process(1)
    first, second = nodes()
    for member in (first, second):
        player = Player(member, process)
        hfc = HfcTransport.connect(live, member.organisation, member.identity)
        committed_everywhere(hfc.submit(*as_text(player.call_open())).tx_id)
        call, more = player.call_share()
        receipt = hfc.submit(*as_text(call), **more)
        assert transient_maps(hfc.block(receipt.block))[receipt.tx_id] == {}
        committed_everywhere(receipt.tx_id)
    with GatewayTransport.connect(live, first.organisation, first.identity) as gateway:
        question = ("execution-record", "Offers", process, first.identity, "0")
        assert hfc.evaluate(*question) == gateway.evaluate(*question)
        (slot,) = json.loads(gateway.evaluate(*question))["slots"]
    assert slot["sender"] == second.identity


def transient_maps(block: bytes) -> dict[str, dict[str, bytes]]:
    """What of the transient data of its transactions a block has: nothing, or it would be on the ledger."""
    found = {}
    for envelope in common.Block.FromString(block).data.data:
        payload = common.Payload.FromString(common.Envelope.FromString(envelope).payload)
        (action,) = transaction.Transaction.FromString(payload.data).actions
        proposed = transaction.ChaincodeActionPayload.FromString(action.payload).chaincode_proposal_payload
        tx_id = common.ChannelHeader.FromString(payload.header.channel_header).tx_id
        found[tx_id] = dict(proposal.ChaincodeProposalPayload.FromString(proposed).TransientMap)
    return found


def test_events_are_the_gateways(hfc: HfcTransport, gateway: GatewayTransport) -> None:
    start = gateway.chain_info().height
    stream = hfc.events("image", start, 120)
    made = unique("1")
    receipts = [
        hfc.submit(*registration(made)),
        gateway.submit("image", "Retire", IMAGE, made, "for a test"),
    ]
    wanted = {receipt.tx_id for receipt in receipts}

    def of_test(events: Any) -> list[Any]:
        found: list[Any] = []
        while len(found) < 2:
            event = next(events)
            found += [event] if event.tx_id in wanted else []
        return found

    seen = of_test(stream)
    assert [event.name for event in seen] == ["ImageRegistered", "ImageRetired"]
    followed = gateway.events("image", start, 120)
    assert seen == of_test(followed)
    followed.close()
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, stream)
        stream.close()
        assert rest.result(timeout=150) is not None


def test_waiting_through_hfc_is_woken_by_an_event(
    live: Network, gateway: GatewayTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that only an event can wake it, however slow the machine is.
    monkeypatch.setattr("executor.ledger.follow.HEARTBEAT", 3600)
    process, checks = running_process(1), 0
    ledger = Ledger(HfcTransport.connect(live, "org1", "auditor"))

    def aborted() -> str | None:
        nonlocal checks
        checks += 1
        state = str(ledger.orchestration.get(process).status)
        if checks == 1:
            gateway.submit("orchestration", "Abort", process, "for a test")
        return state if state == "aborted" else None

    assert wait_until(ledger, process, aborted, 120) == "aborted"


def test_events_of_blocks_to_come_end_in_time(hfc: HfcTransport, gateway: GatewayTransport) -> None:
    """A peer that has not the block yet is no peer that fails."""
    beyond = gateway.chain_info().height + 10_000
    seconds = 6.0
    began = time.monotonic()
    assert list(hfc.events("image", beyond, seconds)) == []
    assert time.monotonic() - began >= seconds


def test_e2_with_the_own_peer_down_others_are_believed_together_and_a_majority_is_enough(
    hfc: HfcTransport, gateway: GatewayTransport, nowhere: str
) -> None:
    request = hfc._request("evaluate", 60, "image", "metadata")
    request["peers"][0]["address"] = nowhere
    with Worker(request) as worker:
        answer = worker.answer()
    assert base64.b64decode(answer["payload"]) == gateway.evaluate("image", "metadata")
    function, *arguments = registration(unique("1"))[1:]
    request = hfc._request("submit", 60, "image", function, tuple(arguments))
    request["peers"][3]["address"] = nowhere
    with Worker(request) as worker:
        answer = worker.answer()
    assert answer["tx_id"].encode() in gateway.block(answer["block"])


def test_h1_with_the_own_peer_down_one_other_is_not_the_ledger(
    hfc: HfcTransport, tmp_path: Path, nowhere: str
) -> None:
    """Neither if it lies nor if it does not: another organisation has to say the same."""
    request = hfc._request("evaluate", 60, "image", "metadata", alone=["org1"])
    for place in (0, 2, 3):
        request["peers"][place]["address"] = nowhere
    with Worker(request) as worker, pytest.raises(PhaseError) as alone:
        worker.answer()
    assert alone.value.code == "LEDGER_UNREACHABLE"
    with serving(forging_peer(b'{"functions":"mine"}'), tmp_path) as address:
        request["peers"][3] = address | {"msp": "Org4MSP"}
        with Worker(request) as worker, pytest.raises(PhaseError) as contradicted:
            worker.answer()
    found = contradicted.value
    assert (found.code, found.phase, exit_code(found)) == ("PEERS_DISAGREE", "evaluate", 10)
    assert {detail.msp for detail in found.details if "sha256:" in detail.message} == {"Org2MSP", "Org4MSP"}


def test_h2_the_own_peer_lies_and_is_not_believed(
    hfc: HfcTransport, gateway: GatewayTransport, tmp_path: Path
) -> None:
    request = hfc._request("evaluate", 60, "image", "metadata")
    with serving(forging_peer(b'{"functions":"mine"}'), tmp_path) as address:
        request["peers"][0] = address | {"msp": "Org1MSP"}
        with Worker(request) as worker:
            answer = worker.answer()
    assert base64.b64decode(answer["payload"]) == gateway.evaluate("image", "metadata")


def test_peer_that_never_answers_is_left_out(hfc: HfcTransport, tmp_path: Path) -> None:
    # The others must answer within it, on a busy machine too.
    patience = {"peer_seconds": 10.0}
    function, *arguments = registration(unique("1"))[1:]
    read = hfc._request("evaluate", 60, "image", "metadata") | patience
    write = hfc._request("submit", 60, "image", function, tuple(arguments)) | patience
    with serving(silent_peer, tmp_path) as address, ThreadPoolExecutor(2) as pool:
        read["peers"][0] = write["peers"][3] = address
        answered, written = pool.map(ask, (read, write))
    assert answered["payload"]
    assert written["block"] > 0


def test_too_few_endorsements_are_an_error(hfc: HfcTransport, nowhere: str) -> None:
    function, *arguments = registration(unique("1"))[1:]
    request = hfc._request("submit", 60, "image", function, tuple(arguments))
    for peer in request["peers"][2:]:
        peer["address"] = nowhere
    with Worker(request) as worker, pytest.raises(PhaseError) as caught:
        worker.answer()
    assert (caught.value.code, caught.value.phase) == ("LEDGER_UNREACHABLE", "endorse")


def test_peer_whose_tls_certificate_another_authority_issued_is_not_spoken_to(hfc: HfcTransport) -> None:
    request = hfc._request("evaluate", 60, "image", "metadata")
    request["peers"] = [request["peers"][0] | {"tls_root": request["peers"][1]["tls_root"]}]
    with Worker(request) as worker, pytest.raises(PhaseError) as caught:
        worker.answer()
    assert (caught.value.code, caught.value.phase) == ("LEDGER_UNREACHABLE", "evaluate")


def test_rejection_by_an_orderer_is_an_error(hfc: HfcTransport, tmp_path: Path) -> None:
    rejecting = Rejecting()
    made = unique("1")
    with serving(orderer(rejecting), tmp_path) as address, pytest.raises(PhaseError) as caught:
        submit_to(hfc, address, made, 60)
    assert caught.value.code == "SUBMIT_FAILED"
    assert "BAD_REQUEST: not today" in caught.value.cause
    assert len(rejecting.received) == 1
    with pytest.raises(StateError):
        hfc.evaluate("image", "Get", IMAGE, made)


def test_transaction_whose_orderer_died_has_an_unknown_outcome_and_is_sent_once(
    hfc: HfcTransport, tmp_path: Path
) -> None:
    dying = Dying()
    with serving(orderer(dying), tmp_path) as address, pytest.raises(PhaseError) as caught:
        # Its verdict is waited for until the time is over; on a busy machine too it must be sent before.
        submit_to(hfc, address, unique("1"), 12)
    assert caught.value.code == "COMMIT_UNKNOWN"
    assert len(caught.value.tx_id) == 64
    assert len(dying.received) == 1
    assert caught.value.tx_id.encode() in dying.received[0].payload


def test_nested_message_of_a_hostile_peer_is_an_error_and_not_a_crash(
    hfc: HfcTransport, tmp_path: Path
) -> None:
    request = hfc._request("evaluate", 60, "image", "metadata")
    with serving(nesting_peer, tmp_path) as address, pytest.raises(PhaseError) as caught:
        ask(request | {"peers": [address]})
    # Its answer is none, so too few organisations have answered.
    assert (caught.value.code, caught.value.phase) == ("LEDGER_UNREACHABLE", "evaluate")
    assert caught.value.details[0].msp == "ImpostorMSP"


def ask(request: dict[str, Any]) -> dict[str, Any]:
    with Worker(request) as worker:
        return worker.answer()


def submit_to(hfc: HfcTransport, address: dict[str, str], version: str, seconds: float) -> None:
    function, *arguments = registration(version)[1:]
    request = hfc._request("submit", seconds, "image", function, tuple(arguments))
    with Worker(request | {"orderers": [address]}) as worker:
        worker.answer()


def test_no_orderer_is_an_error(hfc: HfcTransport, nowhere: str) -> None:
    absent = hfc._request("submit", 5)["orderers"][0] | {"address": nowhere}
    with pytest.raises(PhaseError) as caught:
        submit_to(hfc, absent, unique("1"), 60)
    assert caught.value.code == "LEDGER_UNREACHABLE"


READ_ALL = """
import runpy, sys
read = runpy.run_path(sys.argv[1])["WorkerRequest"].read
for line in sys.stdin.buffer:
    try:
        read(line)
    except ValueError as error:
        print(error)
    else:
        print("taken")
"""


def test_worker_refuses_requests_of_another_form(hfc: HfcTransport) -> None:
    """One process reads them all, because loading hfc takes most of the time."""
    good = hfc._request("evaluate", 5, "image", "metadata")
    changes: list[dict[str, Any]] = [
        {"verb": "install"},
        {"peers": []},
        {"seconds": 0},
        {"arguments": ["no base64!"]},
        {"arguments": None},
        {"more": 1},
        {"peers": [{"address": "127.0.0.1:1"}]},
    ]
    lines = [json.dumps(good | change) for change in ({}, *changes)]
    ran = worker_python("-c", READ_ALL, str(WORKER), said="\n".join(lines))
    first, *others = ran.stdout.splitlines()
    assert (first, len(others)) == ("taken", len(changes)), ran.stderr
    assert all(line.startswith("not a request") for line in others), others


def test_worker_without_a_request_ends_with_an_error(hfc: HfcTransport) -> None:
    ran = worker_python(str(WORKER), said="{}")
    assert ran.returncode != 0
    assert "not a request" in ran.stderr
    assert ran.stdout == ""


def worker_python(*arguments: str, said: str) -> subprocess.CompletedProcess[str]:
    command = [str(hfc_python()), "-I", "-B", *arguments]
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=150, check=False)


def test_unknown_organisation_and_identity_are_usage_errors(live: Network) -> None:
    for organisation, identity in (("org9", "admin"), ("org1", "nobody")):
        with pytest.raises(UsageError):
            HfcTransport.connect(live, organisation, identity)


def test_revoked_or_foreign_certificate_is_refused(live: Network) -> None:
    foreign = replace(HfcTransport.connect(live, "org2", "data-scientist"), organisation="org1")
    with pytest.raises(AttestreeError) as caught:
        foreign.evaluate("image", "metadata")
    assert caught.value.code == "ACCESS_DENIED"


def test_commands_answer_the_same_through_hfc(version: str) -> None:
    for name in (f"{IMAGE}:{version}", f"{IMAGE}:never"):
        through = [here("--transport", transport, "image", "show", name) for transport in ("hfc", "gateway")]
        assert told(through[0].out) == told(through[1].out)
        assert through[0].code == through[1].code


def told(printed: str) -> Any:
    """What a command printed, but for what is each call's own: its id, and in which words a peer refused."""
    found = json.loads(printed)
    if "error" in found:
        # A read that several peers were asked for has no one transaction.
        found["error"].pop("transaction")
        assert found["error"].pop("peers")
    return found


def test_command_submits_through_hfc(hfc: HfcTransport) -> None:
    made = unique("1")
    committed_everywhere(hfc.submit(*registration(made)).tx_id)
    retired = run(EXECUTOR, "--transport", "hfc", "image", "retire", f"{IMAGE}:{made}", "--json")
    assert retired.returncode == 0, retired.stderr
    assert json.loads(hfc.evaluate("image", "Get", IMAGE, made))["status"] == "retired"
