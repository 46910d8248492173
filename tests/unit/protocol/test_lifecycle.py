import re
from itertools import product
from pathlib import Path

import pytest

from protocol.agreement.lifecycle import (
    IMAGE,
    PROCESS,
    TASK,
    ImageState,
    ImageTransition,
    ProcessState,
    ProcessTransition,
    TaskState,
    TaskTransition,
)
from protocol.errors import LifecycleError

LIFECYCLES = [TASK, PROCESS, IMAGE]


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.subject)
def test_what_is_not_in_the_table_cannot_happen(lifecycle):
    allowed = {(transition, before): after for transition, before, after in lifecycle.table}
    assert len(allowed) == len(lifecycle.table), "a transition from one state leads to one state"
    for transition, state in product(lifecycle.transitions, lifecycle.states):
        if (transition, state) in allowed:
            assert lifecycle.after(transition, state) is allowed[transition, state]
        else:
            with pytest.raises(LifecycleError) as refusal:
                lifecycle.after(transition, state)
            assert refusal.value.code == "LIFECYCLE_TRANSITION"


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.subject)
def test_every_state_is_reached_from_absence_and_every_transition_is_used(lifecycle):
    reached = {lifecycle.states("absent")}
    for _ in lifecycle.states:
        reached |= {after for _, before, after in lifecycle.table if before in reached}
    assert reached == set(lifecycle.states)
    assert {transition for transition, _, _ in lifecycle.table} == set(lifecycle.transitions)


def test_a_round_and_its_relaunch():
    state = TaskState.ABSENT
    for transition in ("open", "share", "fail", "open", "share", "complete"):
        state = TASK.after(TaskTransition(transition), state)
    assert state is TaskState.COMPLETED
    assert TASK.is_final(state)


def test_c5_nothing_follows_a_closed_process():
    for state in (ProcessState.COMPLETED, ProcessState.ABORTED):
        assert PROCESS.is_final(state)
    assert PROCESS.after(ProcessTransition.START, ProcessState.PROPOSED) is ProcessState.RUNNING


def test_b9_b10_expired_task_takes_no_result():
    for transition in (TaskTransition.SHARE, TaskTransition.COMPLETE):
        with pytest.raises(LifecycleError):
            TASK.after(transition, TaskState.EXPIRED)


def test_a_retired_image_stays_retired():
    assert IMAGE.is_final(ImageState.RETIRED)
    with pytest.raises(LifecycleError):
        IMAGE.after(ImageTransition.REGISTER, ImageState.REGISTERED)


@pytest.mark.parametrize("text", ["OPEN", "", "done", None, 7])
def test_an_unknown_state_is_refused(text):
    with pytest.raises(LifecycleError) as refusal:
        TASK.state(text)
    assert refusal.value.code == "LIFECYCLE_STATE"
    assert TASK.state("open") is TaskState.OPEN


def test_another_life_cycle_s_transition_is_refused():
    with pytest.raises(LifecycleError):
        TASK.after(ProcessTransition.COMPLETE, TaskState.SHARED)


def test_the_documentation_has_the_same_tables():
    page = (Path(__file__).parents[3] / "docs" / "formats" / "lifecycle-v1.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| ([\w-]+) \| (\w+) \| (\w+) \|$", page, re.MULTILINE)
    rows = [tuple(map(str, row)) for lifecycle in LIFECYCLES for row in lifecycle.table]
    assert [row for row in documented if row[0] != "transition"] == rows
