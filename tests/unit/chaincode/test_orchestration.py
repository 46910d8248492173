"""The orchestration chaincode: agreement, life cycle, changes by consent, progress without conflicts."""

import json

import pytest
from support.memory.federation import EXECUTION, N_NEW, Federation
from support.memory.ledger import MVCC_CONFLICT, VALID
from support.memory.scenario import DIGESTS, IMAGE, NODES, SPECIFICATION, Channel, changed

from protocol.canonical import digest as record_digest

P = "fraud-2026"
ITERATIVE = SPECIFICATION["steps"][0]
SINGLE = {name: value for name, value in ITERATIVE.items() if name != "iterations"}
COMPOSITE = changed("steps", [SINGLE | {"name": "scale", "kind": "single"}, ITERATIVE])


@pytest.fixture
def channel():
    return Channel()


@pytest.fixture
def running():
    made = Channel()
    made.running()
    return made


def status(channel):
    return channel.auditor3.evaluate("orchestration", "Status", P)


def asks(channel):
    return channel.auditor3.evaluate("orchestration", "Asks", P)["items"]


def event(channel):
    _, name, payload = channel.events[-1]
    return name, json.loads(payload)


# Creation


def test_created_process_is_proposed_with_defaults_digest_and_provenance(channel):
    channel.register()
    record = channel.create()
    assert (record["version"], record["process"], record["status"]) == (1, P, "proposed")
    assert record["specification"]["task_seconds"] == 3600
    assert record["specification_digest"] == str(record_digest(record["specification"]))
    assert record["created"]["organisation"] == "Org1MSP"
    assert channel.auditor3.evaluate("orchestration", "Get", P) == record
    assert event(channel) == (
        "ProcessCreated",
        {"process": P, "specification_digest": record["specification_digest"], "organisation": "Org1MSP"},
    )


def test_process_id_is_unique(channel):
    channel.register()
    channel.create()
    assert channel.scientist1.code("orchestration", "Create", SPECIFICATION) == "PROCESS_EXISTS"
    assert (
        channel.scientist2.code("orchestration", "Create", changed("topology", {"kind": "full"}))
        == "PROCESS_EXISTS"
    )


def test_process_created_twice_in_one_block_is_written_once(channel):
    channel.register()
    pair = [
        member.endorse("orchestration", "Create", SPECIFICATION)
        for member in (channel.scientist1, channel.scientist2)
    ]
    assert channel.commit(pair) == [VALID, MVCC_CONFLICT]


def test_c10_unknown_image_is_refused_at_creation(channel):
    assert channel.scientist1.code("orchestration", "Create", SPECIFICATION) == "IMAGE_UNKNOWN"


def test_c10_retired_image_is_refused_at_creation(channel):
    channel.register()
    channel.scientist1.submit("image", "Retire", *IMAGE)
    assert channel.scientist1.code("orchestration", "Create", SPECIFICATION) == "IMAGE_RETIRED"


@pytest.mark.parametrize("accepted", [0, 1, 2])
def test_h7_an_outsider_that_retires_the_image_of_a_proposal_stops_nobody(channel, accepted):
    """What members accepted is pinned; whoever registered it has no say in what they do with it."""
    channel.scientist3.submit("image", "Register", *IMAGE, DIGESTS[1], DIGESTS[2], "registry.example/learner")
    channel.create()
    members = (channel.admin1, channel.admin2)
    for member in members[:accepted]:
        member.submit("orchestration", "Accept", P)
    channel.scientist3.submit("image", "Retire", *IMAGE, "spite")
    for member in members[accepted:]:
        member.submit("orchestration", "Accept", P)
    assert channel.admin1.submit("orchestration", "Start", P)["status"] == "running"
    image = channel.context("node01", 0)["image"]
    assert (image["version"], image["image_id"]) == (IMAGE[1], DIGESTS[2])


