"""The proxies: every function of the contracts, called as declared, its answer read as the class it says."""

import json
from dataclasses import replace

import pytest
from support.memory.story import ScriptedTransport, call_of, called, calls_of, told

from chaincode.document import answer_of
from chaincode.registry import CONTRACTS, contract
from chaincode.shim.arguments import decode
from executor.exits import message
from executor.ledger.chaincodes import proxy as proxy_module
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from protocol.agreement.lifecycle import ProcessState
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.common import History, Page
from protocol.ledger.estimators import Lineage
from protocol.ledger.models import ModelTrees
from protocol.ledger.tasks import HISTORIES
from protocol.task.opening import TaskId

NOT_FOR_CLIENTS = {("orchestration", "Advance"), ("execution-record", "BindInitial")}
DIGEST = Digest.of(b"x")
ID = EstimatorId("node01", 7)
TASK = TaskId("p", "node01", 3)
DEPLOYED = [name for name in CONTRACTS if name != "probe"]
FUNCTIONS = [
    (name, function)
    for name in DEPLOYED
    for function in contract(name).functions
    if (name, function) not in NOT_FOR_CLIENTS
]


@pytest.mark.parametrize(("chaincode", "name"), FUNCTIONS)
def test_every_function_of_every_contract_is_called_as_it_is_declared(chaincode, name):
    function = contract(chaincode).functions[name]
    for call in calls_of(chaincode, name):
        assert call.kind == function.kind
        decode(name, function.parameters, [argument.encode() for argument in call.arguments])
        # All that may be left out is given; a payload comes as transient data instead.
        assert len(call.arguments) + len(call.transient or ()) == len(function.parameters)


def test_nothing_else_is_called():
    assert {(call.chaincode, call.function) for call in told().calls} == set(FUNCTIONS)


def test_every_method_of_every_proxy_was_called():
    ledger = Ledger(ScriptedTransport())
    for proxy in ("images", "orchestration", "execution", "models"):
        public = {name for name in dir(getattr(ledger, proxy)) if not name.startswith("_")}
        used = {call.method for call in told().calls if call.proxy == proxy}
        assert public - {"transport", "chaincode"} == used


@pytest.mark.parametrize(("chaincode", "name"), FUNCTIONS)
def test_every_answer_is_read_as_the_class_that_the_contract_declares(chaincode, name):
    for call in calls_of(chaincode, name):
        expected = declared(call)
        assert expected, "an empty list shows nothing"
        assert (call.found.answer if call.kind == "submit" else call.found) == expected


def declared(call):
    """Read an answer by the annotation of the contract's function, without the proxy."""
    if call.function == "metadata":
        return call.answer
    shape, record = answer_of(contract(call.chaincode).functions[call.function])
    if record is None:
        return list(History.from_dict(call.answer, HISTORIES[call.values[0]].from_dict).items)
    if shape.startswith("page"):
        return list(Page.from_dict(call.answer, record.from_dict).items)
    if shape.startswith("history"):
        return list(History.from_dict(call.answer, record.from_dict).items)
    found = record.from_dict(call.answer)
    return list(found.items) if isinstance(found, ModelTrees) else found


@pytest.mark.parametrize(
    ("method", "function", "field"), [("share", "Share", "share"), ("complete", "Complete", "result")]
)
def test_payloads_travel_as_transient_data_under_their_digest(method, function, field):
    transport = ScriptedTransport(call_of("execution-record", function).raw)
    getattr(Ledger(transport).execution, method)(TASK, b"\x00raw", b"\x01" * 64)
    ((_, _, arguments, transient),) = transport.asked
    assert arguments == ("p", "node01", "3", str(Digest.of(b"\x00raw")), "01" * 64)
    assert transient == {field: b"\x00raw"}


def test_a_model_without_trees_of_its_own_sends_none():
    transport = ScriptedTransport(call_of("model", "Publish").raw)
    Ledger(transport).models.publish("p", "node01", [ID], DIGEST, {})
    ((_, _, arguments, transient),) = transport.asked
    assert arguments == ("p", "node01", '["node01/0007"]', str(DIGEST), "{}")
    assert transient is None


def test_submits_return_receipt_and_answer():
    found = Ledger(ScriptedTransport(call_of("orchestration", "Start").raw)).orchestration.start("p")
    assert found.receipt.tx_id == "tx"
    assert found.answer.status is ProcessState.RUNNING


def test_what_is_sent_twice_is_answered_as_a_replay():
    for function, given in (("Share", "recipients"), ("Complete", "next_counter")):
        first, again, *_ = (call.found.answer for call in calls_of("execution-record", function))
        assert (first.replayed, again.replayed) == (False, True)
        assert getattr(first, given) is not None
        assert getattr(again, given) is None
        assert given not in again.to_dict()


def test_lists_follow_bookmarks_also_over_a_page_without_items():
    first, second = call_of("image", "List").answer["items"]
    transport = ScriptedTransport(
        {"items": [first], "bookmark": "a"},
        {"items": [], "bookmark": "b"},
        {"items": [second], "bookmark": ""},
    )
    found = list(Ledger(transport).images.list())
    assert [record.image.version for record in found] == ["1.0.0", "2.0.0"]
    assert [arguments[-1] for _, _, arguments, _ in transport.asked] == ["", "a", "b"]


