"""Central orchestration: who opens steps, in which order, and a coordinator that vanishes (H10)."""

from datetime import timedelta

import pytest
from support.memory.composite import PREPARE, Composite, central, composite, schema_output
from support.memory.federation import EXECUTION, prepared
from support.memory.scenario import NODES

HERE = "orchestration"
NODE = "node01"
DAY = timedelta(days=1)
THREE = ["Org1MSP", "Org2MSP", "Org3MSP"]


def started():
    """The same with its first step open and done."""
    federation = central()
    opened(federation, "prepare")
    federation.prepare()
    return federation


@pytest.fixture
def federation():
    return prepared(central)()


@pytest.fixture
def waiting():
    return prepared(started)()


def opened(federation, step, member=None):
    return (member or federation.scientist3).submit(HERE, "OpenStep", federation.process, step)


def code(member, step):
    return member.code(HERE, "OpenStep", member.ledger.process, step)


def status(federation):
    return federation.admin1.evaluate(HERE, "Status", federation.process)


def replaced(federation, organisation="Org2MSP"):
    """Org1 asks for another coordinator, which agrees."""
    ask = federation.admin1.submit(HERE, "ReplaceCoordinator", federation.process, organisation)
    assert ask["change"] is None
    return federation.agree(federation.admin2, ask)


def test_no_task_of_a_step_begins_before_the_coordinator_has_opened_it(federation):
    player = federation.players[NODE]
    assert player.member.code(*player.call_open(PREPARE)) == "STEP_UNOPENED"
    refusal = (EXECUTION, "Refuse", federation.process, NODE, PREPARE, "IMAGE_MISMATCH", {})
    assert player.member.code(*refusal) == "STEP_UNOPENED"
    change = opened(federation, "prepare")
    assert (change["kind"], change["iteration"], change["agreed"].keys()) == ("open-step", 0, {"Org3MSP"})
    federation.act(NODE, PREPARE, schema_output())
    assert player.member.code(*player.call_open(1)) == "STEP_UNOPENED"
    assert [step["opened"] for step in status(federation)["steps"]] == [True, False, False]
    assert federation.context(NODE, 1)["step"]["opened"] is False


def test_a_central_process_runs_step_by_step_to_its_end(waiting):
    opened(waiting, "learn")
    waiting.learn()
    opened(waiting, "evaluate")
    waiting.evaluate()
    waiting.finish()
    assert status(waiting)["status"] == "completed"
    course = waiting.admin1.evaluate(HERE, "Get", waiting.process)["course"]
    assert course["opened"] == [0, 1, 2]


def test_a_step_may_be_opened_while_others_are_in_the_one_before(federation):
    opened(federation, "prepare")
    opened(federation, "learn")
    federation.act(NODE, PREPARE, schema_output())
    federation.players[NODE].open(1)


def test_h10_a_step_is_opened_once_in_order_and_by_the_coordinator_alone(federation):
    assert code(federation.admin1, "prepare") == "ACCESS_COORDINATOR"
    assert code(federation.auditor3, "prepare") == "ACCESS_ROLE"
    assert code(federation.nodes["node05"], "prepare") == "ACCESS_ROLE"
    assert code(federation.admin3, "learn") == "STEP_ORDER"
    assert code(federation.admin3, "elsewhere") == "STEP_UNKNOWN"
    opened(federation, "prepare")
    assert code(federation.admin3, "prepare") == "STEP_ORDER"
    for step in ("learn", "evaluate"):
        opened(federation, step)
    assert code(federation.admin3, "evaluate") == "STEP_ORDER"


def test_a_process_without_coordinator_goes_on_by_itself():
    federation = prepared(Composite)()
    assert code(federation.admin1, "prepare") == "STEP_COORDINATOR"
    call = (HERE, "ReplaceCoordinator", federation.process, "Org2MSP")
    assert federation.admin1.code(*call) == "STEP_COORDINATOR"
    assert all(step["opened"] for step in status(federation)["steps"])
    assert "coordinator" not in federation.admin1.evaluate(HERE, "Get", federation.process)["specification"]


def test_h10_a_coordinator_that_vanishes_is_replaced_by_a_majority(waiting):
    """Nobody has to wait: the others name one of themselves, and the steps go on without the vanished."""
    assert replaced(waiting)["change"] is not None
    assert status(waiting)["coordinator"] == "Org2MSP"
    assert code(waiting.admin3, "learn") == "ACCESS_COORDINATOR"
    opened(waiting, "learn", waiting.admin2)
    assert waiting.context(NODE, 1)["step"]["opened"] is True


def test_h10_the_node_of_a_coordinator_that_vanished_is_left_out_once_its_step_is_open(waiting):
    """Who waits for a step is not silent; from its opening on the others count."""
    call = (HERE, "LeaveOut", waiting.process, "node05", "gone")
    waiting.time += 3 * DAY
    assert waiting.admin1.code(*call) == "STEP_UNOPENED"
    whole = (HERE, "LeaveOutOrganisation", waiting.process, "Org3MSP", "gone")
    assert waiting.admin1.code(*whole) == "STEP_UNOPENED"
    replaced(waiting)
    opened(waiting, "learn", waiting.admin2)
    for member in (waiting.admin1, waiting.admin2):
        assert member.submit(*call)["vote"]["counts"] is False
    waiting.time += 2 * DAY
    waiting.admin1.submit(*call)
    assert waiting.admin2.submit(*call)["change"] is not None
    others = [node for node in waiting.players if node != "node05"]
    waiting.play(1, others)
    assert status(waiting)["coordinator"] == "Org2MSP"


