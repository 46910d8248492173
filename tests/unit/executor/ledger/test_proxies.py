"""The proxies: every function of the contracts, with arguments that the contracts can read."""

import json

import pytest

from chaincode.registry import contract
from chaincode.shim.arguments import decode
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.transport import Receipt
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId

DIGEST = Digest.of(b"x")
ID = EstimatorId("node01", 7)
TASK = TaskId("p", "node01", 3)
OPENING = Opening(SigningKey(b"\x07" * 32).verify_key, DIGEST, DIGEST, DIGEST, DIGEST, None, DIGEST, DIGEST)
NOT_FOR_CLIENTS = {("orchestration", "Advance")}


class Recorder:
    """A transport that answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []

    def _answer(self, kind, chaincode, function, arguments, transient=None):
        self.calls.append((kind, chaincode, function, arguments, transient))
        page = {"items": [], "offers": [], "bookmark": "", "total": 0}
        return json.dumps(self.answers.pop(0) if self.answers else page).encode()

    def evaluate(self, chaincode, function, *arguments):
        return self._answer("evaluate", chaincode, function, arguments)

    def submit(self, chaincode, function, *arguments, transient=None):
        return Receipt("tx", 1, self._answer("submit", chaincode, function, arguments, transient))

    def close(self):
        self.calls.append("closed")


# Each method of each proxy, called with every argument it can have.
CALLS = {
    "images": {
        "metadata": (),
        "get": ("a", "1"),
        "list": ("Org1MSP",),
        "history": ("a", "1"),
        "register": ("a", "1", DIGEST, DIGEST, "r:5000/a", "words"),
        "retire": ("a", "1", "why"),
    },
    "orchestration": {
        "metadata": (),
        "get": ("p",),
        "list": ("running",),
        "status": ("p",),
        "history": ("p",),
        "task_context": (TASK,),
        "model_context": ("p",),
        "create": ({"process": "p", "steps": [1]},),
        "accept": ("p", DIGEST),
        "start": ("p",),
        "complete": ("p",),
        "abort": ("p", "why"),
        "join": ("p", "node01", "Org1MSP", 2),
        "leave": ("p", "node01", 2, "why"),
        "change_topology": ("p", 2, {"kind": "ring"}),
        "update_image": ("p", 2, "2"),
    },
    "execution": {
        "metadata": (),
        "get_task": (TASK,),
        "list_tasks": ("p", "node01"),
        "list_refusals": ("p", "node01"),
        "artifacts": ("p", 2),
        "artifacts_of": ("p", "Org1MSP", "node01", 2),
        "slots": ("p", "node01"),
        "offers": (TASK,),
        "standing": ("p", "node01"),
        "last_result": ("p", "node01"),
        "estimator": ("p", ID),
        "estimators": ("p", [ID]),
        "lineage": ("p", ID),
        "history": ("task", ["p", "node01", "3"]),
        "open_task": (TASK, OPENING),
        "share": (TASK, b"\x00share", b"\x01" * 64),
        "complete": (TASK, b"\x00result", b"\x01" * 64),
        "fail": (TASK, "OOM", "too much"),
        "expire": (TASK,),
        "refuse": (TASK, "IMAGE_MISMATCH", {"found": str(DIGEST)}),
    },
    "models": {
        "metadata": (),
        "get": ("p", "node01"),
        "list": ("p",),
        "members": ("p", "node01"),
        "trees": ("p", "node01"),
        "access": ("p", "node01"),
        "access_history": ("p", "node01"),
        "uses": ("p", ID),
        "publish": ("p", "node01", [ID], DIGEST, {"auc": "0.9"}, b"\x00trees"),
        "grant": ("p", "node01", "Org2MSP", "2027-01-31T00:00:00Z"),
        "revoke": ("p", "node01", "Org2MSP"),
    },
}
CONTRACTS = ("image", "orchestration", "execution-record", "model")


def called():
    """Call everything once; yields what went over the transport."""
    for proxy, methods in CALLS.items():
        for method, arguments in methods.items():
            transport = Recorder()
            answer = getattr(getattr(Ledger(transport), proxy), method)(*arguments)
            if hasattr(answer, "__next__"):
                list(answer)
            yield transport.calls[0]


def test_every_function_of_every_contract_is_called_as_it_is_declared():
    found = {(chaincode, function): (kind, arguments) for kind, chaincode, function, arguments, _ in called()}
    for name in CONTRACTS:
        for function in contract(name).functions.values():
            if (name, function.name) in NOT_FOR_CLIENTS:
                continue
            kind, arguments = found.pop((name, function.name))
            assert kind == function.kind
            decode(function.name, function.parameters, [argument.encode() for argument in arguments])
    assert not found


def test_every_method_of_every_proxy_was_called():
    ledger = Ledger(Recorder())
    for proxy, methods in CALLS.items():
        public = {name for name in dir(getattr(ledger, proxy)) if not name.startswith("_")}
        assert public - {"transport", "chaincode"} == set(methods)


@pytest.mark.parametrize(("method", "field"), [("share", "share"), ("complete", "result")])
def test_payloads_travel_as_transient_data_under_their_digest(method, field):
    transport = Recorder()
    getattr(Ledger(transport).execution, method)(TASK, b"\x00raw", b"\x01" * 64)
    ((_, _, _, arguments, transient),) = transport.calls
    assert arguments == ("p", "node01", "3", str(Digest.of(b"\x00raw")), "01" * 64)
    assert transient == {field: b"\x00raw"}


def test_a_model_without_trees_of_its_own_sends_none():
    transport = Recorder()
    Ledger(transport).models.publish("p", "node01", [ID], DIGEST, {})
    ((_, _, _, arguments, transient),) = transport.calls
    assert arguments == ("p", "node01", '["node01/0007"]', str(DIGEST), "{}")
    assert transient is None


def test_submits_return_receipt_and_answer():
    found = Ledger(Recorder({"status": "running"})).orchestration.start("p")
    assert (found.receipt.tx_id, found.answer) == ("tx", {"status": "running"})


def test_lists_follow_bookmarks_also_over_a_page_without_items():
    pages = [
        {"items": [{"n": 1}], "bookmark": "a"},
        {"items": [], "bookmark": "b"},
        {"items": [{"n": 2}], "bookmark": ""},
    ]
    transport = Recorder(*pages)
    assert list(Ledger(transport).images.list()) == [{"n": 1}, {"n": 2}]
    assert [call[3][-1] for call in transport.calls] == ["", "a", "b"]


def test_a_lineage_has_the_offers_of_all_pages():
    pages = [{"id": "x", "offers": [1, 2], "bookmark": "a"}, {"id": "x", "offers": [3], "bookmark": ""}]
    found = Ledger(Recorder(*pages)).execution.lineage("p", ID)
    assert found == {"id": "x", "offers": [1, 2, 3], "bookmark": ""}


def test_trees_are_fetched_to_the_last():
    pages = [{"items": list(range(100)), "total": 150}, {"items": list(range(100, 150)), "total": 150}]
    transport = Recorder(*pages)
    assert list(Ledger(transport).models.trees("p", "node01")) == list(range(150))
    assert [call[3][2] for call in transport.calls] == ["0", "100"]


@pytest.mark.parametrize("answer", [[], "text", None, 3])
def test_an_answer_of_another_form_is_refused(answer):
    with pytest.raises(PhaseError) as raised:
        Ledger(Recorder(answer, answer)).images.get("a", "1")
    assert raised.value.code == "LEDGER_ANSWER"


@pytest.mark.parametrize("page", [{}, {"items": {}, "bookmark": ""}, {"items": [], "bookmark": None}])
def test_a_page_of_another_form_is_refused(page):
    with pytest.raises(PhaseError):
        list(Ledger(Recorder(page)).images.list())


def test_a_ledger_closes_its_transport():
    transport = Recorder()
    with Ledger(transport):
        pass
    assert transport.calls == ["closed"]
