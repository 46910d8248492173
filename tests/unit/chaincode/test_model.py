"""Published models on the real contracts: what they are made of, and who may read them (C4, C14, C15)."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from support.memory.federation import (
    DIGESTS,
    EXECUTION,
    MODEL,
    TWO_ROUNDS,
    Federation,
    changed,
    estimators,
    played,
    prepared,
    tree_of,
)
from support.memory.ledger import RefusedError

from chaincode.shim import Context, Contract, submit
from protocol import canonical
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import FORMAT_LIMITS, Tree

STUMP = Tree.from_arrays([0, -1, -1], [0.5, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [0.0, 0.0, 1.0])


@pytest.fixture
def federation():
    return prepared(played)()


@pytest.fixture
def node(federation):
    return federation.players["node01"]


@pytest.fixture
def published(federation, node):
    node.publish()
    return federation


def get(federation, caller, **more):
    return caller.evaluate(MODEL, "Get", federation.process, "node01", **more)


def get_code(federation, caller, **more):
    return caller.code(MODEL, "Get", federation.process, "node01", **more)


def test_a_model_is_the_ensemble_its_last_round_signed(federation, node):
    record = node.publish()
    outcome = federation.auditor1.evaluate(EXECUTION, "GetTask", federation.process, "node01", 1)["outcome"]
    assert record["digest"] == outcome["ensemble_digest"]
    assert record["estimators"] == outcome["ensemble"]
    assert record["result"] == outcome["signed"]["payload_digest"]
    assert record["owner"] == "Org1MSP"
    chaincode, name, payload = federation.events[-1]
    assert (chaincode, name) == (MODEL, "ModelPublished")
    assert json.loads(payload)["estimators"] == len(record["estimators"])


def test_every_tree_of_a_model_can_be_read_and_verified(published):
    model = get(published, published.auditor2)
    entries, first = [], 0
    while True:
        page = published.auditor2.evaluate(MODEL, "Trees", published.process, "node01", first, 7)
        entries += page["items"]
        first += 7
        if first >= page["total"]:
            break
    trees = {
        EstimatorId.parse(entry["id"]): Tree.from_bytes(base64.b64decode(entry["tree"]), FORMAT_LIMITS).digest
        for entry in entries
    }
    assert [str(estimator_id) for estimator_id in trees] == [entry["id"] for entry in model["estimators"]]
    assert str(ensemble_digest(list(trees.items()))) == model["digest"]
    assert model["stored"]


def test_unshared_trees_are_stored_and_only_they(published, node):
    model = get(published, published.auditor1)
    expected = [f"node01/{counter:04d}" for counter in (*range(4, 10), *range(14, 20))]
    assert model["stored"] == expected
    stored = [key for space, key in published.state if space == MODEL and key.startswith("\0tree\0")]
    assert len(stored) == len(expected)


def test_a_model_whose_trees_were_all_shared_needs_no_payload(federation):
    other = federation.players["node03"]
    arguments, options = other.call_publish()
    assert not options
    assert other.member.submit(*arguments)["stored"] == []


def test_the_lineage_of_an_estimator_ends_in_models(published):
    published.players["node02"].publish()
    lineage = published.auditor1.evaluate(EXECUTION, "Lineage", published.process, "node01/0000")
    assert lineage["models"] == ["node01", "node02"]
    unshared = published.auditor1.evaluate(EXECUTION, "Lineage", published.process, "node01/0005")
    assert (unshared["shared"], unshared["models"], unshared["offers"]) == (False, ["node01"], [])


def test_c14_a_model_is_published_once(published, node):
    assert node.publish_code() == "MODEL_EXISTS"


def test_c14_not_before_the_last_iteration():
    federation = Federation()
    federation.play(0)
    assert federation.players["node01"].publish_code() == "MODEL_UNFINISHED"


def test_c14_not_without_any_completed_task():
    federation = Federation()
    call = (MODEL, "Publish", federation.process, "node01", [], DIGESTS[1], {})
    assert federation.nodes["node01"].code(*call) == "TASK_UNKNOWN"


def test_c14_not_after_the_process_was_aborted():
    federation = Federation()
    federation.play(0)
    for admin in (federation.admin1, federation.admin2):
        admin.submit("orchestration", "Abort", federation.process, "stop")
    assert federation.players["node01"].publish_code() == "PROCESS_NOT_RUNNING"


def test_a_model_may_follow_the_end_of_the_process(federation, node):
    federation.publish_all("node02", "node03", "node04")
    federation.scientist1.submit(MODEL, "PublishFor", federation.process, "node01")
    federation.scientist1.submit("orchestration", "Complete", federation.process)
    assert node.publish()["iteration"] == 1


def test_c14_unknown_missing_doubled_or_reordered_estimators_are_refused(node):
    ids = [str(estimator_id) for estimator_id in node.ensemble]
    for wrong in (
        [*ids, "node03/0999"],
        ids[:-1],
        [*ids, ids[-1]],
        ids[::-1],
        [],
        ["rubbish"],
    ):
        assert node.publish_code(estimators=wrong) == "MODEL_ESTIMATORS"


def test_c14_another_digest_is_refused(node):
    assert node.publish_code(digest=DIGESTS[3]) == "MODEL_DIGEST"


def test_trees_that_come_along_are_exactly_the_unshared_ones(node):
    unshared = [tree_of(estimator_id) for estimator_id in node.unshared()]
    other = [Estimator(unshared[0].id, STUMP), *unshared[1:]]
    shared = estimators("node01", 0)[0]
    assert node.publish_code(trees=unshared[1:]) == "MODEL_TREES"
    assert node.publish_code(trees=other) == "MODEL_TREES"
    assert node.publish_code(trees=unshared[::-1]) == "MODEL_TREES"
    assert node.publish_code(trees=[shared, *unshared]) == "SHARE_COUNT"
    arguments, _ = node.call_publish()
    assert node.member.code(*arguments) == "PAYLOAD_MISSING"
    assert node.member.code(*arguments, transient={"trees": b"\1\0\0"}) == "PAYLOAD_DIGEST"
    assert node.member.code(*arguments[:-1]) == "DIGEST_SYNTAX"


def test_d_cases_hold_for_trees_that_come_with_a_model(node):
    unshared = [tree_of(estimator_id) for estimator_id in node.unshared()]
    raw = bytearray(Share(tuple(unshared)).to_bytes())
    at = raw.index(unshared[0].tree.to_bytes())
    raw[at] = 9
    arguments, _ = node.call_publish()
    call = (*arguments[:-1], str(Digest.of(bytes(raw))))
    assert node.member.code(*call, transient={"trees": bytes(raw)}) == "TREE_VERSION"


@pytest.mark.parametrize(
    "metrics", [{"auc": 0.5}, {"auc": "nan"}, {"AUC": "0.5"}, {"auc": 2**60}, {f"m{i}": i for i in range(65)}]
)
def test_metrics_have_one_form(node, metrics):
    assert node.publish_code(metrics=metrics) == "RECORD_VALUE"


def test_c2_only_the_node_itself_publishes(federation, node):
    arguments, options = node.call_publish()
    assert federation.nodes["node02"].code(*arguments, **options) == "ACCESS_NODE"
    assert federation.nodes["node03"].code(*arguments, **options) == "ACCESS_ORGANISATION"
    assert federation.admin1.code(*arguments, **options) == "ACCESS_ROLE"
    call = (MODEL, "Publish", federation.process, "node99", [], DIGESTS[1], {})
    assert federation.nodes["node01"].code(*call) == "NODE_UNKNOWN"


def test_the_consortium_has_access_from_the_beginning(published):
    for caller in (published.auditor1, published.scientist2, published.nodes["node04"]):
        assert get(published, caller)["node"] == "node01"


def test_c4_reading_without_a_grant_is_denied(published):
    outsider = published.auditor3
    assert get_code(published, outsider) == "ACCESS_GRANT"
    for function in ("Trees", "Members"):
        assert outsider.code(MODEL, function, published.process, "node01") == "ACCESS_GRANT"


def test_a_grant_lets_an_outsider_read_model_and_trees(published):
    call = (MODEL, "Grant", published.process, "node01", "Org3MSP")
    published.scientist1.submit(*call)
    assert published.events[-1][1] == "AccessGranted"
    assert get(published, published.auditor3)["owner"] == "Org1MSP"
    page = published.auditor3.evaluate(MODEL, "Trees", published.process, "node01")
    assert len(page["items"]) == page["total"]
    # The grant is for the model, not for the process.
    denied = published.auditor3.code(EXECUTION, "Estimator", published.process, "node01/0000")
    assert denied == "ACCESS_ORGANISATION"


def test_c15_the_history_of_a_model_is_for_those_who_may_read_it(published):
    call = (MODEL, "History", published.process, "node01")
    (entry,) = published.auditor2.evaluate(*call)["items"]
    assert entry["value"] == get(published, published.auditor2)
    assert published.auditor3.code(*call) == "ACCESS_GRANT"


def test_c15_a_revoked_grant_is_denied_and_shown_in_history(published):
    published.admin1.submit(MODEL, "Grant", published.process, "node01", "Org3MSP")
    published.admin1.submit(MODEL, "Revoke", published.process, "node01", "Org3MSP")
    assert published.events[-1][1] == "AccessRevoked"
    assert get_code(published, published.auditor3) == "ACCESS_GRANT"
    history = published.auditor2.evaluate(MODEL, "AccessHistory", published.process, "node01")["items"]
    changes = [entry["value"]["change"] for entry in history]
    assert [(change["action"], change["organisation"]) for change in changes] == [
        ("revoke", "Org3MSP"),
        ("grant", "Org3MSP"),
        ("publish", "Org1MSP"),
    ]
    assert changes[0]["by"]["identity"] == "admin"
    page = published.auditor2.evaluate(MODEL, "AccessHistory", published.process, "node01", 2)
    assert (len(page["items"]), page["bookmark"]) == (2, "2")


def test_c15_a_member_of_the_consortium_can_be_shut_out_by_the_owner(published):
    published.admin1.submit(MODEL, "Revoke", published.process, "node01", "Org2MSP")
    assert get_code(published, published.auditor2) == "ACCESS_GRANT"
    assert get(published, published.auditor1)["owner"] == "Org1MSP"


def test_a_grant_ends_when_it_expires(published):
    call = (MODEL, "Grant", published.process, "node01", "Org3MSP", "2026-12-01T00:00:00Z")
    granted = published.admin1.submit(*call)
    assert granted["organisations"]["Org3MSP"]["expires"] == "2026-12-01T00:00:00.000000Z"
    assert get(published, published.auditor3)
    late = published.time + timedelta(days=20)
    assert get_code(published, published.auditor3, time=late) == "ACCESS_GRANT"


@pytest.mark.parametrize(
    "expires",
    ["tomorrow", "2026-12-01", "2026-12-01T00:00:00", "2026-12-01T00:00:00+02:00", "2020-01-01T00:00:00Z"],
)
def test_an_expiry_is_a_time_to_come_in_utc(published, expires):
    call = (MODEL, "Grant", published.process, "node01", "Org3MSP", expires)
    assert published.admin1.code(*call) == "GRANT_EXPIRY"


def test_only_the_owner_grants_and_revokes(published):
    for function in ("Grant", "Revoke"):
        call = (MODEL, function, published.process, "node01", "Org3MSP")
        assert published.admin2.code(*call) == "ACCESS_ORGANISATION"
        assert published.admin3.code(*call) == "ACCESS_ORGANISATION"
        assert published.auditor1.code(*call) == "ACCESS_ROLE"
        assert published.nodes["node01"].code(*call) == "ACCESS_ROLE"


def test_grants_that_mean_nothing_are_refused(published):
    process = published.process
    code = published.admin1.code
    assert code(MODEL, "Revoke", process, "node01", "Org3MSP") == "GRANT_UNKNOWN"
    assert code(MODEL, "Revoke", process, "node01", "Org1MSP") == "GRANT_OWNER"
    assert code(MODEL, "Grant", process, "node01", "Org1MSP") == "GRANT_OWNER"
    assert code(MODEL, "Grant", process, "node01", "no/name") == "NAME_SYNTAX"
    assert code(MODEL, "Grant", process, "node02", "Org3MSP") == "MODEL_UNKNOWN"


def test_models_are_listed_in_brief_by_process(published):
    published.players["node03"].publish()
    found = published.auditor3.evaluate(MODEL, "List")["items"]
    assert [(item["node"], item["owner"]) for item in found] == [("node01", "Org1MSP"), ("node03", "Org2MSP")]
    assert all("estimators" not in item for item in found)
    first = published.auditor3.evaluate(MODEL, "List", published.process, 1)
    second = published.auditor3.evaluate(MODEL, "List", published.process, 1, first["bookmark"])
    assert [item["node"] for item in second["items"]] == ["node03"]
    assert not published.auditor3.evaluate(MODEL, "List", "other")["items"]


def test_questions_about_nothing_have_codes(published):
    ask, process = published.auditor1.code, published.process
    assert ask(MODEL, "Get", process, "node02") == "MODEL_UNKNOWN"
    assert ask(MODEL, "Access", process, "node02") == "MODEL_UNKNOWN"
    assert ask(MODEL, "AccessHistory", process, "node02") == "MODEL_UNKNOWN"
    assert ask(MODEL, "Trees", process, "node01", -1) == "BAD_ARGUMENT"
    assert ask(MODEL, "Trees", process, "node01", 0, 1001) == "BAD_ARGUMENT"
    assert ask(MODEL, "Uses", process, "x") == "NAME_SYNTAX"


def test_e9_models_of_all_nodes_are_published_in_one_block(federation):
    block = []
    for player in federation.players.values():
        arguments, options = player.call_publish()
        block.append(player.member.endorse(*arguments, **options))
        assert not block[-1].ranges
    assert federation.commit(block) == ["VALID"] * 4


def begin(federation, process):
    """Start another process of the same nodes from node01's model and return node04, ready to open."""
    federation.start_from("node01", process)
    federation.process = process
    player = federation.players["node04"]
    player.ensemble, player.state = {}, None
    return player