def test_h7_an_outsider_that_retires_a_version_while_votes_run_stops_no_move(channel):
    other = ("registry.example/learner",)
    channel.scientist3.submit("image", "Register", *IMAGE, DIGESTS[1], DIGESTS[2], *other)
    channel.create()
    for member in (channel.admin1, channel.admin2):
        member.submit("orchestration", "Accept", P)
    channel.admin1.submit("orchestration", "Start", P)
    channel.scientist3.submit("image", "Register", IMAGE[0], "1.0.1", DIGESTS[3], DIGESTS[4], *other)
    asked = channel.admin1.submit("orchestration", "UpdateImage", P, 0, "1.0.1")
    channel.scientist3.submit("image", "Retire", IMAGE[0], "1.0.1", "spite")
    assert channel.agree(channel.admin2, asked)["change"] == 0
    image = channel.context("node01", 0)["image"]
    assert (image["version"], image["image_id"], image["agreed"]) == ("1.0.1", DIGESTS[4], True)
    # What is retired before anybody asks is not asked for.
    assert channel.admin2.code("orchestration", "UpdateImage", P, 1, "1.0.1") == "IMAGE_RETIRED"


@pytest.mark.parametrize(
    ("specification", "code"),
    [
        (changed("organisations", []), "PROCESS_CONSORTIUM"),
        (changed("organisations", ["Org1MSP", "Org1MSP", "Org2MSP"]), "PROCESS_CONSORTIUM"),
        (changed("nodes", {}), "PROCESS_NODES"),
        (changed("steps", 0, "parameters", "n_share", 51), "PROCESS_VALUE"),
        (changed("steps", 0, "parameters", "n_new", 0), "PROCESS_VALUE"),
        (changed("steps", 0, "parameters", "n_max", 10**9), "PROCESS_VALUE"),
        (changed("steps", 0, "iterations", 0), "PROCESS_VALUE"),
        (changed("steps", 0, "parameters", "seed", 1.5), "PROCESS_VALUE"),
        (changed("steps", ...), "PROCESS_FIELDS"),
        (b'{"nodes":{"node01":"Org1MSP","node01":"Org2MSP"}}', "BAD_ARGUMENT"),
        (b"not json", "BAD_ARGUMENT"),
        (b"[" * 100_000, "BAD_ARGUMENT"),
        (b"[]", "BAD_ARGUMENT"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "BAD_ARGUMENT"),
    ],
)  # fmt: skip
def test_c10_specification_that_cannot_run_is_refused_at_creation(channel, specification, code):
    channel.register()
    assert channel.scientist1.code("orchestration", "Create", specification) == code


def test_c1_organisation_outside_the_consortium_cannot_propose(channel):
    channel.register()
    assert channel.scientist3.code("orchestration", "Create", SPECIFICATION) == "ACCESS_ORGANISATION"


@pytest.mark.parametrize("who", ["admin1", "auditor1"])
def test_c16_only_a_data_scientist_proposes(channel, who):
    channel.register()
    assert getattr(channel, who).code("orchestration", "Create", SPECIFICATION) == "ACCESS_ROLE"
    assert channel.nodes["node01"].code("orchestration", "Create", SPECIFICATION) == "ACCESS_ROLE"


# Pins


@pytest.mark.parametrize(
    "image",
    [
        {},
        {"image_id": None, "manifest_digest": None},
        {"image_id": DIGESTS[9], "manifest_digest": DIGESTS[1]},
        {"image_id": DIGESTS[2], "manifest_digest": DIGESTS[9]},
        {"image_id": DIGESTS[1], "manifest_digest": DIGESTS[2]},
    ],
)
def test_t9_a_process_without_the_registered_digests_of_its_image_is_refused(channel, image):
    channel.register()
    named = {"name": IMAGE[0], "version": IMAGE[1], **image}
    assert (
        channel.scientist1.code("orchestration", "Create", changed("steps", 0, "image", named)) == "IMAGE_PIN"
    )


def test_t9_a_new_process_of_version_1_is_refused_because_it_has_no_pins(channel):
    channel.register()
    first = changed("version", 1)
    del first["estimator_format"]
    first["steps"] = [ITERATIVE | {"image": {"name": IMAGE[0], "version": IMAGE[1]}}]
    assert channel.scientist1.code("orchestration", "Create", first) == "PROCESS_VALUE"


def test_t9_a_task_runs_what_was_pinned(running):
    image = running.context("node01", 0)["image"]
    pinned = SPECIFICATION["steps"][0]["image"]
    assert {name: image[name] for name in pinned} == pinned


# Acceptance and start


