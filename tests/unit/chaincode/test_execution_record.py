"""The life of tasks on the real contracts: two whole rounds, and what they leave on the ledger."""

import json

import pytest
from support.memory.federation import (
    EXECUTION,
    N_NEW,
    SPECIFICATION,
    Federation,
    Player,
    estimators,
    in_base64,
    prepared,
)
from support.memory.scenario import IMAGE

from chaincode.common.records import encode
from chaincode.execution_record.store import OfferedShare
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.common import EnsembleMember, Provenance, Signed
from protocol.ledger.tasks import ShareRecord
from protocol.trees.share import Share


@pytest.fixture
def federation():
    return prepared()()


@pytest.fixture
def node(federation):
    return federation.players["node01"]


def ask(federation, function, *arguments):
    return federation.auditor1.evaluate(EXECUTION, function, federation.process, *arguments)


def test_two_rounds_of_four_nodes_complete(federation):
    federation.play(0)
    federation.play(1)
    status = federation.auditor1.evaluate("orchestration", "Status", federation.process)
    assert [entry["completed"] for entry in status["nodes"]] == [1, 1, 1, 1]
    assert ask(federation, "Standing", "node01")["next_counter"] == 2 * N_NEW


def test_each_change_of_state_is_announced_with_ids(federation):
    federation.play(0)
    mine = [(name, json.loads(raw)) for chaincode, name, raw in federation.events if chaincode == EXECUTION]
    assert [name for name, event in mine if event["node"] == "node01"] == [
        "TaskOpened",
        "TaskShared",
        "TaskCompleted",
    ]
    for _, event in mine:
        assert event["process"] == federation.process
        assert event["iteration"] == 0
        assert len(json.dumps(event)) < 600


@pytest.mark.parametrize("recipients", [(), ("node02",), ("node02", "node02.a", "recipients")])
def test_the_digest_offers_and_recipients_of_a_stored_share_are_read(recipients):
    """They are read without the rest of the record, so the whole record is compared with them here."""
    members = tuple(EnsembleMember(EstimatorId("recipients", n), Digest.of(b"%d" % n)) for n in (3, 1, 2))
    by = Provenance("Org1MSP", ',"recipients":["node03"]', "node", Digest.of(b""), "now", "tx")
    signed = Signed(Digest.of(b"share"), "ab", by)
    record = ShareRecord("p", "node01", 7, "Org1MSP", 1, members, (members[0].id,), recipients, signed)
    found = OfferedShare.read(encode(record))
    assert found.digest == str(signed.payload_digest)
    assert [*found.offers.items()] == [(str(member.id), str(member.digest)) for member in members]
    assert found.recipients == recipients
    names = ("node02", "node02.a", "recipients", "node0", "node03", "ode02", "")
    assert [name for name in names if found.is_for(name)] == [*recipients]


def test_a_share_writes_each_tree_once_and_one_slot_per_neighbour(federation, node):
    node.open(0)
    answer = node.share()
    assert answer["recipients"] == ["node02", "node04"]
    assert len(answer["created"]) == N_NEW
    found = node.member.evaluate(EXECUTION, "Estimators", federation.process, answer["created"])
    assert not found["missing"]
    expected = [in_base64(estimator.tree.to_bytes()) for estimator in estimators("node01", 0)]
    assert [entry["tree"] for entry in found["estimators"]] == expected
    (slot,) = ask(federation, "Slots", "node02")["items"]
    assert (slot["sender"], slot["iteration"], slot["ids"]) == ("node01", 0, answer["created"])
    assert not ask(federation, "Slots", "node03")["items"]


def test_slots_are_overwritten_by_the_next_share(federation):
    federation.play(0)
    federation.play(1)
    slots = ask(federation, "Slots", "node02")["items"]
    assert [(slot["sender"], slot["iteration"]) for slot in slots] == [("node01", 1), ("node03", 1)]
    history = ask_history(federation, "slot", [federation.process, "node02", "node01"])
    assert [change["value"]["iteration"] for change in history] == [1, 0]


def ask_history(federation, kind, parts, *paging):
    return federation.auditor1.evaluate(EXECUTION, "History", kind, parts, *paging)["items"]


