"""What holds in an iteration after nodes joined and left, and topology and image changed."""

import pytest

from protocol.agreement.plan import Change, ChangeKind, Plan
from protocol.agreement.process import Specification

STEP = {
    "name": "train",
    "image": {"name": "attestree/learner", "version": "1.0.0"},
    "iterations": 10,
    "parameters": {
        **{"n_new": 10, "n_max": 50, "n_share": 10, "seed": 42},
        **{"limits": {"n_features": 30}, "schema_digest": "sha256:" + "5" * 64},
    },
}
SPECIFICATION = {
    "version": 1,
    "process": "fraud-2026",
    "organisations": ["Org1MSP", "Org2MSP"],
    "nodes": {"node01": "Org1MSP", "node02": "Org2MSP"},
    "topology": {"kind": "ring"},
    "steps": [STEP],
}


def plan(*changes, record=SPECIFICATION):
    return Plan(
        Specification.from_dict(record), [Change(ChangeKind(kind), at, what) for kind, at, what in changes]
    )


JOIN = ("join", 3, {"node": "node03", "organisation": "Org3MSP"})
LEAVE = ("leave", 5, {"node": "node03"})


def test_a_node_that_joins_is_active_from_its_iteration_on_and_its_organisation_a_member():
    made = plan(JOIN)
    assert made.active(2) == ("node01", "node02")
    assert made.active(3) == ("node01", "node02", "node03")
    assert made.consortium == ("Org1MSP", "Org2MSP", "Org3MSP")
    assert made.neighbours("node01", 2) == ("node02",)
    assert made.neighbours("node01", 3) == ("node02", "node03")


def test_a_node_that_left_is_gone_from_its_iteration_on_and_may_come_again():
    made = plan(JOIN, LEAVE, ("join", 8, {"node": "node03", "organisation": "Org3MSP"}))
    assert [i for i in range(10) if made.is_active("node03", i)] == [3, 4, 8, 9]
    assert [made.next_iteration("node03", done) for done in (0, 3, 5, 8, 10)] == [3, 3, 8, 8, None]
    assert made.has_left("node03") is None
    assert plan(JOIN, LEAVE).has_left("node03") == 5


def test_leaving_ends_every_later_part_too():
    back = ("join", 8, {"node": "node03", "organisation": "Org3MSP"})
    made = plan(JOIN, LEAVE, back, ("leave", 4, {"node": "node03"}))
    assert [i for i in range(10) if made.is_active("node03", i)] == [3]
    assert made.has_left("node03") == 4
    never = plan(JOIN, ("leave", 3, {"node": "node03"}))
    assert not any(never.is_active("node03", i) for i in range(10))


def test_an_iteration_without_nodes_is_found():
    leaves = [("leave", 4, {"node": "node01"}), ("leave", 6, {"node": "node02"})]
    assert plan(*leaves).first_empty(2) == 6
    assert plan(leaves[0]).first_empty(0) is None


def test_next_iteration_ends_with_the_process():
    made = plan()
    assert [made.next_iteration("node01", done) for done in (0, 9, 10)] == [0, 9, None]
    assert made.next_iteration("node99", 0) is None


def test_an_agreed_topology_holds_from_its_iteration_on():
    made = plan(("topology", 4, {"kind": "disconnected"}))
    assert made.neighbours("node01", 3) == ("node02",)
    assert made.neighbours("node01", 4) == ()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_image_version_holds_from_its_iteration_to_the_end_of_its_step(order):
    changes = [("image", 3, {"version": "2"}), ("image", 6, {"version": "3"})]
    record = SPECIFICATION | {"steps": [STEP, STEP | {"name": "again"}]}
    made = plan(*(changes[i] for i in order), record=record)
    versions = [made.image(iteration).version for iteration in (0, 2, 3, 5, 6, 9, 10)]
    assert versions == ["1.0.0", "1.0.0", "2", "2", "3", "3", "1.0.0"]


def test_of_two_versions_from_one_iteration_the_one_agreed_later_holds():
    assert plan(("image", 3, {"version": "2"}), ("image", 3, {"version": "3"})).image(3).version == "3"


def test_a_single_step_has_no_neighbours():
    single = {name: value for name, value in STEP.items() if name != "iterations"} | {"kind": "single"}
    assert plan(record=SPECIFICATION | {"steps": [single]}).neighbours("node01", 0) == ()