def test_process_runs_only_after_every_organisation_accepted(channel):
    channel.register()
    channel.create()
    assert channel.admin1.code("orchestration", "Start", P) == "PROCESS_UNACCEPTED"
    channel.admin1.submit("orchestration", "Accept", P)
    assert event(channel) == (
        "ProcessAccepted",
        {"process": P, "organisation": "Org1MSP", "missing": ["Org2MSP"]},
    )
    assert channel.admin1.code("orchestration", "Start", P) == "PROCESS_UNACCEPTED"
    channel.scientist2.submit("orchestration", "Accept", P)
    record = channel.scientist2.submit("orchestration", "Start", P)
    assert (record["status"], sorted(record["accepted"])) == ("running", ["Org1MSP", "Org2MSP"])
    assert record["accepted"]["Org2MSP"]["identity"] == "data-scientist"
    assert event(channel) == ("ProcessStarted", {"process": P})


def test_organisation_accepts_once_and_exactly_what_it_has_read(channel):
    channel.register()
    digest = channel.create()["specification_digest"]
    assert channel.admin1.code("orchestration", "Accept", P, DIGESTS[0]) == "PROCESS_DIGEST"
    channel.admin1.submit("orchestration", "Accept", P, digest)
    assert channel.scientist1.code("orchestration", "Accept", P) == "PROCESS_ACCEPTED"


def test_c1_organisation_outside_the_consortium_cannot_accept_start_change_or_end(running):
    for function, *arguments in (
        ("Accept",),
        ("Start",),
        ("Complete",),
        ("Abort", "because"),
        ("ChangeTopology", 1, {"kind": "full"}),
        ("UpdateImage", 1, "1.0.1"),
        ("Join", "node05", "Org3MSP", 1),
        ("Join", "node07", "Org1MSP", 1),
        ("Leave", "node01", 0),
    ):
        assert running.scientist3.code("orchestration", function, P, *arguments) == "ACCESS_ORGANISATION"


def test_auditor_reads_and_never_writes(running):
    for function in ("Get", "Status", "History", "ModelContext"):
        assert running.auditor1.evaluate("orchestration", function, P)
    for function, *arguments in (
        ("Accept",),
        ("Start",),
        ("Complete",),
        ("Abort", "x"),
        ("ChangeTopology", 1, {"kind": "full"}),
        ("UpdateImage", 1, "2"),
        ("Join", "node07", "Org1MSP", 1),
        ("Leave", "node01", 0),
        ("Advance", "node01", 0),
    ):
        assert running.auditor1.code("orchestration", function, P, *arguments) == "ACCESS_ROLE"


@pytest.mark.parametrize("function", ["Accept", "Start"])
def test_process_is_accepted_and_started_once(running, function):
    assert running.admin1.code("orchestration", function, P) == "LIFECYCLE_TRANSITION"


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((name, ()) for name in ("Get", "Status", "History", "ModelContext", "Accept", "Start", "Complete")),
        ("Abort", ("x",)),
        ("TaskContext", ("node01", 0)),
        ("Join", ("node01", "Org1MSP", 1)),
        ("Leave", ("node01", 0)),
        ("ChangeTopology", (1, {"kind": "full"})),
        ("UpdateImage", (1, "2")),
    ],
)
def test_c5_unknown_process_is_refused(channel, function, arguments):
    assert channel.admin1.code("orchestration", function, "nothing", *arguments) == "PROCESS_UNKNOWN"


# What the other chaincodes read


def test_task_context_has_all_that_a_task_is_checked_against(running):
    found = running.context("node02", 1)
    parameters = found.pop("parameters")
    assert found == {
        "process": P,
        "status": "running",
        "node": "node02",
        "organisation": "Org1MSP",
        "iteration": 1,
        "iterations": 4,
        "next": 0,
        "step": {"name": "train", "kind": "iterative", "first": 0, "iterations": 4, "opened": True},
        "synchronous": True,
        "active": True,
        "neighbours": ["node01", "node03"],
        "image": {
            "name": IMAGE[0],
            "version": IMAGE[1],
            "image_id": DIGESTS[2],
            "manifest_digest": DIGESTS[1],
            "agreed": True,
        },
        "parameters_digest": str(record_digest(parameters)),
        "limits": {"n_features": 30, "max_internal": 255, "max_depth": 64},
        "schema_digest": DIGESTS[5],
        "task_seconds": 3600,
        "consortium": ["Org1MSP", "Org2MSP"],
        "collection": None,
    }
    assert (parameters["n_new"], parameters["seed"], parameters["synchronous"]) == (10, 42, True)