def test_offers_are_those_of_the_iteration_even_when_the_slot_has_moved_on(federation):
    federation.play(0)
    for player in federation.players.values():
        player.open(1)
    federation.players["node01"].share()
    (slot,) = [s for s in ask(federation, "Slots", "node02")["items"] if s["sender"] == "node01"]
    assert slot["iteration"] == 1
    offers = ask(federation, "Offers", "node02", 0)
    assert [offer["iteration"] for offer in offers["slots"]] == [0, 0]
    assert ask(federation, "Offers", "node02", 1)["missing"] == ["node03"]


def test_the_payload_may_come_as_an_argument_in_base64(node):
    node.open(0)
    arguments, options = node.call_share()
    raw = options["transient"]["share"]
    assert node.member.submit(*arguments, in_base64(raw))["replayed"] is False


def test_transient_payload_is_in_the_transaction_once(node):
    node.open(0)
    arguments, options = node.call_share()
    endorsed = node.member.endorse(*arguments, **options)
    written = [value for (_, key), value in endorsed.writes.items() if key.startswith("\0estimator")]
    assert len(written) == N_NEW
    assert all(len(value) < 2000 for value in written)


def test_relayed_estimators_travel_on_under_their_creator(federation):
    federation.play(0)
    middle = federation.players["node02"]
    middle.open(1)
    offered = (*estimators("node01", 0)[:5], *estimators("node02", 1)[:5])
    answer = middle.share(offered)
    assert answer["created"] == [str(estimator.id) for estimator in offered[5:]]
    (slot,) = [s for s in ask(federation, "Slots", "node03")["items"] if s["sender"] == "node02"]
    assert slot["ids"][0] == "node01/0000"


def test_a_tree_first_offered_rounds_later_is_recognised(federation, node):
    node.open(0)
    node.share(estimators("node01", 0)[:4])
    for name in ("node02", "node03", "node04"):
        federation.players[name].open(0)
        federation.players[name].share()
    for player in federation.players.values():
        player.complete()
    node.open(1)
    late = estimators("node01", 0)[7]
    assert str(late.id) in node.share((late, *estimators("node01", 1)[:3]))["created"]


def test_d13_single_leaf_trees_and_d14_an_empty_share_work(federation, node):
    from protocol.trees.estimator import Estimator
    from protocol.trees.tree import Tree

    leaf = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
    node.open(0)
    assert node.share((Estimator(EstimatorId("node01", 0), leaf),))["created"] == ["node01/0000"]
    other = federation.players["node03"]
    other.open(0)
    assert other.share(())["created"] == []


def test_the_lineage_of_an_estimator_names_creator_task_image_slots_takers(federation):
    federation.play(0)
    federation.play(1)
    lineage = ask(federation, "Lineage", "node01/0003")
    assert (lineage["creator"], lineage["organisation"], lineage["iteration"]) == ("node01", "Org1MSP", 0)
    assert lineage["image"]["version"] == "1.0.0"
    assert [(o["sender"], o["iteration"], o["recipients"]) for o in lineage["offers"]] == [
        ("node01", 0, ["node02", "node04"])
    ]
    assert [entry["node"] for entry in lineage["taken"]] == ["node02", "node04"]
    assert lineage["models"] == []


def test_the_artifacts_of_each_run_and_of_one_organisation(federation):
    federation.play(0)
    federation.play(1)
    everything = ask(federation, "Artifacts")["items"]
    assert [(item["iteration"], item["node"]) for item in everything] == [
        (iteration, node) for iteration in (0, 1) for node in ("node01", "node02", "node03", "node04")
    ]
    assert [item["node"] for item in ask(federation, "Artifacts", 1)["items"]] == [
        "node01", "node02", "node03", "node04",
    ]  # fmt: skip
    theirs = ask(federation, "ArtifactsOf", "Org2MSP")["items"]
    assert {item["node"] for item in theirs} == {"node03", "node04"}
    (one,) = ask(federation, "ArtifactsOf", "Org2MSP", "node04", 1)["items"]
    assert (one["node"], one["iteration"]) == ("node04", 1)
    assert len(one["created"]) == N_NEW
    assert not ask(federation, "ArtifactsOf", "Org3MSP")["items"]