def test_a_process_may_start_from_a_published_model(published):
    """New estimators are numbered after the model's, which may be kept and offered again."""
    player = begin(published, "second")
    player.open(0)
    highest = max(e.counter for e in published.players["node01"].ensemble if e.creator == "node04")
    reused = Estimator(EstimatorId("node04", highest), STUMP)
    assert player.share_code((reused,)) == "ESTIMATOR_CONFLICT"
    fresh = Estimator(EstimatorId("node04", highest + 1), STUMP)
    relayed = tree_of(EstimatorId("node01", 0))
    assert player.share((relayed, fresh))["created"] == [str(fresh.id)]


def test_h11_access_revoked_mid_run_stops_nobody(published):
    """The model is fixed at the start: Share and Complete ask nobody, and its trees stay readable for it."""
    first = published.process
    player = begin(published, "second")
    trees = (MODEL, "Trees", first, "node01", 0, 100)
    published.admin1.submit(MODEL, "Revoke", first, "node01", "Org2MSP")
    assert player.member.code(*trees) == "ACCESS_GRANT"
    assert len(player.member.evaluate(*trees, "second")["items"]) == 50
    player.open(0)
    relayed = tree_of(EstimatorId("node01", 0))
    arguments, options = player.call_share((relayed,))
    endorsed = player.member.endorse(*arguments, **options)
    assert endorsed.status == 200
    asked = {namespace.partition("$")[0] for namespace, _ in endorsed.reads}
    assert asked == {EXECUTION, "orchestration"}


