"""Outputs of steps that do not learn are judged again: a majority that lets anything pass is found."""

import io

import pytest
from support.memory import blocks
from support.memory.composite import EVALUATE, FAIR, GOOD, PREPARE, Composite, composite, schema_output
from support.memory.scenario import NODES

from chaincode.execution_record import contract as execution
from chaincode.execution_record import result_rules, traces
from chaincode.model import publication
from chaincode.orchestration import absence
from chaincode.orchestration import contract as orchestration
from chaincode.orchestration import steps as orchestration_steps
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol.agreement.plan import Plan
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.ledger.processes import TaskContext
from protocol.task.output import MetricsOutput

TWO = {node: NODES[node] for node in ("node01", "node03")}
WIDE = Specification.from_dict(composite(nodes=TWO))
METRICS = MetricsOutput(GOOD, FAIR)


@pytest.fixture
def federation():
    return blocks.record(Composite)(composite(nodes=TWO))


def judged(federation):
    recorder = federation.recorder
    return verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))


def wrong(federation):
    return {(failure.claim, failure.what) for failure in judged(federation).failures}


def place(iteration, node="node01"):
    return f"result~fraud-2026~{iteration:010d}~{node}"


def test_a_composite_process_passes_its_audit(federation):
    federation.prepare()
    federation.learn()
    federation.evaluate()
    federation.finish()
    found = judged(federation)
    assert found.failures == []
    assert found.verified


def test_the_vote_of_a_model_is_held_against_the_cap_of_the_step_that_learned():
    made = composite(nodes=TWO)
    for step in made["steps"][1:]:
        step["parameters"]["options"] |= {"vote_cap": "0.5"}
    federation = blocks.record(Composite)(made)
    federation.prepare()
    federation.learn()
    federation.evaluate()
    federation.finish()
    found = judged(federation)
    assert found.failures == []
    (claim,) = [claim for claim in found.claims if claim.name == "vote cap"]
    assert claim.checked == len(TWO)


def test_outputs_that_do_not_keep_to_their_kind_are_found(federation, monkeypatch):
    monkeypatch.setattr(result_rules, "check_kind", lambda *said: None)
    federation.act("node01", PREPARE, METRICS)
    federation.act("node03", PREPARE, schema_output(schema=Digest.of(b"other")))
    kind = "a step of kind prepare comes to an output of type schema, not one of type metrics"
    agreed = composite()["steps"][0]["parameters"]["schema_digest"]
    other = f"schema is {Digest.of(b'other')}, and {agreed} was agreed on"
    assert wrong(federation) == {
        ("outputs", f"{place(PREPARE)}: {kind}"),
        ("outputs", f"{place(PREPARE, 'node03')}: {other}"),
    }


def test_h17_an_evaluation_on_other_data_than_was_learned_from_is_found(federation, monkeypatch):
    federation.prepare()
    federation.learn()
    monkeypatch.setattr(execution, "check_data", lambda *said: None)
    player = federation.players["node01"]
    player.data = Digest.of(b"other rows")
    federation.act("node01", EVALUATE, METRICS)
    ((claim, what),) = wrong(federation)
    assert (claim, "rows were held out of data" in what) == ("task inputs", True)


def test_h17_a_head_that_forgets_the_data_that_was_learned_from_is_found(federation, monkeypatch):
    """Else the chaincode would take any data for the evaluation."""
    federation.prepare()
    monkeypatch.setattr(traces, "data_after", lambda *said: None)
    federation.play(1, ["node01", "node03"])
    leaves = {("results", f"{place(1, node)} leaves the node somewhere else") for node in TWO}
    assert wrong(federation) == leaves


def test_an_evaluation_that_changed_the_ensemble_is_found(federation, monkeypatch):
    federation.prepare()
    federation.learn()

    def lenient(ctx, task, result, context, head):
        before = result_rules.find_ensemble(ctx, task, head)
        kept = {id_: before[id_] for id_ in result.ensemble}
        return result_rules.CheckedResult({}, kept, (), head)

    monkeypatch.setattr(result_rules, "_check_unchanged", lenient)
    player = federation.players["node01"]
    player.ensemble = dict(list(player.ensemble.items())[1:])
    federation.act("node01", EVALUATE, METRICS)
    what = f"{place(EVALUATE)} does not learn, and changed the ensemble"
    assert wrong(federation) == {("outputs", what)}


