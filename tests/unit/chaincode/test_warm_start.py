"""Processes that start from a model: its trees keep their features, their makers' names, their confidence."""

import copy
import json

import pytest
from support.memory.audited import SPEC, SmallPlayer, Successor
from support.memory.federation import MODEL, TWO_ROUNDS, Federation, changed, played, prepared

HERE = "orchestration"
EXCHANGED = {"node01": "Org2MSP", "node02": "Org1MSP", "node03": "Org2MSP", "node04": "Org2MSP"}


@pytest.fixture
def federation():
    """A process that was completed."""
    made = prepared(played)()
    made.publish_all()
    made.admin1.submit(HERE, "Complete", made.process)
    return made


def model_of(federation, node="node01"):
    digest = federation.admin1.evaluate(MODEL, "Get", federation.process, node)["digest"]
    return {"process": federation.process, "node": node, "digest": digest}


def following(federation, process="second", base=TWO_ROUNDS, **more):
    """A specification that starts from node01's model."""
    made = copy.deepcopy(base)
    return made | {"process": process, "initial_model": model_of(federation)} | more


def code(federation, specification):
    """The code by which a proposal is refused; none if it is taken."""
    endorsed = federation.scientist1.endorse(HERE, "Create", specification)
    return json.loads(endorsed.message)["code"] if endorsed.status >= 400 else ""


def started(federation, specification, *callers):
    federation.create(specification)
    for caller in callers or (federation.admin1, federation.admin2):
        caller.submit(HERE, "Accept", specification["process"])
    federation.admin1.submit(HERE, "Start", specification["process"])


def test_d17_a_node_by_the_name_of_another_organisations_does_not_inherit_its_trees(federation):
    """They would count as its own: in its quota and its vote, and to whoever asks who made them."""
    assert code(federation, following(federation, nodes=EXCHANGED)) == "PROCESS_NODES"
    assert code(federation, following(federation, nodes={"node01": "Org1MSP", "node09": "Org2MSP"})) == ""


def test_d17_nor_does_a_node_that_joins_by_such_a_name(federation):
    second = following(federation, nodes={"node03": "Org2MSP", "node04": "Org2MSP"})
    started(federation, second)
    ask = (HERE, "Join", "second")
    assert federation.admin2.code(*ask, "node02", "Org2MSP", 1) == "PROCESS_NODES"
    assert federation.admin1.submit(*ask, "node02", "Org1MSP", 1)["missing"] == ["Org2MSP"]
    assert federation.admin2.submit(*ask, "node07", "Org2MSP", 1)["missing"] == ["Org1MSP"]


def test_trees_of_a_confidential_process_stay_among_its_organisations():
    """A model of an open process would bring them to every peer."""
    confidential = changed("confidential", True, base=TWO_ROUNDS)
    made = Federation(confidential)
    for iteration in (0, 1):
        made.play(iteration)
    made.publish_all()
    assert code(made, following(made)) == "MODEL_CONFIDENTIAL"
    assert code(made, following(made, base=confidential)) == ""


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("limits", "n_features"), 31),
        (("limits", "max_depth"), 63),
        (("limits", "max_internal"), 254),
        (("schema_digest",), "sha256:" + "9" * 64),
    ],
)
def test_c10_a_process_that_cannot_read_the_trees_that_it_starts_from(federation, place, value):
    """Its first tasks could not begin."""
    base = changed("steps", 0, "parameters", *place, value, base=TWO_ROUNDS)
    assert code(federation, following(federation, base=base)) == "PROCESS_STEPS"


def test_h17_the_catalogue_says_from_which_model_a_process_started():
    """That one may have learned from the very rows by which the next evaluation judges."""
    one = changed("steps", 0, "iterations", 1, base=SPEC) | {"topology": {"kind": "full"}}
    made = Federation(one)
    made.players = {node: SmallPlayer(made, node) for node in made.players}
    made.play(0)
    made.publish_all()
    assert "initial" not in made.auditor3.evaluate(MODEL, "Catalogue")["items"][0]
    model, initial = made.admin1.evaluate(MODEL, "Get", made.process, "node01"), model_of(made)
    started(made, following(made, base=one))
    made.process = "second"
    made.players = {node: Successor.of(made, node, model) for node in made.players}
    made.play(0)
    made.publish_all()
    items = made.auditor3.evaluate(MODEL, "Catalogue", "second")["items"]
    assert [item["initial"] for item in items] == [initial] * len(made.players)
