"""Whose trees a model holds that a process starts from, through the processes that it came from (D17)."""

import pytest
from support.memory.scenario import changed

from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.origin import MAX_PAST, check_names
from protocol.agreement.parameters import InitialModel
from protocol.agreement.plan import Plan
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import ProcessError

NODE = "node01"


def model(process):
    return InitialModel(process, "node03", Digest(bytes(32)))


def plan(initial=None, *changes, **nodes):
    made = changed("nodes", nodes) | {"topology": {"kind": "full"}}
    record = None if initial is None else model(initial).to_dict()
    return Plan.of(Specification.from_dict(made | {"initial_model": record}), changes)


def refusal(nodes, creators, plans):
    """Why names are refused; empty if they are not."""
    try:
        check_names(nodes, creators, model("newest"), plans.__getitem__)
    except ProcessError as error:
        return error.cause
    return ""


@pytest.mark.parametrize("between", [0, 1, 5, MAX_PAST - 2])
def test_d17_a_name_keeps_its_organisation_through_processes_without_it(between):
    plans = {"oldest": plan(node01="Org1MSP", node03="Org2MSP")}
    newest = "oldest"
    for number in range(between):
        plans[f"p{number}"] = plan(newest, node03="Org2MSP")
        newest = f"p{number}"
    plans["newest"] = plan(newest, node03="Org2MSP")
    creators = [NODE, "node03"]
    said = "node01 of Org1MSP made trees of the model, and would belong to Org2MSP"
    assert refusal({NODE: "Org2MSP"}, creators, plans) == said
    assert refusal({NODE: "Org1MSP"}, creators, plans) == ""
    assert refusal({NODE: "Org2MSP"}, ["node03"], plans) == ""


def test_d17_a_node_that_joined_has_its_name_too():
    joined = Change(ChangeKind.JOIN, 0, {"node": NODE, "organisation": "Org1MSP"})
    plans = {"newest": plan(None, joined, node03="Org2MSP")}
    assert "node01 of Org1MSP" in refusal({NODE: "Org2MSP"}, [NODE], plans)


def test_h5_nobody_has_every_peer_walk_through_a_past_without_end():
    plans = {"newest": plan("newest", node03="Org2MSP")}
    assert "too long ago" in refusal({NODE: "Org1MSP"}, [NODE], plans)
    assert refusal({"node09": "Org1MSP"}, [NODE], plans) == ""