def test_h11_who_had_no_access_at_the_start_or_asks_for_another_process_reads_nothing(published):
    first = published.process
    player = begin(published, "second")
    published.admin1.submit(MODEL, "Revoke", first, "node01", "Org2MSP")
    trees = (MODEL, "Trees", first, "node01", 0, 100)
    assert published.auditor3.code(*trees, "second") == "ACCESS_GRANT"
    assert player.member.code(*trees, first) == "MODEL_UNKNOWN"
    assert player.member.code(*trees, "absent") == "PROCESS_UNKNOWN"
    published.players["node02"].federation.process = first
    published.players["node02"].publish()
    published.admin1.submit(MODEL, "Revoke", first, "node02", "Org2MSP")
    assert player.member.code(MODEL, "Trees", first, "node02", 0, 100, "second") == "ACCESS_GRANT"
    for admin in (published.admin1, published.admin2):
        admin.submit("orchestration", "Abort", "second", "over")
    assert player.member.code(*trees, "second") == "ACCESS_GRANT"


def test_h11_a_process_starts_when_all_its_organisations_have_access(published):
    published.admin1.submit(MODEL, "Revoke", published.process, "node01", "Org2MSP")
    with pytest.raises(RefusedError, match="ACCESS_GRANT") as refused:
        published.start_from("node01", "second")
    assert "Org2MSP" in refused.value.sentence
    published.admin1.submit(MODEL, "Grant", published.process, "node01", "Org2MSP")
    assert published.admin1.submit("orchestration", "Start", "second")["status"] == "running"


