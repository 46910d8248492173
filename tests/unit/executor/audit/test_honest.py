"""What honest members do to a process is found right in every part: launches that end, changes, secrecy."""

from datetime import timedelta

import pytest
from support.memory import blocks
from support.memory.audited import SPEC, SmallPlayer
from support.memory.federation import EXECUTION, Federation
from support.memory.forgery import failures
from support.memory.scenario import changed

HERE, P = "orchestration", SPEC["process"]
NODES = {"node01": "Org1MSP", "node03": "Org2MSP"}
TWO = SPEC | {"nodes": NODES, "topology": {"kind": "full"}}
LATE = timedelta(days=90)


def recorded(specification=TWO):
    made = blocks.record(Federation)(specification)
    made.players = {node: SmallPlayer(made, node) for node in specification["nodes"]}
    return made


def test_a_task_that_expired_failed_or_was_refused_is_launched_again():
    federation = recorded()
    node = federation.players["node01"]
    node.open(0)
    federation.admin1.submit(EXECUTION, "Expire", P, "node01", 0, time=federation.time + LATE)
    node.open(0)
    node.member.submit(EXECUTION, "Refuse", P, "node01", 0, "IMAGE_MISMATCH", {"found": "another"})
    node.member.submit(EXECUTION, "Refuse", P, "node01", 0, "IMAGE_MISMATCH", {"found": "again"})
    node.open(0)
    node.share()
    node.member.submit(EXECUTION, "Fail", P, "node01", 0, "OOM", "killed")
    federation.play(0)
    assert failures(federation) == []


def test_an_overdue_task_is_opened_again_or_refused_without_being_expired_first():
    federation = recorded()
    first, second = federation.players.values()
    for player in (first, second):
        player.open(0)
    federation.time += LATE
    second.member.submit(EXECUTION, "Refuse", P, "node03", 0, "IMAGE_MISMATCH", {})
    federation.play(0)
    assert failures(federation) == []


def test_a_new_image_version_by_those_who_agreed_to_it():
    federation = recorded()
    federation.register(version="2")
    federation.agree(federation.admin2, federation.admin1.submit(HERE, "UpdateImage", P, 0, "2"))
    federation.play(0)
    assert failures(federation) == []


def test_a_node_that_leaves_and_a_topology_that_changes():
    federation = recorded(SPEC)
    asked = federation.admin1.submit(HERE, "ChangeTopology", P, 1, {"kind": "full"})
    federation.agree(federation.admin2, asked)
    federation.nodes["node02"].submit(HERE, "Leave", P, "node02", 1, "enough")
    federation.play(0)
    federation.play(1, [node for node in SPEC["nodes"] if node != "node02"])
    assert failures(federation) == []


@pytest.mark.parametrize("synchronous", [True, False])
def test_nodes_that_wait_for_each_other_or_do_not(synchronous):
    federation = recorded(changed("steps", 0, "synchronous", synchronous, base=TWO))
    first, second = federation.players.values()
    for player in (first, second) if synchronous else (first,):
        player.open(0)
        player.share()
    if not synchronous:
        first.slots = list
    first.complete()
    assert failures(federation) == []


def test_a_confidential_process():
    federation = recorded(changed("confidential", True, base=TWO))
    federation.play(0)
    federation.play(1)
    federation.publish_all()
    federation.admin1.submit(HERE, "Complete", P)
    assert failures(federation) == []


def test_a_step_of_a_node_alone():
    single = changed("steps", 0, "kind", "single", base=SPEC) | {"nodes": {"node01": "Org1MSP"}}
    single = changed("steps", 0, "iterations", 1, base=single)
    federation = recorded(single)
    (node,) = federation.players.values()
    node.open(0)
    node.complete()
    assert failures(federation) == []