@pytest.mark.parametrize(
    ("node", "iteration", "code"),
    [
        ("node09", 0, "NODE_UNKNOWN"),
        ("NODE01", 0, "NODE_UNKNOWN"),
        ("node01", 4, "ITERATION_RANGE"),
        ("node01", -1, "ITERATION_RANGE"),
    ],
)
def test_c6_task_context_outside_the_process_is_refused(running, node, iteration, code):
    assert running.admin1.code("orchestration", "TaskContext", P, node, iteration) == code


def test_model_context_names_consortium_nodes_and_status(running):
    assert running.admin2.evaluate("orchestration", "ModelContext", P) == {
        "process": P,
        "status": "running",
        "consortium": ["Org1MSP", "Org2MSP"],
        "nodes": NODES,
        "iterations": 4,
        "collection": None,
        "description": "",
        "access": "owner",
        "licence": None,
    }


# Progress


def test_c2_client_cannot_advance_directly_or_through_another_chaincode(running):
    node = running.nodes["node01"]
    assert node.code("orchestration", "Advance", P, "node01", 0) == "ACCESS_CHAINCODE"
    assert node.code("relay", "Complete", P, "node01", 0) == "ACCESS_CHAINCODE"
    running.advance("node01", 0)


def test_c2_a_node_advances_itself_and_no_other(running):
    complete = ("execution-record", "Complete", P)
    assert running.nodes["node02"].code(*complete, "node01", 0) == "ACCESS_NODE"
    assert running.nodes["node03"].code(*complete, "node01", 0) == "ACCESS_ORGANISATION"
    impostor = running.member("node01", "Org2MSP", role="node", node="node01")
    assert impostor.code(*complete, "node01", 0) == "ACCESS_ORGANISATION"
    assert running.admin1.code(*complete, "node01", 0) == "ACCESS_ROLE"
    assert running.member("node01", "Org1MSP", role="node").code(*complete, "node01", 0) == "NAME_LENGTH"


def test_c6_iterations_skipped_repeated_or_negative_are_refused(running):
    complete = ("execution-record", "Complete", P, "node01")
    node = running.nodes["node01"]
    assert node.code(*complete, 1) == "ITERATION_ORDER"
    running.advance("node01", 0)
    assert node.code(*complete, 0) == "ITERATION_ORDER"
    assert node.code(*complete, 2) == "ITERATION_ORDER"
    assert node.code(*complete, -1) == "COUNTER_RANGE"
    assert running.context("node01", 1)["next"] == 1


def test_c5_result_for_a_process_that_does_not_run_is_refused(channel):
    channel.register()
    channel.create()
    complete = ("execution-record", "Complete", P, "node01", 0)
    assert channel.nodes["node01"].code(*complete) == "PROCESS_NOT_RUNNING"
    channel.admin1.submit("orchestration", "Abort", P, "second thoughts")
    assert channel.nodes["node01"].code(*complete) == "PROCESS_NOT_RUNNING"


def test_e9_all_nodes_advance_in_one_block_without_conflict():
    nodes = {f"node{number:02d}": f"Org{number % 2 + 1}MSP" for number in range(20)}
    channel = Channel()
    channel.running(changed("nodes", nodes))
    for iteration in range(4):
        block = [
            channel.member(node, organisation, role="node", node=node).endorse(
                "execution-record", "Complete", P, node, iteration
            )
            for node, organisation in nodes.items()
        ]
        assert channel.commit(block) == [VALID] * 20
    assert status(channel)["iteration"] is None


def test_c9_result_in_flight_when_the_process_is_closed_does_not_count(running):
    running.admin1.submit("orchestration", "Abort", P, "stop")
    result = running.nodes["node01"].endorse("execution-record", "Complete", P, "node01", 0)
    abort = running.admin2.endorse("orchestration", "Abort", P, "stop")
    assert running.commit([abort, result]) == [VALID, MVCC_CONFLICT]
    assert [node["completed"] for node in status(running)["nodes"]] == [None] * 4


def test_status_shows_each_nodes_progress_and_the_current_iteration(running):
    for node in NODES:
        running.advance(node, 0)
    running.advance("node03", 1)
    found = status(running)
    assert (found["status"], found["iteration"], found["iterations"]) == ("running", 1, 4)
    assert [(node["node"], node["completed"], node["next"]) for node in found["nodes"]] == [
        ("node01", 0, 1),
        ("node02", 0, 1),
        ("node03", 1, 2),
        ("node04", 0, 1),
    ]


