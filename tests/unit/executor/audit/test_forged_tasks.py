"""Tasks that a majority with altered chaincode wrote: what it left out or made up is found by recomputing.

Each test lets the real chaincode run, changes what it would write, and has all endorse that.
"""

from datetime import timedelta

import pytest
from support.memory import blocks
from support.memory.audited import PROCESS, SPEC, SmallPlayer, small_tree
from support.memory.federation import EXECUTION, Federation
from support.memory.forgery import deleted, failures, record_of, rewritten, without_mark

from chaincode.execution_record import result_rules, share_rules
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.processes import TaskContext
from protocol.ledger.tasks import TaskRecord

NODES = {"node01": "Org1MSP", "node03": "Org2MSP"}
TASK = f"task~{PROCESS}~node01~0000000000"
RESULT = f"result~{PROCESS}~0000000000~node01"
NO_TASK = {"opening": None, "proof": None, "inputs_digest": None, "opened": None, "expires": None}


@pytest.fixture
def federation():
    made = blocks.record(Federation)(SPEC | {"nodes": NODES, "topology": {"kind": "full"}})
    made.players = {node: SmallPlayer(made, node) for node in NODES}
    return made


@pytest.fixture
def node(federation):
    return federation.players["node01"]


@pytest.fixture
def shared(federation, node):
    """Everybody has shared, nobody has completed."""
    for player in federation.players.values():
        player.open(0)
        player.share()
    return node


def opening(node, iteration=0):
    return node.member.endorse(*node.call_open(iteration))


def completion(node, **changes):
    arguments, options = node.call_complete(node.result(**changes))
    return node.member.endorse(*arguments, **options)


def committed(federation, endorsed):
    assert federation.commit([endorsed]) == ["VALID"]
    return failures(federation)


def test_honest_tasks_hold(federation):
    federation.play(0)
    federation.play(1)
    assert failures(federation) == []


def test_h1_a_completed_task_that_was_never_opened_is_found(federation, node):
    """State, share and result made up in one write, consistent with each other, and no key at all."""
    endorsed = opening(node)
    opened = record_of(endorsed, "task")["opened"]
    signed = {"payload_digest": "sha256:" + "5" * 64, "signature": "00", "by": opened}
    made_up = NO_TASK | {"state": "completed", "after": "shared", "share": signed, "result": signed}
    found = committed(federation, rewritten(endorsed, "task", made_up))
    assert ("tasks", f"{TASK} went from absent to completed") in found
    assert ("tasks", f"{TASK} is completed, and was never opened") in found
    assert ("task signatures", f"{TASK} has results, and no key") in found


def test_h1_a_completion_that_drops_the_commitment_is_found(federation, shared):
    found = committed(federation, rewritten(completion(shared), "task", NO_TASK))
    assert ("tasks", f"{TASK} was altered after it was opened") in found
    assert ("task signatures", f"{TASK} has results, and no key") in found


def test_h1_a_completion_that_puts_another_commitment_in_its_place_is_found(federation, shared):
    other = shared.commitment.to_dict() | {"data": "sha256:" + "5" * 64}
    found = committed(federation, rewritten(completion(shared), "task", {"opening": other}))
    assert ("tasks", f"{TASK} was altered after it was opened") in found


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ("parameter_hash", "committed to other parameters or features"),
        ("schema_digest", "committed to other parameters or features"),
        ("state", "begins with another state"),
        ("data", "has another inputs digest"),
    ],
)
def test_h1_an_opening_with_other_inputs_than_were_agreed_on_is_found(federation, node, part, what):
    opened = opening(node)
    said = record_of(opened, "task")["opening"]
    assert part in said
    forged = rewritten(opened, "task", {"opening": said | {part: "sha256:" + "ab" * 32}})
    task = TASK.replace("task~", "task ").replace("~0000000000", "/0").replace("~", "/")
    assert ("task inputs", f"{task} {what}") in committed(federation, forged)


def test_h1_a_first_attempt_that_says_it_is_a_later_one_is_found(federation, node):
    found = committed(federation, rewritten(opening(node), "task", {"attempt": 2, "after": "failed"}))
    assert ("tasks", f"{TASK} went from absent to open") in found