def test_h10_an_opening_that_claims_an_old_time_makes_nobody_silent(waiting):
    """All wait for the coordinator, which says itself when it opened."""
    done = waiting.time
    waiting.time += 5 * DAY
    waiting.scientist3.submit(HERE, "OpenStep", waiting.process, "learn", time=done)
    call = (HERE, "LeaveOut", waiting.process, NODE, "gone")
    for member in (waiting.admin2, waiting.admin3):
        said = member.submit(*call)
        assert (said["vote"]["counts"], said["change"]) == (False, None)
    waiting.time += DAY
    waiting.admin2.submit(*call)
    assert waiting.admin3.submit(*call)["change"] is not None


def test_h10_who_has_worked_in_a_step_is_silent_since_then_and_not_since_a_vote(waiting):
    opened(waiting, "learn")
    waiting.play(1)
    waiting.time += DAY
    call = (HERE, "LeaveOut", waiting.process, NODE, "gone")
    waiting.admin2.submit(*call)
    assert waiting.admin3.submit(*call)["change"] is not None


def test_h10_one_member_alone_replaces_nobody(waiting):
    ask = waiting.admin1.submit(HERE, "ReplaceCoordinator", waiting.process, "Org1MSP")
    assert (ask["change"], ask["needed"]) == (None, 2)
    assert code(waiting.admin1, "learn") == "ACCESS_COORDINATOR"
    assert waiting.agree(waiting.admin3, ask)["change"] is not None
    opened(waiting, "learn", waiting.admin1)


def test_h10_nobody_becomes_coordinator_who_did_not_agree(waiting):
    ask = waiting.admin1.submit(HERE, "ReplaceCoordinator", waiting.process, "Org2MSP")
    assert waiting.agree(waiting.admin3, ask)["change"] is None
    assert waiting.agree(waiting.admin2, ask)["change"] is not None


def test_h10_one_late_agreement_brings_back_no_coordinator_that_a_majority_did_not_want(waiting):
    """Also after the one that was there when it was asked has come back."""
    early = waiting.admin2.submit(HERE, "ReplaceCoordinator", waiting.process, "Org2MSP")
    later = waiting.admin1.submit(HERE, "ReplaceCoordinator", waiting.process, "Org1MSP")
    waiting.agree(waiting.admin3, later)
    assert waiting.admin3.code(*waiting.agreement(early)) == "CHANGE_STALE"
    back = waiting.admin3.submit(HERE, "ReplaceCoordinator", waiting.process, "Org3MSP")
    assert waiting.agree(waiting.admin1, back)["change"] is not None
    assert waiting.admin1.code(*waiting.agreement(early)) == "CHANGE_STALE"
    assert status(waiting)["coordinator"] == "Org3MSP"
    assert waiting.agree(waiting.admin1, waiting.admin2.submit(*replacement(waiting)))["change"] is not None


def replacement(federation):
    return (HERE, "ReplaceCoordinator", federation.process, "Org2MSP")


@pytest.mark.parametrize("organisation", ["Org3MSP", "Org9MSP"])
def test_h10_a_coordinator_that_cannot_be_one(waiting, organisation):
    call = (HERE, "ReplaceCoordinator", waiting.process, organisation)
    assert waiting.admin1.code(*call) == "STEP_COORDINATOR"


def test_h10_a_coordinator_that_was_left_out_opens_nothing(waiting):
    opened(waiting, "learn")
    waiting.time += 2 * DAY
    for member in (waiting.admin1, waiting.admin2):
        left = member.submit(HERE, "LeaveOutOrganisation", waiting.process, "Org3MSP", "gone")
    assert left["change"] is not None
    assert code(waiting.admin3, "evaluate") == "ACCESS_ORGANISATION"
    assert replaced(waiting)["change"] is not None
    opened(waiting, "evaluate", waiting.admin2)


def test_h10_nothing_is_left_to_coordinate_when_every_step_is_open(waiting):
    opened(waiting, "learn")
    ask = waiting.admin1.submit(HERE, "ReplaceCoordinator", waiting.process, "Org2MSP")
    opened(waiting, "evaluate")
    assert waiting.admin2.code(*waiting.agreement(ask)) == "STEP_ORDER"
    call = (HERE, "ReplaceCoordinator", waiting.process, "Org1MSP")
    assert waiting.admin1.code(*call) == "STEP_ORDER"


def test_h10_an_organisation_without_nodes_that_opens_steps_is_not_silent():
    """It is silent since it opened the last, not since it accepted."""
    federation = Composite(composite(organisations=THREE, coordinator="Org3MSP"))
    federation.time += 2 * DAY
    opened(federation, "prepare")
    call = (HERE, "LeaveOutOrganisation", federation.process, "Org3MSP", "gone")
    assert federation.admin1.submit(*call)["vote"]["counts"] is False
    federation.time += 2 * DAY
    assert federation.admin1.submit(*call)["vote"]["counts"] is True


def test_c10_a_coordinator_outside_the_consortium(federation):
    made = composite(process="other", coordinator="Org3MSP")
    assert federation.scientist1.code(HERE, "Create", made) == "PROCESS_CONSORTIUM"


def test_steps_of_a_process_that_does_not_run_are_not_opened():
    nodes = NODES | {"node05": "Org3MSP"}
    made = composite(organisations=THREE, nodes=nodes, coordinator="Org3MSP")
    federation = Composite(made, started=False)
    assert code(federation.admin3, "prepare") == "LIFECYCLE_TRANSITION"
