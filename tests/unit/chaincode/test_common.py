"""What the chaincodes share: names, roles, refusals, events, calls."""

import json

import pytest
from support.memory.ledger import Ledger

from chaincode.common import LedgerContract, Role, allow, time_text
from chaincode.probe import Probe
from chaincode.shim import Context, evaluate, submit
from protocol.errors import StateError


class First(LedgerContract):
    name = "first"
    events = {"Said": "something was said"}  # noqa: RUF012

    @submit
    @allow(Role.NODE)
    def say_it_twice(self, ctx: Context, text: str) -> None:
        """Say it."""
        ctx.put("said", text.encode())
        self.announce(ctx, "Said", {"text": text})

    @submit
    @allow(*Role)
    def whisper(self, ctx: Context) -> None:
        """Announce what is documented nowhere."""
        self.announce(ctx, "Whispered", {})

    @submit
    @allow(*Role)
    def ask(self, ctx: Context, chaincode: str, function: str) -> str:
        """Ask another chaincode."""
        return ctx.invoke(chaincode, [function]).decode()


class Second(LedgerContract):
    name = "second"

    @evaluate
    def answer(self, ctx: Context) -> dict[str, str]:
        """Answer."""
        return {"answer": "yes"}

    @evaluate
    def refuse(self, ctx: Context) -> None:
        """Refuse with a code."""
        raise StateError("IMAGE_RETIRED", "the image is retired")

    @submit
    @allow(*Role)
    def write(self, ctx: Context) -> None:
        """Write something."""
        ctx.put("written", b"by whomever")

    @submit
    @allow(*Role, through="first")
    def ask_back(self, ctx: Context) -> None:
        """Call the caller."""
        ctx.invoke("first", ["Whisper"])


@pytest.fixture
def ledger():
    return Ledger(First(), Second())


@pytest.fixture
def node(ledger):
    return ledger.member("node01", "Org1MSP", role="node", node="node01")


def test_methods_are_functions_in_camel_case_for_their_roles(ledger, node):
    node.submit("first", "SayItTwice", "hello")
    assert ledger.events == [("first", "Said", b'{"text":"hello"}')]
    assert ledger.member("a", "Org1MSP", role="auditor").code("first", "SayItTwice", "x") == "ACCESS_ROLE"
    assert node.code("first", "say_it_twice", "x") == "UNKNOWN_FUNCTION"


def test_function_that_writes_for_nobody_is_refused_when_the_contract_is_made():
    class Open(LedgerContract):
        name = "open"

        @submit
        def write(self, ctx: Context) -> None:
            """Write."""

    with pytest.raises(TypeError, match="names no roles"):
        Open()


def test_event_that_is_not_documented_is_a_bug(node):
    assert node.code("first", "Whisper") == "INTERNAL"


def test_answers_and_refusals_of_a_called_chaincode_arrive(node):
    assert node.evaluate("first", "Ask", "second", "Answer") == {"answer": "yes"}
    refused = node.endorse("first", "Ask", "second", "Refuse")
    assert json.loads(refused.message) == {
        "code": "IMAGE_RETIRED",
        "message": "the image is retired. Choose a version that is not retired.",
    }


def test_chaincode_cannot_be_called_back_within_its_transaction(node):
    assert node.code("first", "Ask", "second", "AskBack") == "CALL_REFUSED"
    assert node.code("first", "Ask", "third", "Answer") == "CALL_REFUSED"


def test_t1_a_write_through_another_chaincode_is_refused(ledger, node):
    """Its event would be dropped, and its caller would have signed for another chaincode."""
    assert node.code("first", "Ask", "second", "Write") == "ACCESS_CHAINCODE"
    assert node.submit("second", "Write") is None
    assert ("second", "written") in ledger.state


def test_t1_what_one_chaincode_does_for_another_is_no_clients_to_call(node):
    assert node.code("second", "AskBack") == "ACCESS_CHAINCODE"


def test_t1_the_probe_relays_no_write_and_writes_for_nobody_without_a_role():
    ledger = Ledger(First(), Second(), Probe())
    node = ledger.member("node01", "Org1MSP", role="node", node="node01")
    assert node.code("probe", "relay", "second", ["Write"]) == "ACCESS_CHAINCODE"
    assert node.evaluate("probe", "relay", "second", ["Answer"]) == {"answer": "yes"}
    stranger, auditor = (ledger.member("a", "Org1MSP"), ledger.member("b", "Org1MSP", role="auditor"))
    for call in (("put", "key", "value"), ("put_many", "key", 1000, 1), ("relay", "second", ["Answer"])):
        assert stranger.code("probe", *call) == "ACCESS_ROLE"
    assert auditor.code("probe", "put", "key", "value") == "ACCESS_ROLE"
    assert auditor.evaluate("probe", "whoami")["msp"] == "Org1MSP"


@pytest.mark.parametrize(("count", "size"), [(1, 0), (1, (64 << 20) + 1), (1000, 67109), (100_001, 1)])
def test_t1_the_probe_bounds_what_one_call_writes(count, size):
    node = Ledger(Probe()).member("node01", "Org1MSP", role="node", node="node01")
    assert node.code("probe", "put_many", "key", count, size) == "BAD_ARGUMENT"


def test_times_have_one_length_and_sort_as_text(ledger):
    early = ledger.time.replace(year=7, microsecond=5)
    assert time_text(early) == "0007-11-16T00:00:00.000005Z"
    assert time_text(early) < time_text(ledger.time)