def test_h1_a_closed_task_that_is_opened_again_with_its_old_key_is_found(federation, node):
    before = node.open(0)
    node.member.submit(EXECUTION, "Fail", PROCESS, "node01", 0, "OOM", "killed")
    found = committed(federation, rewritten(opening(node), "task", before))
    assert ("tasks", f"{TASK} went from failed to open") in found


def test_c7_a_result_after_the_time_of_its_task_was_over_is_found(federation, shared, monkeypatch):
    monkeypatch.setattr(TaskRecord, "is_expired", lambda *said: False)
    arguments, options = shared.call_complete(shared.result())
    shared.member.submit(*arguments, **options, time=federation.time + timedelta(days=90))
    monkeypatch.undo()
    assert ("tasks", f"{TASK} went from shared to completed") in failures(federation)


def test_c7_a_completion_without_share_where_there_are_neighbours_is_found(federation, shared):
    found = committed(federation, rewritten(completion(shared), "task", {"share": None}))
    assert ("tasks", f"{TASK} completed without SHARE, and has neighbours") in found


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("result", ("results", f"{TASK} completed without its result")),
        ("progress", ("progress", f"{TASK} completed, and its node did not advance")),
        ("head", ("results", f"{RESULT} leaves the node somewhere else")),
        ("creation", ("results", f"{RESULT} does not announce node01/0000")),
        ("task", ("results", f"{RESULT} is not the one its task signed")),
    ],
)
def test_h1_a_completion_that_leaves_out_a_part_is_found(federation, shared, kind, what):
    assert what in committed(federation, deleted(completion(shared), kind))


@pytest.mark.parametrize("other", ["node01/0007", "node03/0001"])
def test_h1_created_trees_under_other_ids_or_in_anothers_name_are_found(federation, shared, other):
    """The key signed their digests alone: the ids follow from where the node stood."""
    endorsed = completion(shared)
    first, second = record_of(endorsed, "result")["created"]
    found = committed(federation, rewritten(endorsed, "result", {"created": [first | {"id": other}, second]}))
    assert ("ensembles", f"{RESULT} creates trees under other ids") in found


def test_h1_counters_that_leave_some_out_are_found(federation, shared):
    found = committed(federation, rewritten(completion(shared), "head", {"next_counter": 9}))
    assert ("results", f"{RESULT} leaves the node somewhere else") in found


def test_h1_a_node_that_others_roll_back_is_found(federation, node):
    federation.play(0)
    first = federation.state[EXECUTION, keys.head(PROCESS, "node01")]
    federation.play(1)
    closing = federation.auditor3.endorse(EXECUTION, "Challenge", PROCESS, "node01", 0, [], "why")
    closing.writes[EXECUTION, keys.head(PROCESS, "node01")] = first
    found = committed(federation, closing)
    assert ("results", f"head~{PROCESS}~node01 was moved without a result") in found


def test_h1_an_opening_that_its_organisation_did_not_vouch_for_is_found(federation, node):
    found = committed(federation, without_mark(opening(node)))
    assert found == [("tasks", f"Org1MSP did not vouch for {TASK}")]


def test_h1_a_refusal_that_its_organisation_did_not_vouch_for_is_found(federation, node):
    call = (EXECUTION, "Refuse", PROCESS, "node01", 0, "IMAGE_MISMATCH", {})
    found = committed(federation, without_mark(node.member.endorse(*call)))
    assert found == [("tasks", f"Org1MSP did not vouch for {TASK}")]


def test_an_open_task_that_is_refused_needs_no_second_mark(federation, node):
    node.open(0)
    node.member.submit(EXECUTION, "Refuse", PROCESS, "node01", 0, "IMAGE_MISMATCH", {})
    node.open(0)
    assert failures(federation) == []


def test_h1_a_refusal_without_its_evidence_is_found(federation, node):
    call = (EXECUTION, "Refuse", PROCESS, "node01", 0, "IMAGE_MISMATCH", {})
    found = committed(federation, deleted(node.member.endorse(*call), "refusal"))
    assert found == [("tasks", f"{TASK} was refused without evidence")]