def finish(channel, nodes=NODES):
    for iteration in range(4):
        for node in nodes:
            channel.advance(node, iteration)


def test_process_is_completed_once_every_active_node_is_done(running):
    finish(running, ["node01", "node02", "node03"])
    assert running.admin1.code("orchestration", "Complete", P) == "PROCESS_UNFINISHED"
    finish(running, ["node04"])
    record = running.nodes["node03"].submit("orchestration", "Complete", P)
    assert record["status"] == "completed"
    assert event(running) == ("ProcessCompleted", {"process": P})
    assert running.admin1.code("orchestration", "Complete", P) == "LIFECYCLE_TRANSITION"
    assert running.admin1.code("orchestration", "Abort", P, "too late") == "LIFECYCLE_TRANSITION"
    assert (
        running.nodes["node01"].code("execution-record", "Complete", P, "node01", 4) == "PROCESS_NOT_RUNNING"
    )


def test_aborted_process_keeps_who_and_why(running):
    running.admin1.submit("orchestration", "Abort", P, "no longer needed")
    answer = running.admin2.submit("orchestration", "Abort", P, "data breach")
    assert (answer["status"], sorted(answer["voted"])) == ("aborted", ["Org1MSP", "Org2MSP"])
    record = running.auditor1.evaluate("orchestration", "Get", P)
    assert (record["status"], record["ended"]["reason"]) == ("aborted", "data breach")
    assert record["ended"]["organisation"] == "Org2MSP"
    assert running.admin2.code("orchestration", "Abort", P, "x" * 1001) == "IMAGE_TEXT"


# Changes


def test_c11_organisation_leaves_mid_round_and_nobody_waits_for_it(running):
    running.advance("node01", 0)
    change = running.nodes["node02"].submit("orchestration", "Leave", P, "node02", 0, "disk broken")
    assert (change["change"], change["kind"], change["iteration"]) == (0, "leave", 0)
    assert event(running)[0] == "ProcessChanged"
    assert running.context("node03", 0)["neighbours"] == ["node01", "node04"]
    assert running.context("node02", 0)["active"] is False
    complete = ("execution-record", "Complete", P, "node02", 0)
    assert running.nodes["node02"].code(*complete) == "NODE_INACTIVE"
    assert running.nodes["node02"].code("orchestration", "Leave", P, "node02", 1) == "NODE_INACTIVE"
    finish_rest(running)
    assert running.admin1.submit("orchestration", "Complete", P)["status"] == "completed"


def finish_rest(channel):
    for node in status(channel)["nodes"]:
        for iteration in range(node["next"] if node["next"] is not None else 4, 4):
            channel.advance(node["node"], iteration)


def test_c11_result_in_flight_when_its_node_leaves_does_not_count(running):
    result = running.nodes["node02"].endorse("execution-record", "Complete", P, "node02", 0)
    leave = running.admin1.endorse("orchestration", "Leave", P, "node02", 0)
    assert running.commit([leave, result]) == [VALID, MVCC_CONFLICT]


def test_c11_node_that_wanted_to_leave_later_may_leave_sooner(running):
    running.admin1.submit("orchestration", "Leave", P, "node01", 3)
    assert running.admin1.code("orchestration", "Leave", P, "node01", 3) == "NODE_INACTIVE"
    assert running.admin1.code("orchestration", "Leave", P, "node01", 1) == "ITERATION_RANGE"
    running.admin1.submit("orchestration", "Leave", P, "node01", 0)
    assert not any(running.context("node01", iteration)["active"] for iteration in range(4))


def test_c13_node_cannot_leave_if_a_later_iteration_would_be_empty(running):
    for node in ("node01", "node02", "node03"):
        running.nodes[node].submit("orchestration", "Leave", P, node, 3)
    assert running.admin2.code("orchestration", "Leave", P, "node04", 1) == "NODE_LAST"


def test_c2_nobody_else_makes_a_node_leave(running):
    assert running.admin2.code("orchestration", "Leave", P, "node01", 0) == "ACCESS_ORGANISATION"
    assert running.nodes["node02"].code("orchestration", "Leave", P, "node01", 0) == "ACCESS_NODE"
    assert running.admin1.code("orchestration", "Leave", P, "node09", 0) == "NODE_UNKNOWN"


