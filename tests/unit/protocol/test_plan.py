"""What holds in an iteration after nodes joined and left, and topology and image changed."""

import pytest

from protocol.agreement.course import Change, ChangeKind, Course
from protocol.agreement.plan import Plan
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
    made = [Change(ChangeKind(kind), at, what) for kind, at, what in changes]
    return Plan.of(Specification.from_dict(record), made)


def version(name):
    return {"version": name, "image_id": "sha256:" + "1" * 64, "manifest_digest": "sha256:" + "2" * 64}


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


def test_h10_only_who_is_left_out_leaves_an_iteration_without_nodes_and_never_the_last():
    """node02 is away in iteration 4 alone, where node01 is silent."""
    away = [("leave", 4, {"node": "node02"}), ("join", 5, {"node": "node02", "organisation": "Org2MSP"})]
    out = {"organisation": "Org1MSP", "nodes": {"node01": 4}, "whole": False, "last": {}}
    leave = Change(ChangeKind.LEAVE, 4, {"node": "node01"})
    assert plan(*away).left_empty(leave) == 4
    assert plan(*away).left_empty(Change(ChangeKind.LEAVE_OUT, 4, out)) is None
    assert plan(away[0]).left_empty(Change(ChangeKind.LEAVE_OUT, 4, out)) == 9


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
    changes = [("image", 3, version("2")), ("image", 6, version("3"))]
    record = SPECIFICATION | {"steps": [STEP, STEP | {"name": "again"}]}
    made = plan(*(changes[i] for i in order), record=record)
    versions = [made.image(iteration).version for iteration in (0, 2, 3, 5, 6, 9, 10)]
    assert versions == ["1.0.0", "1.0.0", "2", "2", "3", "3", "1.0.0"]


def test_of_two_versions_from_one_iteration_the_one_agreed_later_holds():
    assert plan(("image", 3, version("2")), ("image", 3, version("3"))).image(3).version == "3"


def test_a_single_step_has_no_neighbours():
    single = {name: value for name, value in STEP.items() if name != "iterations"} | {"kind": "single"}
    assert plan(record=SPECIFICATION | {"steps": [single]}).neighbours("node01", 0) == ()


def test_who_is_left_out_is_gone_from_the_iteration_it_owes_until_it_joins():
    out = {"organisation": "Org2MSP", "nodes": {"node02": 4}, "whole": True, "last": {}}
    made = plan(("leave-out", 4, out))
    assert (made.active(3), made.active(4)) == (("node01", "node02"), ("node01",))
    assert (made.consortium, made.present()) == (("Org1MSP", "Org2MSP"), ("Org1MSP",))
    assert (made.course.left_out, made.course.gone) == (("node02",), ("Org2MSP",))
    back = plan(("leave-out", 4, out), ("join", 7, {"node": "node02", "organisation": "Org2MSP"}))
    assert (back.course.left_out, back.course.gone, back.present()) == ((), (), ("Org1MSP", "Org2MSP"))
    assert [i for i in range(10) if back.is_active("node02", i)] == [0, 1, 2, 3, 7, 8, 9]


def test_an_organisation_is_gone_when_all_its_nodes_have_left_and_done_their_part():
    made = plan(("leave", 5, {"node": "node02"}))
    assert made.present() == ("Org1MSP", "Org2MSP")
    assert made.present(finished=["node02"]) == ("Org1MSP",)
    # Who has done all of its work has not left.
    assert plan().present(finished=["node01", "node02"]) == ("Org1MSP", "Org2MSP")


def test_of_a_change_agreed_and_one_specified_the_later_iteration_holds():
    record = SPECIFICATION | {"topology_changes": [{"iteration": 4, "topology": {"kind": "disconnected"}}]}
    full = {"kind": "full"}
    assert [plan(("topology", 2, full), record=record).topology(i).kind for i in (1, 2, 4)] == [
        "ring",
        "full",
        "disconnected",
    ]
    assert [plan(("topology", 4, full), record=record).topology(i).kind for i in (3, 4, 9)] == [
        "ring",
        "full",
        "full",
    ]


def test_a_course_reads_back_as_it_was_written():
    out = {"organisation": "Org2MSP", "nodes": {"node02": 4}, "whole": True, "last": {}}
    made = plan(
        JOIN, LEAVE, ("topology", 6, {"kind": "full"}), ("image", 3, version("2")), ("leave-out", 4, out)
    )
    course = made.course
    assert Course.from_dict(course.to_dict()) == course
    assert (course.count, course.topologies, course.images) == (5, ((6, 2),), ((3, 3),))
