"""Learners of a composite process: prepare, learn from what is not held out, evaluate on what is."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from support.memory.composite import Composite, composite
from support.memory.learners import PARAMETERS, Channel, table_of
from support.memory.scenario import NODES
from support.memory.scene import Scene, state_record

from learner.outcome import Exit
from learning import actions
from learning.actions import NodeState
from learning.ensemble import Ensemble
from learning.held_out import held_out, learned_from
from learning.measurement import columns_holding, figures, metrics
from learning.options import from_step, to_options
from learning.parameters import Parameters
from learning.rows import Rows
from protocol.agreement import step
from protocol.agreement.parameters import read_members
from protocol.agreement.step_kind import ranges_digest
from protocol.broker.messages import Verb
from protocol.task.output import Figures, MetricsOutput
from protocol.task.table import Table

RANGES = [["-100.0", "100.0"], ["-0.1", "0.1"], None, ["-100.0", "100.0"]]
HELD_OUT = {"home_check": None, "held_out": "0.25"}


def specification():
    made = composite()
    for place in made["steps"]:
        counts = {name: place["parameters"][name] for name in ("n_new", "n_share")}
        learns = counts["n_new"] > 0
        place["parameters"] = copy.deepcopy(PARAMETERS) | ({} if learns else counts) | {"options": HELD_OUT}
    made["steps"][0]["parameters"]["options"] = {"ranges": RANGES}
    return made


def rows_of(number):
    table = table_of(number)
    return Rows.of(table.X, table.y)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The whole process, each task by the real learner, each result accepted by the real contracts."""
    channel = Channel(None, tmp_path_factory.mktemp("composite"), Composite(specification()))
    for iteration in range(4):
        channel.play(iteration)
    return channel


def test_prepare_says_how_many_columns_keep_to_the_ranges(run):
    for number, node in enumerate(run.nodes.values()):
        outcome = run.federation.admin1.evaluate(
            "execution-record", "GetTask", run.federation.process, sorted(NODES)[number], 0
        )["outcome"]
        X = table_of(number).X
        expected = sum(
            not bool((np.abs(X[:, place]) > limit).any()) for place, limit in ((0, 100), (1, 0.1), (3, 100))
        )
        assert outcome["output"] == {
            "type": "schema",
            "schema": PARAMETERS["schema_digest"],
            "ranges": str(ranges_digest({"ranges": RANGES})),
            "columns": 4,
            "holding": expected + 1,
        }
        assert node.said[1] == "prepare: an output of type schema"


def test_rows_that_are_held_out_are_never_learned_from(run):
    """Each tree is the one that FIT makes of the other rows alone."""
    agreed = from_step(step.StepParameters.from_dict(PARAMETERS | {"options": HELD_OUT}))
    for number, (name, node) in enumerate(run.nodes.items()):
        state = NodeState(name, 42, 1)
        kept = learned_from(rows_of(number), 0.25, 42, name)
        fitted = actions.fit(state, kept, agreed)
        assert node.state.created[:4] == fitted.created
        other = actions.fit(state, rows_of(number), agreed)
        assert node.state.created[:4] != other.created


def test_evaluate_measures_the_ensemble_on_held_out_rows(run):
    agreed = from_step(step.StepParameters.from_dict(PARAMETERS | {"options": HELD_OUT}))
    for number, (name, node) in enumerate(run.nodes.items()):
        held = held_out(rows_of(number), 0.25, 42, name)
        ensemble = Ensemble(node.state.ensemble)
        members = run.federation.context(name, 3)["parameters"]["members"]
        expected = metrics(name, ensemble, replace(agreed, members=read_members(members)), held)
        assert node.result.output == expected
        assert expected.federation is not None
        assert node.result.created == node.result.slots == ()
        assert len(node.shares) == 2


def test_every_class_is_in_both_parts_if_it_can_be():
    rows = rows_of(0)
    kept, held = learned_from(rows, 0.25, 42, "node01"), held_out(rows, 0.25, 42, "node01")
    assert len(kept) + len(held) == len(rows)
    assert (int(kept.y.sum()) + int(held.y.sum()), held.y.sum() > 0) == (int(rows.y.sum()), True)
    again = held_out(rows, 0.25, 42, "node01")
    assert held.digest == again.digest
    assert held.digest != held_out(rows, 0.25, 43, "node01").digest
    assert held.digest != held_out(rows, 0.25, 42, "node02").digest


@pytest.mark.parametrize("part", [0.001, 0.999])
def test_neither_part_is_without_a_class(part):
    rows = rows_of(0)
    for found in (learned_from(rows, part, 42, "node01"), held_out(rows, part, 42, "node01")):
        assert set(found.y.tolist()) == {0, 1}