def test_node_cannot_leave_the_past_or_beyond_the_end(running):
    running.advance("node01", 0)
    assert running.admin1.code("orchestration", "Leave", P, "node01", 0) == "ITERATION_RANGE"
    assert running.admin1.code("orchestration", "Leave", P, "node01", 4) == "ITERATION_RANGE"
    assert running.admin1.code("orchestration", "Leave", P, "node01", -1) == "COUNTER_RANGE"


def test_c13_all_but_one_leave_and_the_last_one_finishes_alone(running):
    for node in ("node01", "node02", "node03"):
        member = running.nodes[node]
        member.submit("orchestration", "Leave", P, node, 1)
    assert running.context("node04", 0)["neighbours"] == ["node01", "node03"]
    assert running.context("node04", 1)["neighbours"] == []
    assert running.admin2.code("orchestration", "Leave", P, "node04", 1) == "NODE_LAST"
    for node in ("node01", "node02", "node03"):
        running.advance(node, 0)
    finish(running, ["node04"])
    assert running.admin2.submit("orchestration", "Complete", P)["status"] == "completed"


def test_c12_new_node_of_a_member_joins_mid_run_by_consent_of_all(running):
    running.advance("node01", 0)
    join = ("orchestration", "Join", P, "node06", "Org1MSP", 2)
    asked = running.admin1.submit(*join)
    assert (asked["change"], asked["missing"]) == (None, ["Org2MSP"])
    change = running.agree(running.scientist2, asked)
    assert (change["change"], change["agreed"]) == (0, ["Org1MSP", "Org2MSP"])
    assert running.context("node06", 1)["active"] is False
    found = running.context("node06", 2)
    assert (found["active"], found["next"], found["neighbours"]) == (True, 2, ["node01", "node04"])
    assert running.context("node01", 2)["neighbours"] == ["node02", "node06"]
    assert running.nodes["node06"].code("execution-record", "Complete", P, "node06", 0) == "NODE_INACTIVE"
    running.advance("node06", 2)


def test_c12_join_of_a_new_organisation_needs_everybody(running):
    join = ("orchestration", "Join", P, "node05", "Org3MSP", 2)
    assert running.scientist3.code(*join) == "ACCESS_ORGANISATION"
    asked = running.admin1.submit(*join)
    assert (asked["change"], asked["missing"]) == (None, ["Org2MSP", "Org3MSP"])
    assert asks(running) == [asked]
    assert running.admin1.code("orchestration", "TaskContext", P, "node05", 2) == "NODE_UNKNOWN"
    assert running.agree(running.admin3, asked)["change"] is None
    assert running.scientist3.code(*running.agreement(asked)) == "PROCESS_ACCEPTED"
    assert running.agree(running.admin2, asked)["change"] == 0
    assert asks(running) == []
    assert running.context("node05", 2)["consortium"] == ["Org1MSP", "Org2MSP", "Org3MSP"]
    assert running.context("node05", 2)["active"] is True


def test_c2_node_that_left_comes_back_only_by_its_own_organisation(running):
    running.admin1.submit("orchestration", "Leave", P, "node01", 1)
    assert running.admin2.code("orchestration", "Join", P, "node01", "Org1MSP", 3) == "ACCESS_ORGANISATION"
    assert running.admin1.submit("orchestration", "Join", P, "node01", "Org1MSP", 3)["change"] == 1


@pytest.mark.parametrize("iteration", [0, 1, 4])
def test_join_in_the_past_or_beyond_the_end_is_refused(running, iteration):
    running.advance("node03", 0)
    assert (
        running.admin1.code("orchestration", "Join", P, "node06", "Org1MSP", iteration) == "ITERATION_RANGE"
    )


def test_join_of_an_active_node_or_for_another_organisation_is_refused(running):
    assert running.admin1.code("orchestration", "Join", P, "node01", "Org1MSP", 2) == "NODE_ACTIVE"
    assert running.admin2.code("orchestration", "Join", P, "node01", "Org2MSP", 2) == "ACCESS_ORGANISATION"
    assert (
        running.scientist3.code("orchestration", "Join", P, "node06", "Org1MSP", 2) == "ACCESS_ORGANISATION"
    )
    assert running.admin1.code("orchestration", "Join", P, "Node06", "Org1MSP", 2) == "NAME_SYNTAX"