def test_a_task_without_the_estimators_that_it_needs_is_found(federation, monkeypatch):
    monkeypatch.setattr(TaskContext, "check_estimators", lambda *said: None)
    monkeypatch.setattr(TaskContext, "check_next", lambda *said: None)
    federation.players["node01"].open(EVALUATE)
    what = f"task fraud-2026/node01/{EVALUATE} needs estimators, and the node had none"
    assert ("task inputs", what) in wrong(federation)


# --- central orchestration ---


@pytest.fixture
def central():
    return blocks.record(Composite)(composite(nodes=TWO, coordinator="Org2MSP"))


def opened(federation, step, member=None):
    return (member or federation.admin2).submit("orchestration", "OpenStep", "fraud-2026", step)


def test_a_central_process_passes_its_audit(central):
    opened(central, "prepare")
    central.prepare()
    ask = central.admin1.submit("orchestration", "ReplaceCoordinator", "fraud-2026", "Org1MSP")
    central.agree(central.admin2, ask)
    for step, play in (("learn", central.learn), ("evaluate", central.evaluate)):
        opened(central, step, central.admin1)
        play()
    central.finish()
    found = judged(central)
    assert found.failures == []
    assert found.verified


def test_h10_a_task_of_a_step_that_nobody_opened_is_found(central, monkeypatch):
    monkeypatch.setattr(TaskContext, "check_opened", lambda *said: None)
    central.players["node01"].open(PREPARE)
    assert wrong(central) == {("steps", "task fraud-2026/node01/0 is of a step that was not open")}


def test_h10_a_step_that_was_opened_out_of_order_is_found(central, monkeypatch):
    monkeypatch.setattr(orchestration_steps, "_first_iteration", lambda plan, step: 1)
    opened(central, "learn")
    assert wrong(central) == {("steps", "change~fraud-2026~0000000000 opens a step that is not next")}


def test_h10_a_step_that_another_opened_is_found(central, monkeypatch):
    honest = Plan.coordinator.fget
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "coordinator", property(lambda plan: honest(plan) and "Org1MSP"))
        opened(central, "prepare", central.admin1)
    found = {claim for claim, _ in wrong(central)}
    assert "quorums" in found


def test_h10_a_step_opened_in_the_name_of_a_coordinator_that_did_not_endorse_it_is_found(
    central, monkeypatch
):
    monkeypatch.setattr(orchestration_steps, "vouch", lambda *said: None)
    opened(central, "prepare")
    assert wrong(central) == {("agreements", "Org2MSP did not agree to change~fraud-2026~0000000000")}


def test_h10_a_vote_against_a_node_that_waits_for_its_step_is_found(central, monkeypatch):
    monkeypatch.setattr(absence, "_check_open", lambda *said: None)
    central.admin1.submit("orchestration", "LeaveOut", "fraud-2026", "node03", "too slow")
    about = "absence~fraud-2026~node03~Org1MSP"
    assert wrong(central) == {("silence", f"{about} is about nodes that owe nothing")}


def test_c10_a_proposal_that_evaluates_by_another_vote_is_found(monkeypatch):
    monkeypatch.setattr(orchestration, "check_proposal", lambda _: None)
    made = composite(nodes=TWO)
    made["steps"][2]["parameters"]["options"] |= {"threshold": "0.75"}
    federation = blocks.record(Composite)(made)
    ((claim, what),) = wrong(federation)
    assert claim == "agreements"
    assert what.endswith("nodes with threshold 0.75, and models of learn vote with None")


def limited(learn, later):
    """Some limit of internal nodes for trees where they are learned, another for those of the last step."""
    made = composite(nodes=TWO)
    for at, limit in ((1, learn), (2, later)):
        parameters = made["steps"][at]["parameters"]
        parameters["limits"] = parameters["limits"] | {"max_internal": limit}
    federation = blocks.record(Composite)(made)
    federation.prepare()
    federation.learn_privately(min(learn, 8))
    federation.evaluate()
    return federation


def test_d12_trees_of_a_model_keep_the_limits_of_the_step_that_learned_them(monkeypatch):
    """An earlier version let evaluations have narrower ones: its models are as good as any."""
    monkeypatch.setattr(orchestration, "check_proposal", lambda _: None)
    federation = limited(255, 1)
    federation.finish()
    assert {claim for claim, _ in wrong(federation)} == {"agreements"}


def test_d12_a_published_tree_beyond_the_limits_of_its_step_is_found(monkeypatch):
    """It was never shared: its model is where it is first seen."""
    federation = limited(8, 255)
    monkeypatch.setattr(publication, "specification_of", lambda *_: WIDE)
    federation.publish_all()
    assert {claim for claim, _ in wrong(federation)} == {"models"}