def test_e19_lists_and_histories_are_paged(federation):
    federation.play(0)
    federation.play(1)
    pages, bookmark = [], ""
    while True:
        found = ask(federation, "Artifacts", -1, 3, bookmark)
        pages.append([(item["iteration"], item["node"]) for item in found["items"]])
        bookmark = found["bookmark"]
        if not bookmark:
            break
    assert [len(items) for items in pages] == [3, 3, 2]
    assert len({item for items in pages for item in items}) == 8
    first = ask(federation, "Artifacts", 1, 2)
    second = ask(federation, "Artifacts", 1, 2, first["bookmark"])
    assert [item["node"] for item in second["items"]] == ["node03", "node04"]
    parts = [federation.process, "node01", "0"]
    states = [change["value"]["state"] for change in ask_history(federation, "task", parts)]
    assert states == ["completed", "shared", "open"]
    newest = federation.auditor1.evaluate(EXECUTION, "History", "task", parts, 1)
    assert [change["value"]["state"] for change in newest["items"]] == ["completed"]
    older = federation.auditor1.evaluate(EXECUTION, "History", "task", parts, 2, newest["bookmark"])
    assert [change["value"]["state"] for change in older["items"]] == ["shared", "open"]


def test_c12_a_node_that_joins_mid_run_begins_with_its_own_first_counter():
    federation = Federation(SPECIFICATION)
    federation.play(0)
    asked = federation.admin1.submit("orchestration", "Join", federation.process, "node06", "Org1MSP", 2)
    federation.agree(federation.admin2, asked)
    newcomer = federation.players["node06"] = Player(federation, "node06")
    newcomer.joined = 2
    federation.play(1, ["node01", "node02", "node03", "node04"])
    federation.play(2)
    standing = ask(federation, "Standing", "node06")
    assert (standing["iteration"], standing["next_counter"]) == (2, N_NEW)
    assert ask(federation, "Slots", "node06")["items"]


def test_tasks_are_listed_by_process_and_by_node(federation):
    federation.play(0)
    assert len(ask(federation, "ListTasks")["items"]) == 4
    (task,) = ask(federation, "ListTasks", "node03")["items"]
    assert (task["node"], task["state"], task["attempt"]) == ("node03", "completed", 1)
    whole = ask(federation, "GetTask", "node03", 0)
    assert whole["offered"]["signed"] == whole["share"]
    assert whole["outcome"]["signed"] == whole["result"]


def test_what_is_on_the_ledger_verifies_without_the_ledger(federation, node):
    """An auditor rebuilds the statement from the record and checks the signature by the task's key."""
    from protocol.digest import Digest
    from protocol.signing import VerifyKey
    from protocol.task.opening import Opening, TaskId, statement
    from protocol.task.statement import Action, verify_statement

    node.open(0)
    node.share()
    record = ask(federation, "GetTask", "node01", 0)
    opening = Opening.from_dict(record["opening"])
    raw = Share(estimators("node01", 0)).to_bytes()
    made = statement(TaskId(federation.process, "node01", 0), opening, Action.SHARE, Digest.of(raw))
    verify_statement(
        VerifyKey.parse(record["opening"]["public_key"]), made, bytes.fromhex(record["share"]["signature"])
    )
    assert str(made.inputs_digest) == record["inputs_digest"]


def pages_of(ask_page):
    """Follow the bookmarks of a list to its end."""
    found, bookmark = [], ""
    while True:
        page = ask_page(bookmark)
        found.append(page)
        bookmark = page["bookmark"]
        if not bookmark:
            return found


def kinds_read(endorsed):
    return {key.split("\0")[1] for _, key in endorsed.reads}


def test_results_of_an_organisation_are_read_by_their_keys_and_no_others(federation):
    federation.play(0)
    federation.play(1)
    call = (EXECUTION, "ArtifactsOf", federation.process, "Org2MSP")
    endorsed = federation.auditor1.endorse(*call)
    read = sorted(key.split("\0")[4] for _, key in endorsed.reads if key.startswith("\0result"))
    assert read == ["node03", "node03", "node04", "node04"]
    assert not endorsed.ranges
    pages = pages_of(lambda bookmark: federation.auditor1.evaluate(*call, "", -1, 1, bookmark))
    found = [(item["iteration"], item["node"]) for page in pages for item in page["items"]]
    assert found == [(0, "node03"), (0, "node04"), (1, "node03"), (1, "node04")]
    one = pages_of(lambda bookmark: federation.auditor1.evaluate(*call, "node04", -1, 1, bookmark))
    assert [item["iteration"] for page in one for item in page["items"]] == [0, 1]
    for bookmark in ("result~other~0000000000~node03", "share~fraud-2026~0000000000~node03", "x"):
        assert federation.auditor1.code(*call, "", -1, 1, bookmark) == "BAD_ARGUMENT"