def test_c12_node_that_left_joins_again_and_goes_on_from_there(running):
    running.advance("node01", 0)
    running.admin1.submit("orchestration", "Leave", P, "node01", 1)
    running.admin1.submit("orchestration", "Join", P, "node01", "Org1MSP", 3)
    assert running.context("node01", 2)["active"] is False
    assert running.context("node01", 3)["next"] == 3
    assert running.nodes["node01"].code("execution-record", "Complete", P, "node01", 1) == "NODE_INACTIVE"
    running.advance("node01", 3)


def test_topology_changes_when_every_organisation_agreed_and_not_before(running):
    change = ("orchestration", "ChangeTopology", P, 2, {"kind": "full"})
    first = running.scientist1.submit(*change)
    assert (first["change"], first["asked"]) == (None, "Org1MSP")
    assert running.context("node01", 2)["neighbours"] == ["node02", "node04"]
    assert running.admin1.code(*running.agreement(first)) == "PROCESS_ACCEPTED"
    assert running.agree(running.admin2, first)["change"] == 0
    assert event(running)[1] == {
        "process": P,
        "asked": "Org1MSP",
        "number": 0,
        "kind": "topology",
        "iteration": 2,
        "organisation": "Org2MSP",
        "holds": True,
    }
    assert running.context("node01", 1)["neighbours"] == ["node02", "node04"]
    assert running.context("node01", 2)["neighbours"] == ["node02", "node03", "node04"]


@pytest.mark.parametrize(
    ("topology", "code"),
    [
        ({"kind": "star"}, "TOPOLOGY_KIND"),
        ({"kind": "explicit", "edges": [["node01", "node09"]]}, "TOPOLOGY_EDGE"),
        (b"[]", "BAD_ARGUMENT"),
    ],
)
def test_topology_that_does_not_fit_the_process_is_refused(running, topology, code):
    assert running.admin1.code("orchestration", "ChangeTopology", P, 2, topology) == code


def test_change_that_came_too_late_never_holds(running):
    change = ("orchestration", "ChangeTopology", P, 1, {"kind": "full"})
    asked = running.scientist1.submit(*change)
    running.advance("node04", 0)
    assert running.admin2.code(*running.agreement(asked)) == "ITERATION_RANGE"
    assert running.context("node01", 1)["neighbours"] == ["node02", "node04"]


def test_change_and_progress_in_one_block_are_never_both_valid(running):
    change = ("orchestration", "ChangeTopology", P, 1, {"kind": "full"})
    asked = running.scientist1.submit(*change)
    agreement = running.admin2.endorse(*running.agreement(asked))
    result = running.nodes["node01"].endorse("execution-record", "Complete", P, "node01", 0)
    assert running.commit([result, agreement]) == [VALID, MVCC_CONFLICT]


def test_image_version_changes_by_consent_and_must_be_registered(running):
    update = ("orchestration", "UpdateImage", P, 2, "1.0.1")
    assert running.admin1.code(*update) == "IMAGE_UNKNOWN"
    running.register(version="1.0.1")
    asked = running.admin1.submit(*update)
    assert asked["change"] is None
    assert running.context("node01", 2)["image"]["version"] == "1.0.0"
    running.scientist1.submit("image", "Retire", IMAGE[0], "1.0.1")
    assert running.admin1.code(*update) == "IMAGE_RETIRED"
    running.register(version="1.0.2")
    asked = running.admin1.submit("orchestration", "UpdateImage", P, 2, "1.0.2")
    assert running.agree(running.admin2, asked)["change"] == 0
    versions = [running.context("node01", iteration)["image"]["version"] for iteration in range(4)]
    assert versions == ["1.0.0", "1.0.0", "1.0.2", "1.0.2"]
    assert running.admin1.code("orchestration", "UpdateImage", P, 2, "latest") == "NAME_SYNTAX"


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("Join", ("node06", "Org1MSP", 1)),
        ("Leave", ("node01", 0)),
        ("ChangeTopology", (1, {"kind": "full"})),
        ("UpdateImage", (1, "1.0.1")),
    ],
)
def test_process_that_does_not_run_is_not_changed(channel, function, arguments):
    channel.register()
    channel.create()
    assert channel.admin1.code("orchestration", function, P, *arguments) == "LIFECYCLE_TRANSITION"