def test_histories_follow_bookmarks():
    retired, registered = call_of("image", "History").answer["items"]
    pages = [{"items": [retired], "bookmark": "a"}, {"items": [registered], "bookmark": ""}]
    transport = ScriptedTransport(*pages)
    found = list(Ledger(transport).images.history("a", "1"))
    assert [entry.value.status.value for entry in found] == ["retired", "registered"]
    assert [arguments[-1] for _, _, arguments, _ in transport.asked] == ["", "a"]


def test_a_removed_record_is_a_change_without_a_value():
    entry = {"tx": "t", "time": "2026-11-16T00:00:00Z", "value": None}
    (found,) = Ledger(ScriptedTransport({"items": [entry], "bookmark": ""})).images.history("a", "1")
    assert found.value is None
    assert found.to_dict() == entry


def test_a_lineage_has_the_offers_of_all_pages():
    whole = Lineage.from_dict(call_of("execution-record", "Lineage").answer)
    (offer,) = whole.offers
    later = replace(offer, iteration=offer.iteration + 1)
    pages = [replace(whole, bookmark="a"), replace(whole, offers=(later,), taken=whole.taken[:1])]
    transport = ScriptedTransport(*(page.to_dict() for page in pages))
    found = Ledger(transport).execution.lineage("p", ID)
    assert found == replace(whole, offers=(offer, later), taken=(*whole.taken, whole.taken[0]))
    assert [arguments[-1] for _, _, arguments, _ in transport.asked] == ["", "a"]


def test_estimators_are_asked_for_a_thousand_at_a_time():
    answer = call_of("execution-record", "Estimators").answer
    transport = ScriptedTransport(answer, answer)
    ids = [EstimatorId("node01", counter) for counter in range(1500)]
    found = Ledger(transport).execution.estimators("p", ids)
    assert [len(json.loads(arguments[1])) for _, _, arguments, _ in transport.asked] == [1000, 500]
    assert (len(found.estimators), len(found.missing)) == (2, 2)


def test_trees_are_fetched_to_the_last():
    tree = call_of("model", "Trees").answer["items"][0]
    pages = [{"items": [tree] * 100, "total": 150}, {"items": [tree] * 50, "total": 150}]
    transport = ScriptedTransport(*pages)
    assert len(list(Ledger(transport).models.trees("p", "node01"))) == 150
    assert [arguments[2] for _, _, arguments, _ in transport.asked] == ["0", "100"]


FOR_INFORMATION = {
    ("image", "List"),
    ("image", "History"),
    ("image", "RebuildHistory"),
    ("orchestration", "List"),
    ("orchestration", "History"),
    ("orchestration", "ProgressHistory"),
    ("execution-record", "ImageUses"),
    ("execution-record", "ListTasks"),
    ("execution-record", "ListRefusals"),
    ("execution-record", "Lineage"),
    ("execution-record", "Twins"),
    ("execution-record", "History"),
    ("model", "List"),
    ("model", "Uses"),
    ("model", "AccessHistory"),
    ("model", "History"),
}


@pytest.mark.parametrize(("chaincode", "name"), FUNCTIONS)
def test_h1_whatever_decides_something_is_read_from_enough_organisations(chaincode, name):
    """A function that is not on the list of those that only inform is read by agreement."""
    call = calls_of(chaincode, name)[0]
    if call.kind == "submit":
        return
    transport = ScriptedTransport(call.raw)
    called(Ledger(transport), call.proxy, call.method, call.values)
    informs = (chaincode, name) in FOR_INFORMATION or name == "metadata"
    assert transport.agreed == ([] if informs else [(chaincode, name)])


def test_a_bookmark_that_leads_back_is_not_followed():
    item = call_of("image", "List").answer["items"][0]
    pages = [{"items": [item], "bookmark": mark} for mark in ("a", "b", "a")]
    with pytest.raises(PhaseError, match="leads back") as raised:
        list(Ledger(ScriptedTransport(*pages)).images.list())
    assert raised.value.code == "LEDGER_ANSWER"


def test_a_lineage_that_leads_back_is_not_followed():
    page = replace(Lineage.from_dict(call_of("execution-record", "Lineage").answer), bookmark="a").to_dict()
    with pytest.raises(PhaseError, match="leads back"):
        Ledger(ScriptedTransport(page, page)).execution.lineage("p", ID)


def test_a_list_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(proxy_module, "MOST_PAGES", 5)
    pages = [{"items": [], "bookmark": str(number)} for number in range(9)]
    transport = ScriptedTransport(*pages)
    with pytest.raises(PhaseError, match="more than 5 pages"):
        list(Ledger(transport).images.list())
    assert len(transport.asked) == 5


def test_an_odd_answer_to_a_submission_names_its_transaction():
    with pytest.raises(PhaseError) as raised:
        Ledger(ScriptedTransport({})).orchestration.start("p")
    found = raised.value
    assert (found.code, found.phase, found.tx_id) == ("LEDGER_ANSWER", "commit", "tx")
    assert "transaction: tx" in message(found)


def test_a_ledger_closes_its_transport():
    transport = ScriptedTransport()
    with Ledger(transport):
        pass
    assert transport.closed
