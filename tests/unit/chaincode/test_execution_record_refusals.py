"""What the execution record refuses: keys and signatures (B), processes and authorisation (C)."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from support.memory.federation import (
    DIGESTS,
    EXECUTION,
    N_NEW,
    TWO_ROUNDS,
    Federation,
    changed,
    estimators,
    prepared,
)
from support.memory.ledger import KEY, VALID

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import ensemble_digest
from protocol.task.statement import Action
from protocol.trees.share import Share

DIGEST = Digest.of(b"another")
HOUR = timedelta(hours=1)
# The identity, a point of order four, one off the curve, and a second spelling; protocol tests have them all.
WEAK_KEYS = ("01" + 31 * "00", 32 * "00", "02" + 31 * "00", "ee" + 30 * "ff" + "7f")


@pytest.fixture
def federation():
    return prepared()()


@pytest.fixture
def node(federation):
    return federation.players["node01"]


@pytest.fixture
def opened(node):
    node.open(0)
    return node


@pytest.fixture
def shared(federation):
    """Everybody has opened and shared; node01 is about to complete."""
    for player in federation.players.values():
        player.open(0)
        player.share()
    return federation.players["node01"]


def tasks(federation, node="node01"):
    return federation.auditor1.evaluate(EXECUTION, "GetTask", federation.process, node, 0)


def test_b1_replay_of_a_share_is_idempotent(federation, opened):
    opened.share()
    arguments, options = opened.call_share()
    events = len(federation.events)
    endorsed = opened.member.endorse(*arguments, **options)
    assert endorsed.json["replayed"] is True
    assert not endorsed.writes
    assert endorsed.event is None
    federation.commit([endorsed])
    assert len(federation.events) == events


def test_b1_replay_of_a_result_is_idempotent_even_when_the_process_has_ended(federation, shared):
    result = shared.result()
    shared.complete(result)
    for admin in (federation.admin1, federation.admin2):
        admin.submit("orchestration", "Abort", federation.process, "over")
    arguments, options = shared.call_complete(result)
    endorsed = shared.member.endorse(*arguments, **options)
    assert endorsed.json["replayed"] is True
    assert not endorsed.writes


def test_b1_a_second_different_share_of_a_task_is_refused(opened):
    opened.share()
    assert opened.share_code(estimators("node01", 0)[:3]) == "LIFECYCLE_TRANSITION"


def test_b1_a_second_different_result_of_a_task_is_refused(shared):
    result = shared.result()
    shared.complete(result)
    other = shared.result(slots=result.slots, metrics={"auc": "0.99"})
    assert shared.complete_code(other) == "LIFECYCLE_TRANSITION"


def test_b3_signed_by_another_tasks_key_is_refused(federation, opened):
    other = federation.players["node02"]
    other.open(0)
    assert opened.share_code(key=other.key) == "SIGNATURE_INVALID"


def test_b4_signed_by_an_old_key_after_a_relaunch_is_refused(federation, opened):
    old = opened.key
    opened.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "KILLED", "the host went down")
    opened.open(0)
    assert opened.share_code(key=old) == "SIGNATURE_INVALID"
    assert opened.share()["replayed"] is False


def test_b5_signed_by_the_organisations_certificate_is_refused(opened):
    arguments, options = opened.call_share()
    signature = KEY.sign(b"whatever the certificate signs", ec.ECDSA(hashes.SHA256()))
    assert opened.member.code(*arguments[:-1], signature.hex(), **options) == "SIGNATURE_INPUT"
    assert opened.member.code(*arguments[:-1], signature[:64].hex(), **options) == "SIGNATURE_INVALID"


def test_b7_another_encoding_of_the_same_result_is_refused(shared):
    raw = shared.result().to_bytes()
    for spelling in (b" " + raw, raw + b"\n", raw.replace(b'":', b'": ', 1)):
        arguments, options = shared.signed("Complete", spelling)
        assert shared.member.code(*arguments, **options) == "RECORD_NOT_CANONICAL"


def test_b7_a_signature_over_other_content_is_refused(opened):
    arguments, options = opened.call_share()
    other = Share(estimators("node01", 0)[:1]).to_bytes()
    assert opened.member.code(*arguments, transient={"share": other}) == "PAYLOAD_DIGEST"
    moved = (*arguments[:5], str(Digest.of(other)), arguments[-1])
    assert opened.member.code(*moved, transient={"share": other}) == "SIGNATURE_INVALID"
    assert opened.member.code(*arguments) == "PAYLOAD_MISSING"
    assert opened.member.code(*arguments, "AQAA", **options) == "PAYLOAD_MISSING"
    assert opened.member.code(*arguments, "not base64!") == "PAYLOAD_MISSING"


def test_a_result_signed_for_the_other_action_is_refused(shared):
    assert shared.complete_code(action=Action.SHARE) == "SIGNATURE_INVALID"
    arguments, options = shared.call_complete()
    upper = (*arguments[:-1], arguments[-1].upper())
    assert shared.member.code(*upper, **options) == "SIGNATURE_INPUT"


@pytest.mark.parametrize("raw", WEAK_KEYS)
def test_b12_weak_public_keys_are_refused(node, raw):
    assert node.member.code(*node.call_open(0, public_key=f"ed25519:{raw}")) == "KEY_WEAK"


def test_b12_a_public_key_serves_one_task(federation, opened):
    """Also where one holder of the key opens the tasks of two nodes with it."""
    other, used = federation.players["node02"], opened.key
    assert other.member.code(*other.call_open(0, key=used)) == "KEY_USED"
    opened.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "KILLED", "")
    assert opened.member.code(*opened.call_open(0, key=used)) == "KEY_USED"


def test_h13_a_public_key_that_somebody_else_made_opens_no_task(federation, node):
    """Whoever sees a key on its way to the ledger can neither use it nor have its owner refused."""
    call, thief = node.call_open(0), federation.players["node02"]
    stolen = str(node.key.verify_key)
    assert thief.member.code(*thief.call_open(0, public_key=stolen)) == "SIGNATURE_INVALID"
    copied = (*thief.call_open(0, public_key=stolen)[:-2], *call[-2:])
    assert thief.member.code(*copied) == "SIGNATURE_INVALID"
    assert node.member.submit(*call)["state"] == "open"


@pytest.mark.parametrize(
    "other",
    [{"node": "node02"}, {"iteration": 1}, {"organisation": "Org2MSP"}],
    ids=lambda other: next(iter(other)),
)
def test_h13_a_proof_made_for_another_task_node_or_organisation_is_refused(node, other):
    *call, _, profile = node.call_open(0)
    assert node.member.code(*call, node.proof(call[-1], **other).hex(), profile) == "SIGNATURE_INVALID"


def test_h13_a_proof_is_of_the_whole_opening_and_in_one_spelling(node):
    *call, opening, proof, profile = node.call_open(0)
    for field in ("data", "sandbox"):
        altered = opening | {field: DIGESTS[15]}
        assert node.member.code(*call, altered, proof, profile) == "SIGNATURE_INVALID"
    for spelling in (proof.upper(), proof[:-2], "", "0x" + proof):
        assert node.member.code(*call, opening, spelling, profile) == "SIGNATURE_INPUT"
    assert node.member.submit(*call, opening, proof, profile)["proof"] == proof


def test_b9_b10_an_abandoned_task_expires_and_its_key_with_it(federation, opened):
    late = federation.time + HOUR + timedelta(seconds=10)
    assert opened.share_code(time=late) == "TASK_EXPIRED"
    old = opened.key
    reopened = opened.open(0, time=late)
    assert (reopened["attempt"], reopened["after"]) == (2, "expired")
    assert opened.share_code(key=old, time=late) == "SIGNATURE_INVALID"


def test_expire_is_for_the_own_organisation_after_the_time(federation, opened):
    call = (EXECUTION, "Expire", federation.process, "node01", 0)
    late = federation.time + 2 * HOUR
    assert federation.admin1.code(*call) == "TASK_NOT_EXPIRED"
    assert federation.admin2.code(*call, time=late) == "ACCESS_ORGANISATION"
    assert federation.admin1.submit(*call, time=late)["state"] == "expired"
    assert federation.events[-1][1] == "TaskExpired"
    assert federation.admin1.code(*call, time=late) == "LIFECYCLE_TRANSITION"


def test_c1_an_organisation_outside_the_consortium_is_denied(federation, node):
    outsider = federation.nodes["node05"]
    call = list(node.call_open(0))
    assert outsider.code(*call) == "ACCESS_ORGANISATION"
    call[3] = "node05"
    assert outsider.code(*call) == "NODE_UNKNOWN"


def test_c2_a_member_writing_for_anothers_node_is_denied(federation, opened):
    arguments, options = opened.call_share()
    assert federation.nodes["node02"].code(*arguments, **options) == "ACCESS_NODE"
    assert federation.nodes["node03"].code(*arguments, **options) == "ACCESS_ORGANISATION"
    namesake = federation.member("node01", "Org2MSP", role="node", node="node01")
    assert namesake.code(*arguments, **options) == "ACCESS_ORGANISATION"
    for function in ("Fail", "Refuse"):
        last = "reason" if function == "Fail" else {}
        call = (EXECUTION, function, federation.process, "node01", 0, "CODE", last)
        assert namesake.code(*call) == "ACCESS_ORGANISATION"
        assert federation.nodes["node02"].code(*call) == "ACCESS_NODE"


@pytest.mark.parametrize("role", ["admin", "data-scientist", "auditor", "king", None])
def test_c16_a_certificate_without_the_nodes_role_is_denied(federation, opened, role):
    attributes = {"node": "node01"} | ({"role": role} if role else {})
    caller = federation.member("node01", "Org1MSP", **attributes)
    arguments, options = opened.call_share()
    assert caller.code(*arguments, **options) == "ACCESS_ROLE"


def test_c16_an_expired_certificate_is_denied(federation, opened):
    arguments, options = opened.call_share()
    later = federation.time + timedelta(days=4000)
    assert opened.member.code(*arguments, **options, time=later) == "ACCESS_EXPIRED"


def test_c5_results_for_unknown_tasks_and_processes_are_refused(federation, node):
    node.opening(0)
    assert node.share_code() == "TASK_UNKNOWN"
    call = list(node.call_open(0))
    call[2] = "other"
    assert node.member.code(*call) == "PROCESS_UNKNOWN"


def test_c5_c9_results_in_flight_when_the_process_is_closed_are_refused(federation, opened):
    for admin in (federation.admin1, federation.admin2):
        admin.submit("orchestration", "Abort", federation.process, "stop")
    assert opened.share_code() == "PROCESS_NOT_RUNNING"
    other = federation.players["node02"]
    assert other.member.code(*other.call_open(0)) == "PROCESS_NOT_RUNNING"


def test_c5_no_task_before_the_start():
    player = Federation(started=False).players["node01"]
    assert player.member.code(*player.call_open(0)) == "PROCESS_NOT_RUNNING"


@pytest.mark.parametrize("iteration", [1, 2, -1, 2**32, 2**63 - 1])
def test_c6_an_iteration_skipped_or_negative_is_refused(node, iteration):
    call = list(node.call_open(0))
    call[4] = iteration
    assert node.member.code(*call) in ("ITERATION_ORDER", "ITERATION_RANGE", "COUNTER_RANGE")


def test_c6_an_iteration_repeated_is_refused(federation, node):
    federation.play(0)
    assert node.member.code(*node.call_open(0)) == "ITERATION_ORDER"
    assert node.member.code(*node.call_open(1, state=DIGESTS[9])) == "STATE_MISMATCH"
    assert node.member.code(*node.call_open(1, state=None)) == "STATE_MISMATCH"


def test_c7_share_without_an_open_task_and_complete_before_share_are_refused(opened, federation):
    assert opened.complete_code(opened.result(slots=())) == "SHARE_REQUIRED"
    opened.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "OOM", "killed")
    assert opened.share_code() == "LIFECYCLE_TRANSITION"


def test_h20_a_sandbox_profile_that_is_not_the_one_committed_to_is_refused(federation):
    player = next(iter(federation.players.values()))
    *call, _ = player.call_open(0)
    assert player.member.code(*call, '{"network":"host"}') == "PAYLOAD_DIGEST"


def test_h20_a_task_that_commits_to_a_sandbox_and_hands_in_none_is_refused(node):
    """Else a forger commits to no container at all, and nobody can tell."""
    *call, _ = node.call_open(0)
    assert node.member.code(*call) == "BAD_ARGUMENT_COUNT"
    assert node.member.code(*call, "") == "PAYLOAD_DIGEST"
    for nothing in (b"no container at all", b""):
        *call, _ = node.call_open(0, sandbox=str(Digest.of(nothing)))
        assert node.member.code(*call, nothing.decode()) == "RECORD_VALUE"


def test_an_open_task_is_not_opened_again(opened):
    assert opened.member.code(*opened.call_open(0)) == "LIFECYCLE_TRANSITION"


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("image_id", "IMAGE_MISMATCH"),
        ("manifest_digest", "IMAGE_MISMATCH"),
        ("parameter_hash", "PARAMETERS_MISMATCH"),
        ("schema_digest", "SCHEMA_MISMATCH"),
        ("state", "STATE_MISMATCH"),
    ],
)
def test_a1_d24_a_task_must_commit_to_what_the_ledger_says(node, field, code):
    assert node.member.code(*node.call_open(0, **{field: DIGESTS[15]})) == code
    assert node.member.code(*node.call_open(0, **{field: "sha512:00"})) == "DIGEST_ALGORITHM"


def test_an_opening_has_exactly_its_fields(node):
    assert node.member.code(*node.call_open(0, extra=1)) == "RECORD_FIELDS"
    assert node.member.code(*node.call_open(0, version=2)) == "RECORD_VALUE"
    assert node.member.code(*node.call_open(0, version=True)) == "RECORD_VALUE"
    assert node.member.code(*node.call_open(0, public_key="")) == "KEY_TEXT"


def test_a1_a_refusal_is_evidence_that_stays(federation, node):
    call = (EXECUTION, "Refuse", federation.process, "node01", 0, "IMAGE_MISMATCH")
    evidence = {"expected": DIGESTS[2], "found": DIGESTS[3]}
    assert node.member.submit(*call, evidence)["state"] == "refused"
    assert federation.events[-1][1] == "TaskRefused"
    assert node.member.submit(*call, evidence)["attempt"] == 2
    assert node.open(0)["attempt"] == 3
    refused = federation.auditor2.evaluate(EXECUTION, "ListRefusals", federation.process)["items"]
    assert [(entry["attempt"], entry["evidence"]) for entry in refused] == [(1, evidence), (2, evidence)]
    assert node.member.submit(*call, evidence)["attempt"] == 3
    assert node.share_code() == "LIFECYCLE_TRANSITION"


def test_c6_a_refusal_is_of_the_iteration_that_comes_next(federation, node):
    def refuse(iteration):
        return (EXECUTION, "Refuse", federation.process, "node01", iteration, "IMAGE_MISMATCH", {})

    assert node.member.code(*refuse(1)) == "ITERATION_ORDER"
    federation.play(0)
    assert node.member.code(*refuse(0)) == "ITERATION_ORDER"
    assert node.member.submit(*refuse(1))["state"] == "refused"


@pytest.mark.parametrize(
    ("code", "evidence", "refused"),
    [
        ("lower", {}, "RECORD_VALUE"),
        ("", {}, "RECORD_VALUE"),
        ("A" * 65, {}, "RECORD_VALUE"),
        ("CODE", {"x": 0.5}, "RECORD_FLOAT"),
        ("CODE", {"x": "y" * 20_000}, "RECORD_SIZE"),
        ("CODE", [], "BAD_ARGUMENT"),
    ],
)
def test_evidence_of_no_form_is_refused(federation, node, code, evidence, refused):
    call = (EXECUTION, "Refuse", federation.process, "node01", 0, code, evidence)
    assert node.member.code(*call) == refused


def test_failure_is_recorded_with_its_cause(federation, opened):
    opened.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "OOM", "memory limit")
    found = tasks(federation)
    assert (found["state"], found["closed"]["code"], found["closed"]["reason"]) == (
        "failed",
        "OOM",
        "memory limit",
    )
    call = (EXECUTION, "Fail", federation.process, "node01", 0, "OOM", "again")
    assert opened.member.code(*call) == "LIFECYCLE_TRANSITION"


def test_h6_a_second_share_of_one_iteration_is_refused(federation, shared):
    """A sender that could rewrite its share would show each neighbour another, and break their results."""
    neighbour = federation.players["node02"]
    read = neighbour.call_complete()
    shared.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "EXIT", "")
    shared.open(0)
    first, *rest = shared.fitted()
    another = replace(first, tree=rest[0].tree)
    for offered in ((another, *rest), rest, (*rest, first), ()):
        assert shared.share_code(offered) == "SHARE_FIXED"
    arguments, options = read
    assert neighbour.member.submit(*arguments, **options)["replayed"] is False


def test_h6_the_same_share_of_a_later_launch_is_taken_and_leaves_the_first_as_it_was(federation, shared):
    key = ("execution-record", "\0share\0fraud-2026\0" + "0" * 10 + "\0node01\0")
    before, version = federation.state[key], federation.versions[key]
    shared.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "EXIT", "")
    shared.open(0)
    again = shared.share()
    assert (again["replayed"], again["created"]) == (False, [])
    assert again["recipients"] == ["node02", "node04"]
    _, name, announced = federation.events[-1]
    said = json.loads(announced)
    assert (name, said["offered"], said["created"]) == (
        "TaskShared",
        len(tasks(federation)["offered"]["estimators"]),
        0,
    )
    assert (federation.state[key], federation.versions[key]) == (before, version)
    found = tasks(federation)
    assert (found["attempt"], found["offered"]["attempt"]) == (2, 1)
    assert found["share"]["payload_digest"] == found["offered"]["signed"]["payload_digest"]
    assert shared.complete()["next_counter"] == N_NEW


def test_h6_launching_again_and_again_invalidates_no_neighbours_result(federation, shared):
    neighbour = federation.players["node02"]
    arguments, options = neighbour.call_complete()
    shared.member.submit(EXECUTION, "Fail", federation.process, "node01", 0, "EXIT", "")
    shared.open(0)
    repeated, more = shared.call_share()
    block = [shared.member.endorse(*repeated, **more), neighbour.member.endorse(*arguments, **options)]
    assert federation.commit(block) == [VALID, VALID]


def test_c6_results_announce_the_counters_that_follow(shared):
    good = shared.result()
    for changes in (
        {"first": 1},
        {"first": N_NEW},
        {"created": good.created[:-1]},
        {"created": (*good.created, good.created[0])},
    ):
        assert shared.complete_code(shared.result(slots=good.slots, **changes)) == "RESULT_CREATED"
    swapped = (good.created[1], good.created[0], *good.created[2:])
    refused = shared.complete_code(shared.result(slots=good.slots, created=swapped))
    assert refused == "ESTIMATOR_CONFLICT"


def test_results_take_what_was_offered(federation, shared):
    good = shared.result()
    first, second = good.slots
    stranger = EstimatorId("node03", 0)
    for slots in (
        (first,),
        (replace(first, sender="node03"), second),
        (replace(first, iteration=1), second),
        (replace(first, share=second.share), second),
        (replace(first, taken=(stranger,)), second),
        (replace(first, taken=(), refused=((stranger, "HOME_CHECK"),)), second),
    ):
        ordered = tuple(sorted(slots, key=lambda slot: slot.sender))
        result = replace(good, slots=ordered)
        assert shared.complete_code(result) == "RESULT_SLOT"


def test_a_slot_of_an_earlier_iteration_is_refused_in_a_synchronous_process(federation):
    federation.play(0)
    for player in federation.players.values():
        player.open(1)
        player.share()
    node = federation.players["node01"]
    old, _ = node.member.evaluate(EXECUTION, "Offers", federation.process, "node01", 0)["slots"]
    first, second = node.slots()
    stale = replace(first, iteration=0, share=Digest.parse(old["share"]), taken=())
    assert old["sender"] == first.sender
    assert node.complete_code(node.result(slots=(stale, second))) == "RESULT_SLOT"
    assert node.complete(node.result(slots=(first, second)))["replayed"] is False


def test_refused_offers_are_recorded(federation, shared):
    first, second = shared.slots()
    refused = tuple((estimator_id, "HOME_CHECK") for estimator_id in first.taken[:4])
    first = replace(first, taken=first.taken[4:], refused=refused)
    shared.complete(shared.result(slots=(first, second)))
    outcome = tasks(federation)["outcome"]
    assert [entry["reason"] for entry in outcome["slots"][0]["refused"]] == ["HOME_CHECK"] * 4


def test_ensembles_come_from_fit_get_and_before(federation, shared):
    good = shared.result()
    assert shared.complete_code(replace(good, ensemble_digest=DIGEST)) == "RESULT_ENSEMBLE"
    unknown = tuple(sorted((*good.ensemble, EstimatorId("node03", 0))))
    assert shared.complete_code(replace(good, ensemble=unknown)) == "RESULT_ENSEMBLE"
    members = dict(shared.after)
    members.popitem()
    smaller = replace(good, ensemble=tuple(members), ensemble_digest=ensemble_digest(list(members.items())))
    shared.after = members
    shared.complete(smaller)


def test_an_ensemble_beyond_n_max_is_refused():
    federation = Federation(changed("steps", 0, "parameters", "n_max", 10, base=TWO_ROUNDS))
    for player in federation.players.values():
        player.open(0)
        player.share()
    assert federation.players["node01"].complete_code() == "RESULT_ENSEMBLE"


def test_c7_a_node_without_neighbours_completes_without_sharing():
    federation = Federation(changed("topology", {"kind": "disconnected"}, base=TWO_ROUNDS))
    player = federation.players["node01"]
    player.open(0)
    assert player.complete(player.result(slots=()))["next_counter"] == N_NEW


def test_c11_a_neighbour_that_left_is_not_waited_for(federation):
    for name in ("node01", "node02", "node03"):
        federation.players[name].open(0)
        federation.players[name].share()
    player = federation.players["node01"]
    offers = player.member.evaluate(EXECUTION, "Offers", federation.process, "node01", 0)
    assert offers["missing"] == ["node04"]
    federation.admin2.submit("orchestration", "Leave", federation.process, "node04", 0)
    assert player.complete()["replayed"] is False


def test_an_asynchronous_round_may_leave_slots_unread_and_read_older_shares():
    federation = Federation(changed("steps", 0, "synchronous", False, base=TWO_ROUNDS))
    for player in federation.players.values():
        player.open(0)
        player.share()
    first = federation.players["node01"]
    old = first.slots()
    first.complete(first.result(slots=()))
    first.open(1)
    first.share()
    assert first.complete(first.result(slots=old[:1]))["replayed"] is False


def test_trees_are_for_the_consortium(federation, opened):
    opened.share()
    call = (EXECUTION, "Estimator", federation.process, "node01/0000")
    assert federation.auditor2.evaluate(*call)["id"] == "node01/0000"
    assert federation.auditor3.code(*call) == "ACCESS_ORGANISATION"
    many = (EXECUTION, "Estimators", federation.process, ["node01/0000"])
    assert federation.auditor3.code(*many) == "ACCESS_ORGANISATION"


def test_questions_about_nothing_have_codes(federation):
    ask = federation.auditor1.code
    process = federation.process
    assert ask(EXECUTION, "GetTask", process, "node01", 0) == "TASK_UNKNOWN"
    assert ask(EXECUTION, "LastResult", process, "node01") == "TASK_UNKNOWN"
    assert ask(EXECUTION, "Estimator", process, "node01/0000") == "ESTIMATOR_UNKNOWN"
    assert ask(EXECUTION, "Estimator", process, "node01/0") == "COUNTER_SYNTAX"
    assert ask(EXECUTION, "Lineage", process, "node01/0000") == "ESTIMATOR_UNKNOWN"
    assert ask(EXECUTION, "History", "secret", [process]) == "BAD_ARGUMENT"
    assert ask(EXECUTION, "History", "task", [process, "node01", "-1"]) == "COUNTER_SYNTAX"
    assert ask(EXECUTION, "Estimators", process, ["node01/0000"] * 1001) == "BAD_ARGUMENT"
    most = [f"node01/{number:04d}" for number in range(1000)]
    assert len(federation.auditor1.evaluate(EXECUTION, "Estimators", process, most)["missing"]) == 1000
    assert ask(EXECUTION, "Artifacts", process, -2) == "COUNTER_RANGE"
    assert ask(EXECUTION, "Artifacts", process, -1, 0) == "BAD_ARGUMENT"
    assert ask(EXECUTION, "Artifacts", process, 0, 5, "result~other~0000000000~node01") == "BAD_ARGUMENT"