class Orchestration(Contract):
    """Stands where orchestration stands, and has a model bound that the process did not agree on."""

    name = "orchestration"

    @submit
    def start(self, ctx: Context, process: str, model: dict[str, Any]) -> None:
        ctx.invoke(EXECUTION, ("BindInitial", process, json.dumps(model), '["Org1MSP"]'))


def test_a_model_with_another_digest_than_agreed_on_is_not_bound(published, monkeypatch):
    digest = get(published, published.auditor1)["digest"]
    model = {"process": published.process, "node": "node01", "digest": DIGESTS[4]}
    monkeypatch.setitem(published.contracts, "orchestration", Orchestration())
    assert published.admin1.code("orchestration", "start", "second", model) == "MODEL_DIGEST"
    bound = published.admin1.endorse("orchestration", "start", "second", model | {"digest": digest})
    assert bound.status == 200
    assert published.admin1.code(EXECUTION, "BindInitial", "second", model, ["Org1MSP"]) == "ACCESS_CHAINCODE"


def test_a_task_begins_with_the_model_that_was_bound_and_with_no_other(published):
    """Nothing rewrites what was bound, so it is altered by hand."""
    player = begin(published, "second")
    place = (EXECUTION, "\0initial\0second\0")
    record = json.loads(published.state[place])
    record["model"]["digest"] = DIGESTS[4]
    published.state[place] = canonical.encode(record)
    assert player.member.code(*player.call_open(0)) == "MODEL_DIGEST"
    del published.state[place], published.versions[place]
    assert player.member.code(*player.call_open(0)) == "MODEL_DIGEST"


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("digest", DIGESTS[4], "MODEL_DIGEST"),
        ("node", "node02", "MODEL_UNKNOWN"),
        ("process", "absent", "MODEL_UNKNOWN"),
    ],
)
def test_a_process_from_a_model_that_is_not_there_is_not_created(published, field, value, code):
    model = get(published, published.auditor1)
    initial = {"process": published.process, "node": "node01", "digest": model["digest"]} | {field: value}
    specification = changed("initial_model", initial, base=TWO_ROUNDS) | {"process": "second"}
    assert published.scientist1.code("orchestration", "Create", specification) == code


def test_c4_a_process_from_a_model_that_is_closed_to_its_proposer_is_not_created(published):
    model = get(published, published.auditor1)
    initial = {"process": published.process, "node": "node01", "digest": model["digest"]}
    specification = changed("initial_model", initial, base=TWO_ROUNDS) | {"process": "second"}
    published.admin1.submit(MODEL, "Revoke", published.process, "node01", "Org2MSP")
    assert published.scientist2.code("orchestration", "Create", specification) == "ACCESS_GRANT"