def test_c5_a_task_of_a_process_that_does_not_run_is_found(federation, node, monkeypatch):
    for admin in (federation.admin1, federation.admin2):
        admin.submit("orchestration", "Abort", PROCESS, "over")
    monkeypatch.setattr(TaskContext, "check_running", lambda context: None)
    node.open(0)
    monkeypatch.undo()
    assert failures(federation) == [("tasks", f"task {PROCESS}/node01/0: process {PROCESS} is aborted")]


def test_c6_a_task_of_an_iteration_that_is_not_next_is_found(federation, node, monkeypatch):
    monkeypatch.setattr(TaskContext, "check_next", lambda context: None)
    node.open(1)
    monkeypatch.undo()
    what = f"task {PROCESS}/node01/1 was opened, and its node had to do 0"
    assert failures(federation) == [("tasks", what)]


def test_h11_a_synchronous_result_that_left_out_a_neighbour_is_found(federation, shared, monkeypatch):
    monkeypatch.setattr(result_rules, "_check_all_read", lambda *said: None)
    shared.slots = list
    found = committed(federation, completion(shared))
    assert found == [("slots read", f"{RESULT}: the slot of node03 was not read")]


def test_h15_a_share_with_a_counter_beyond_its_fit_is_found(federation, node, monkeypatch):
    monkeypatch.setattr(share_rules, "check_counters", lambda *said: None)
    node.open(0)
    node.share((small_tree(EstimatorId("node01", 7)),))
    share = f"share~{PROCESS}~0000000000~node01"
    assert failures(federation) == [
        ("relays", f"{share}: node01/0007: this FIT creates counters 0 to 1"),
    ]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("slot", ("slots", f"share~{PROCESS}~0000000000~node01 did not reach all of its recipients")),
        ("twin", ("estimators", f"sharedtree~{PROCESS}~node01~0000000000 is not listed beside its equals")),
    ],
)
def test_h11_a_share_that_leaves_out_a_part_is_found(federation, node, kind, what):
    node.open(0)
    arguments, options = node.call_share(node.fitted()[:1])
    assert committed(federation, deleted(node.member.endorse(*arguments, **options), kind)) == [what]


def test_h1_a_share_of_trees_that_nobody_put_on_the_ledger_is_found(federation, node):
    node.open(0)
    arguments, options = node.call_share(node.fitted()[:1])
    found = committed(federation, deleted(node.member.endorse(*arguments, **options), "sharedtree"))
    share = f"share~{PROCESS}~0000000000~node01"
    assert ("shares", f"{share} offers node01/0000, which nobody put on the ledger") in found


def test_c6_a_refusal_of_an_iteration_that_is_not_next_is_found(federation, node, monkeypatch):
    monkeypatch.setattr(TaskContext, "check_next", lambda context: None)
    node.member.submit(EXECUTION, "Refuse", PROCESS, "node01", 1, "IMAGE_MISMATCH", {})
    monkeypatch.undo()
    found = failures(federation)
    assert {claim for claim, _ in found} == {"tasks"}
    assert any(what.startswith(f"refusal~{PROCESS}~node01~") for _, what in found)


def test_h20_a_task_that_hands_in_no_sandbox_is_found(federation, node):
    """A majority whose chaincode takes an opening without the profile that it commits to."""
    endorsed = opening(node)
    *who, said = federation._made[endorsed.tx_id]
    federation._made[endorsed.tx_id] = (*who, said[:-1])
    what = f"task {PROCESS}/node01/0 came without the container's configuration that it committed to"
    assert committed(federation, endorsed) == [("sandboxes", what)]


def test_c16_a_task_that_an_administrator_wrote_is_found(federation, node):
    call = list(node.call_open(0))
    endorsed = node.member.endorse(*call)
    nonce, _, chaincode, said = federation._made[endorsed.tx_id]
    federation._made[endorsed.tx_id] = (nonce, federation.admin1.creator, chaincode, said)
    found = committed(federation, endorsed)
    assert ("tasks", f"{TASK} was written by admin") in found
    used = Digest.of(node.key.verify_key.raw)
    assert ("callers", f"taskkey~{used} was written in the role 'admin'") in found


def test_a_longer_time_for_a_task_than_agreed_is_found(federation, node):
    late = {"expires": "2999-01-01T00:00:00.000000Z"}
    found = committed(federation, rewritten(opening(node), "task", late))
    assert [claim for claim, _ in found] == ["tasks"]
    assert "has time until 2999" in found[0][1]
