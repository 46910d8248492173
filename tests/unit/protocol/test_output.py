"""Outputs of steps that do not learn: their bytes, what they may be, and which rows are held out."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.memory.composite import GOOD, composite, schema_output

from learning.held_out import held_out, learned_from
from learning.rows import Rows
from protocol.agreement.course import Change, ChangeKind, Course
from protocol.agreement.plan import Plan
from protocol.agreement.process import Specification
from protocol.errors import ProcessError, RecordError, StateError
from protocol.identifiers import EstimatorId
from protocol.task.output import Figures, MetricsOutput, Output, check_output
from protocol.task.result import TaskResult

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/output-v1.json").read_text("utf-8"))
SPECIFICATION = Specification.from_dict(composite())
OWN, OTHER = EstimatorId("node01", 0), EstimatorId("node02", 0)


@pytest.mark.parametrize("case", GOLDEN["outputs"], ids=lambda case: case["name"])
def test_golden_outputs_keep_their_bytes(case):
    output = Output.from_dict(case["output"])
    assert output.to_dict() == case["output"]
    result = TaskResult.from_bytes(case["result"].encode())
    assert result.output == output
    assert (result.to_bytes().decode(), str(result.digest)) == (case["result"], case["digest"])


@pytest.mark.parametrize("case", GOLDEN["held_out"], ids=lambda case: f"{case['node']} {case['held_out']}")
def test_golden_rows_are_held_out(case):
    labels = np.array(case["labels"])
    rows = Rows.of(np.arange(len(labels), dtype=np.float32).reshape(-1, 1), labels)
    asked = (rows, float(case["held_out"]), case["seed"], case["node"])
    held = held_out(*asked)
    assert held is not None
    assert held.X.ravel().tolist() == case["places"]
    assert sorted([*held.X.ravel(), *learned_from(*asked).X.ravel()]) == list(range(len(labels)))


def test_an_output_makes_a_result_of_version_2_and_none_of_version_1():
    raw = json.loads(GOLDEN["outputs"][0]["result"])
    assert raw["version"] == 2
    for wrong in (raw | {"version": 1}, {name: raw[name] for name in raw if name != "output"}):
        with pytest.raises(RecordError, match="version"):
            TaskResult.from_bytes(json.dumps(wrong, separators=(",", ":"), sort_keys=True).encode())


@pytest.mark.parametrize(
    ("iteration", "output", "code"),
    [
        (0, MetricsOutput(GOOD, None), "RESULT_KIND"),
        (0, None, "RESULT_KIND"),
        (1, schema_output(), "RESULT_KIND"),
        (3, schema_output(), "RESULT_KIND"),
        (0, schema_output(columns=29), "OUTPUT_MISMATCH"),
        (3, MetricsOutput(GOOD, None), "OUTPUT_MISMATCH"),
    ],
)
def test_an_output_is_that_of_its_step(iteration, output, code):
    parameters = SPECIFICATION.parameters("node01", iteration)
    with pytest.raises(StateError) as refusal:
        check_output(output, parameters, "node01", [OWN, OTHER])
    assert refusal.value.code == code


def test_own_figures_are_of_own_trees():
    parameters = SPECIFICATION.parameters("node01", 3)
    check_output(MetricsOutput(GOOD, GOOD), parameters, "node01", [OWN, OTHER])
    check_output(MetricsOutput(GOOD, None), parameters, "node01", [OTHER])
    check_output(MetricsOutput(None, None), parameters, "node01", [OWN])
    with pytest.raises(StateError, match="OUTPUT_MISMATCH"):
        check_output(MetricsOutput(GOOD, GOOD), parameters, "node01", [OTHER])


def test_figures_end_at_their_bounds():
    bounds = {"balanced_accuracy": "0.0", "precision": "1.0", "recall": "0.001"}
    assert Figures.from_dict(bounds).to_dict() == bounds
    for wrong in ("1.001", "-0.001", "0.0001"):
        with pytest.raises(RecordError):
            Figures.from_dict(bounds | {"recall": wrong})


def test_version_1_has_no_steps_that_do_not_learn():
    made = composite(version=1)
    del made["estimator_format"]
    for step in made["steps"]:
        step["image"] = {name: step["image"][name] for name in ("name", "version")}
    with pytest.raises(ProcessError, match="version 1 cannot say"):
        Specification.from_dict(made)


# --- who opens steps ---


def plan_of(*changes, **fields):
    return Plan.of(Specification.from_dict(composite(**fields)), changes)


def opening(step, iteration):
    return Change(ChangeKind.OPEN_STEP, iteration, {"step": step})


def test_without_coordinator_every_step_is_open():
    plan = plan_of()
    assert (plan.coordinator, plan.next_step(), plan.opened_by(0)) == (None, None, None)
    assert all(plan.is_open(iteration) for iteration in range(4))


def test_steps_are_open_up_to_the_one_opened_last():
    replaced = Change(ChangeKind.COORDINATOR, 1, {"coordinator": "Org1MSP"})
    plan = plan_of(opening("prepare", 0), replaced, opening("learn", 1), coordinator="Org2MSP")
    assert plan.coordinator == "Org1MSP"
    assert [plan.is_open(iteration) for iteration in range(4)] == [True, True, True, False]
    assert [plan.opened_by(iteration) for iteration in range(4)] == [0, 2, 2, None]
    step, first = plan.next_step()
    assert (step.name, first) == ("evaluate", 3)
    course = Course.from_dict(plan.course.to_dict())
    assert course == plan.course
    assert (course.opened, course.coordinator) == ((0, 2), "Org1MSP")


def test_a_course_without_coordinator_keeps_its_record():
    assert not {"opened", "coordinator"} & Course().to_dict().keys()