def test_a_node_that_skipped_iterations_is_found_behind_the_gaps(federation, monkeypatch):
    """A page ends after so many keys without a record, and its bookmark leads on."""
    monkeypatch.setattr("chaincode.common.pages.MAX_SCAN", 1)
    federation.play(0)
    call = (EXECUTION, "ArtifactsOf", federation.process, "Org2MSP", "", -1, 1)
    pages = pages_of(lambda bookmark: federation.auditor1.evaluate(*call, bookmark))
    assert [item["node"] for page in pages for item in page["items"]] == ["node03", "node04"]


def test_a_page_holds_as_many_records_as_its_bytes_allow_and_one_at_least(federation, monkeypatch):
    federation.play(0)
    monkeypatch.setattr("chaincode.common.pages.MAX_BYTES", 1)
    for function, *arguments in (("Artifacts", -1), ("ArtifactsOf", "Org1MSP", "", -1)):
        pages = pages_of(lambda bookmark: ask(federation, function, *arguments, 50, bookmark))  # noqa: B023
        assert [len(page["items"]) for page in pages] == [1] * (4 if function == "Artifacts" else 2)


def test_a_result_is_checked_without_reading_a_tree_and_notes_what_was_taken_slot_by_slot(federation, node):
    for player in federation.players.values():
        player.open(0)
        player.share()
    arguments, options = node.call_complete()
    endorsed = node.member.endorse(*arguments, **options)
    assert "sharedtree" not in kinds_read(endorsed)
    foreign = [key for _, key in endorsed.reads if key.startswith("\0estimator") and "node01" not in key]
    assert foreign == []
    taken = [key for _, key in endorsed.writes if key.startswith("\0taken")]
    assert [key.split("\0")[3] for key in sorted(taken)] == ["node02", "node04"]


def test_a_lineage_asks_about_a_bounded_number_of_recipients(federation, monkeypatch):
    federation.play(0)
    for player in federation.players.values():
        player.open(1)
        player.share(estimators("node01", 0)[:1] if player.node in ("node02", "node04") else None)
    for player in federation.players.values():
        player.complete()
    whole = ask(federation, "Lineage", "node01/0000")
    assert [offer["sender"] for offer in whole["offers"]] == ["node01", "node02", "node04"]
    monkeypatch.setattr("chaincode.execution_record.lineage.MAX_READERS", 2)
    pages = pages_of(lambda bookmark: ask(federation, "Lineage", "node01/0000", 50, bookmark))
    assert [len(page["offers"]) for page in pages] == [1, 1, 1]
    assert [taker for page in pages for taker in page["taken"]] == whole["taken"]
    assert ("node03", 1) in {(taker["node"], taker["iteration"]) for taker in whole["taken"]}


def test_digests_are_told_without_trees_also_to_who_may_not_read_these(federation, node):
    node.open(0)
    node.share()
    call = (EXECUTION, "Digests", federation.process, ["node01/0000", "node01/0099"])
    found = federation.auditor3.evaluate(*call)
    assert found["estimators"] == [
        {"id": "node01/0000", "digest": str(estimators("node01", 0)[0].tree.digest)}
    ]
    assert found["missing"] == ["node01/0099"]
    assert kinds_read(federation.auditor3.endorse(*call)) == {"estimator"}


def test_an_image_lists_every_launch_of_a_task_that_committed_to_it(federation):
    player = federation.players["node01"]
    player.open(0)
    player.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "OOM", "too much")
    player.open(0)
    found = federation.auditor1.evaluate(EXECUTION, "ImageUses", *IMAGE)
    assert [(item["node"], item["iteration"], item["attempt"]) for item in found["items"]] == [
        ("node01", 0, 1),
        ("node01", 0, 2),
    ]
    assert federation.auditor1.evaluate(EXECUTION, "ImageUses", IMAGE[0], "9.9.9")["items"] == []