def test_composite_process_has_a_context_of_its_own_for_each_step(channel):
    channel.running(COMPOSITE)
    first, second = channel.context("node01", 0), channel.context("node01", 1)
    assert (first["step"]["name"], first["neighbours"]) == ("scale", [])
    assert (second["step"]["name"], second["neighbours"]) == ("train", ["node02", "node04"])
    assert first["parameters_digest"] != second["parameters_digest"]
    assert first["iterations"] == 5
    for iteration in range(5):
        assert channel.admin1.code("orchestration", "Complete", P) == "PROCESS_UNFINISHED"
        for node in NODES:
            assert channel.context(node, iteration)["next"] == iteration
            channel.advance(node, iteration)
    assert channel.admin1.submit("orchestration", "Complete", P)["status"] == "completed"


def test_composite_process_runs_a_single_step_and_then_an_iterative_one():
    federation = Federation(COMPOSITE)
    players = federation.players.values()
    for player in players:
        player.open(0)
        assert player.complete(player.result(slots=[]))["next_counter"] == N_NEW
    assert federation.auditor1.evaluate(EXECUTION, "Slots", P, "node01")["items"] == []
    for iteration in range(1, 5):
        assert status(federation)["iteration"] == iteration
        federation.play(iteration)
    shared = federation.auditor1.evaluate(EXECUTION, "Slots", P, "node01")["items"]
    assert {slot["sender"] for slot in shared} == {"node02", "node04"}
    federation.publish_all()
    federation.nodes["node01"].submit("orchestration", "Complete", P)
    assert status(federation)["status"] == "completed"


def test_process_has_at_most_a_thousand_nodes(channel):
    channel.running(changed("nodes", {f"node{number:04d}": "Org1MSP" for number in range(1000)}))
    assert channel.admin1.code("orchestration", "Join", P, "node06", "Org1MSP", 2) == "CHANGE_LIMIT"


# Reading


def test_list_shows_processes_page_by_page_and_by_status(channel):
    channel.register()
    for number in range(5):
        channel.create(changed("process", f"p{number}"))
    channel.admin1.submit("orchestration", "Abort", "p2", "no")
    first = channel.auditor1.evaluate("orchestration", "List", "", 3)
    assert ([item["process"] for item in first["items"]], first["bookmark"]) == (
        ["p2", "p0", "p1"],
        "brief~proposed~p3",
    )
    rest = channel.auditor1.evaluate("orchestration", "List", "", 3, first["bookmark"])
    assert ([item["process"] for item in rest["items"]], rest["bookmark"]) == (["p3", "p4"], "")
    aborted = channel.auditor1.evaluate("orchestration", "List", "aborted")
    assert [item["process"] for item in aborted["items"]] == ["p2"]
    assert channel.auditor1.code("orchestration", "List", "finished") == "LIFECYCLE_STATE"


def test_e19_history_has_every_version_page_by_page(running):
    pages, bookmark = [], ""
    while not pages or bookmark:
        answer = running.auditor1.evaluate("orchestration", "History", P, 2, bookmark)
        pages.append([item["value"]["status"] for item in answer["items"]])
        bookmark = answer["bookmark"]
    assert pages == [["running", "proposed"]]
    assert running.auditor1.code("orchestration", "History", P, 3, "-1") == "BAD_ARGUMENT"


CALLS = [
    ("scientist1", "Create", changed("process", "other")),
    ("admin1", "Abort", P, "x"),
    ("admin1", "Join", P, "node06", "Org1MSP", 2),
    ("admin1", "Leave", P, "node01", 1),
    ("admin1", "ChangeTopology", P, 2, {"kind": "full"}),
    ("admin1", "UpdateImage", P, 2, "1.0.0"),
    ("auditor1", "Asks", P),
    ("auditor1", "Changes", P),
    ("auditor1", "Get", P),
    ("auditor1", "List"),
    ("auditor1", "Status", P),
    ("auditor1", "History", P),
    ("auditor1", "TaskContext", P, "node01", 0),
    ("auditor1", "ModelContext", P),
    ("auditor1", "metadata"),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[1])
def test_e12_same_proposal_gives_the_same_bytes_on_every_peer(running, call):
    who, *arguments = call
    first, second = (getattr(running, who).endorse("orchestration", *arguments, tx_id="t") for _ in range(2))
    assert first.status == 200, first.message
    assert first.bytes == second.bytes
