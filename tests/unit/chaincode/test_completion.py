"""A process ends with the models of its nodes, and none of them can keep it from ending (C14, H10)."""

import pytest
from support.memory.federation import (
    MODEL,
    TWO_ROUNDS,
    Federation,
    changed,
    estimators,
    played,
    prepared,
)
from support.memory.ledger import Line, M

HERE = "orchestration"


@pytest.fixture
def federation():
    return prepared(played)()


def publish_for(federation, caller, node="node01"):
    return caller.submit(MODEL, "PublishFor", federation.process, node)


def complete_code(federation):
    return federation.admin2.code(HERE, "Complete", federation.process)


def test_h10_a_node_that_publishes_nothing_holds_up_nobody(federation):
    """node01 is done and silent: another organisation publishes what the ledger has, and the process ends."""
    federation.publish_all("node02", "node03", "node04")
    assert complete_code(federation) == "PROCESS_UNPUBLISHED"
    model = publish_for(federation, federation.admin2)
    outcome = federation.auditor1.evaluate("execution-record", "LastResult", federation.process, "node01")
    assert (model["owner"], model["published"]["organisation"]) == ("Org1MSP", "Org2MSP")
    assert (model["digest"], model["estimators"]) == (outcome["ensemble_digest"], outcome["ensemble"])
    assert model["metrics"] == outcome["metrics"]
    ended = federation.admin2.submit(HERE, "Complete", federation.process)
    assert ended["status"] == "completed"


def test_h10_what_another_published_takes_nothing_from_the_node(federation):
    """The node brings its trees later, also after the end; who has access meanwhile keeps it."""
    process, node = federation.process, federation.players["node01"]
    unshared = [str(estimator_id) for estimator_id in node.unshared()]
    assert publish_for(federation, federation.admin2)["missing"] == unshared
    assert unshared
    assert federation.auditor2.code(MODEL, "Trees", process, "node01") == "MODEL_INCOMPLETE"
    federation.admin1.submit(MODEL, "Grant", process, "node01", "Org3MSP")
    federation.publish_all("node02", "node03", "node04")
    federation.admin2.submit(HERE, "Complete", process)
    model = node.publish()
    assert (model["stored"], model["metrics"], "missing" in model) == (unshared, {"auc": "0.98"}, False)
    assert len(federation.auditor3.evaluate(MODEL, "Trees", process, "node01")["items"]) == 50
    history = federation.auditor2.evaluate(MODEL, "History", process, "node01")["items"]
    assert [entry["value"].get("missing") for entry in history] == [None, unshared]


def test_c14_a_model_is_published_once_for_a_node_and_once_by_it(federation):
    node = federation.players["node01"]
    publish_for(federation, federation.admin2)
    again = (MODEL, "PublishFor", federation.process, "node01")
    assert federation.admin1.code(*again) == "MODEL_EXISTS"
    node.publish()
    assert node.publish_code() == "MODEL_EXISTS"
    assert federation.admin1.code(*again) == "MODEL_EXISTS"


def test_c14_the_own_publication_is_checked_after_anothers_too(federation):
    node = federation.players["node01"]
    publish_for(federation, federation.admin2)
    assert node.publish_code(estimators=[]) == "MODEL_ESTIMATORS"
    assert node.publish_code(trees=estimators("node01", 0)[4:5]) == "MODEL_TREES"
    assert federation.players["node02"].member.code(*node.call_publish()[0]) == "ACCESS_NODE"


def test_c1_nobody_outside_the_consortium_publishes_for_a_node(federation):
    call = (MODEL, "PublishFor", federation.process)
    assert federation.admin3.code(*call, "node01") == "ACCESS_ORGANISATION"
    assert federation.auditor2.code(*call, "node01") == "ACCESS_ROLE"
    assert federation.admin2.code(*call, "node99") == "NODE_UNKNOWN"


def test_c14_no_model_is_published_for_a_node_before_its_last_iteration():
    federation = Federation()
    call = (MODEL, "PublishFor", federation.process, "node01")
    assert federation.admin2.code(*call) == "TASK_UNKNOWN"
    federation.play(0)
    assert federation.admin2.code(*call) == "MODEL_UNFINISHED"


def test_c11_who_left_early_is_not_waited_for_and_publishes_by_itself():
    federation = Federation()
    process = federation.process
    federation.play(0)
    federation.nodes["node02"].submit(HERE, "Leave", process, "node02", 1)
    federation.play(1, ["node01", "node03", "node04"])
    federation.publish_all("node01", "node03", "node04")
    federation.admin1.submit(HERE, "Complete", process)
    assert federation.admin2.code(MODEL, "PublishFor", process, "node02") == "MODEL_UNFINISHED"
    assert federation.players["node02"].publish()["iteration"] == 0


def test_h5_nobody_asks_for_more_nodes_than_a_process_can_have(federation):
    ask = (MODEL, "Unpublished", federation.process)
    assert federation.admin3.code(*ask, [f"node{number}" for number in range(1001)]) == "BAD_ARGUMENT"
    assert federation.admin3.evaluate(*ask, ["node01", "node99"])["nodes"] == ["node01", "node99"]


def test_c14_no_process_starts_from_a_model_whose_trees_only_its_node_has(federation):
    digest = publish_for(federation, federation.admin2)["digest"]
    initial = {"process": federation.process, "node": "node01", "digest": digest}
    specification = changed("initial_model", initial, base=TWO_ROUNDS) | {"process": "second"}
    assert federation.scientist1.code(HERE, "Create", specification) == "MODEL_INCOMPLETE"
    federation.players["node01"].publish()
    assert federation.scientist1.submit(HERE, "Create", specification)["status"] == "proposed"


def test_e9_the_end_of_a_process_reads_models_by_their_keys_and_no_access(federation):
    """A range would conflict with every publication, and an access record with its owner's every grant."""
    federation.publish_all()
    endorsed = federation.admin2.endorse(HERE, "Complete", federation.process)
    assert not endorsed.ranges
    read = {key.split("\0")[1] for namespace, key in endorsed.reads if namespace == MODEL}
    assert read == {"model"}


def test_e9_the_end_of_a_process_loads_no_models(federation, monkeypatch):
    """A thousand of them may have a gigabyte; that they are there is in the seals that they came with."""
    answered, call = [], Line.call

    def heard(line, kind, payload):
        found = call(line, kind, payload)
        if kind in (M.GET_STATE, M.GET_STATE_MULTIPLE):
            answered.append((line.namespace, found))
        return found

    monkeypatch.setattr(Line, "call", heard)
    federation.publish_all("node01", "node03", "node04")
    answered.clear()
    assert complete_code(federation) == "PROCESS_UNPUBLISHED"
    assert [found for namespace, found in answered if namespace == MODEL] == [b""]
    federation.publish_all()
    answered.clear()
    assert federation.admin2.submit(HERE, "Complete", federation.process)["status"] == "completed"
    assert MODEL not in {namespace for namespace, _ in answered}


def test_a_model_without_a_seal_is_there_as_well(federation):
    """Earlier versions sealed none."""
    federation.publish_all()
    for place in [place for place in federation.policies if place[0] == MODEL]:
        del federation.policies[place]
    assert federation.admin2.submit(HERE, "Complete", federation.process)["status"] == "completed"