def test_a_node_with_no_anomalies_has_no_figures():
    X = np.arange(12, dtype=np.float32).reshape(-1, 1)
    rows = Rows.of(X, np.zeros(12))
    found = metrics("node01", Ensemble(), Parameters(), held_out(rows, 0.25, 1, "node01"))
    assert found == MetricsOutput(None, None)
    lonely = Rows.of(X[:2], [0, 1])
    assert held_out(lonely, 0.5, 1, "node01") is None
    assert learned_from(lonely, 0.5, 1, "node01").digest == lonely.digest
    assert metrics("node01", Ensemble(), Parameters(), None) == MetricsOutput(None, None)


def test_figures_are_the_papers_rounded():
    anomalous = np.array([True, True, True, False, False, False, False])
    alarms = np.array([True, True, False, True, False, False, False])
    assert figures(anomalous, alarms) == Figures(round((2 / 3 + 3 / 4) / 2, 3), 0.667, 0.667)
    assert figures(anomalous, np.zeros(7, dtype=bool)) == Figures(0.5, 0.0, 0.0)


def test_own_trees_alone_are_those_of_the_node():
    ensemble = Ensemble(state_record().ensemble)
    rows = rows_of(1)
    assert metrics("node01", ensemble, Parameters(), rows).own is not None
    assert metrics("node09", ensemble, Parameters(), rows).own is None


def test_ranges_hold_in_the_precision_of_the_rows():
    rows = Rows.of(np.array([[0.1, 5.0, np.nan], [0.05, -5.0, 1.0]]), [0, 1])
    assert columns_holding(rows, ((0.0, 0.1), (-5.0, 5.0), (1.0, 1.0))) == 3
    assert columns_holding(rows, ((0.0, 0.09), (-4.9, 5.0), (1.1, 2.0))) == 0
    assert columns_holding(rows, (None, (-1e300, 1e300), None)) == 3


def test_held_out_is_an_option_that_goes_without_saying():
    assert "held_out" not in to_options(Parameters())
    found = from_step(
        step.StepParameters.from_dict(PARAMETERS | {"options": to_options(Parameters(held_out=0.25))})
    )
    assert found.held_out == 0.25


def changed_scene(**changes):
    scene = Scene(neighbours=())
    scene.parameters |= changes
    return scene


def refused(scene, folder, exit_code, words):
    found, said, asked = scene.run(folder)
    assert (found, [request.verb for request in asked]) == (exit_code, [Verb.TASK]), said
    assert words in said


NOTHING = {"n_new": 0, "n_share": 0}


def test_a_step_that_makes_no_estimators_on_a_node_without_any(tmp_path):
    for changes in ({"n_new": 0}, NOTHING | {"kind": "evaluate", "options": HELD_OUT}):
        scene = changed_scene(**changes)
        scene.state = None
        refused(scene, tmp_path, Exit.STATE, "ENSEMBLE_EMPTY")


def test_n_new_0_makes_none_and_goes_on(tmp_path):
    assert changed_scene(n_new=0).run(tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "prepare", "options": {}}, "PROCESS_FIELDS"),
        ({"kind": "prepare", "options": {"ranges": RANGES[:2]}}, "PROCESS_FIELDS"),
        ({"kind": "prepare", "options": {"ranges": RANGES, "fit": "plain"}}, "ranges alone"),
        ({"kind": "evaluate", "options": {}}, "PROCESS_FIELDS"),
        ({"kind": "evaluate", "options": {"held_out": "2.0"}}, "PROCESS_VALUE"),
        ({"kind": "publish"}, "PROCESS_VALUE"),
    ],
)
def test_a_step_that_lacks_what_its_kind_states(tmp_path, changes, words):
    refused(changed_scene(**NOTHING, **changes), tmp_path, Exit.TASK, words)


def test_an_evaluation_says_nothing_of_a_row(tmp_path):
    """Neither the result nor what is said holds a value of the rows, of which there are many."""
    X = np.array([[123.25, 0, 0, 0], [0, 977.5, 0, 0], [1, 2, 3, 611.75], [5, 6, 7, 8]], dtype=np.float32)
    scene = changed_scene(**NOTHING, kind="evaluate", options=HELD_OUT | {"held_out": "0.5"})
    scene.rows = Table(X, np.array([0, 1, 0, 1])).to_bytes()
    ended, said, asked = scene.run(tmp_path)
    assert ended == 0
    sent = asked[-1].blobs[0] + said.encode()
    assert not any(str(value).encode() in sent for value in (123.25, 977.5, 611.75))
