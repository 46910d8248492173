"""A process that starts from a published model: what was fixed of it, and where its nodes go on counting."""

import pytest
from support.memory import blocks
from support.memory.audited import SPEC, SmallPlayer, Successor
from support.memory.federation import MODEL, Federation
from support.memory.forgery import deleted, failures, rewritten
from support.memory.ledger import VALID
from support.memory.scenario import changed

from chaincode.execution_record import initial
from chaincode.orchestration import initial as orchestration_initial
from protocol.digest import Digest
from protocol.identifiers import EstimatorId

HERE, NEXT = "orchestration", "second"
NODES = {"node01": "Org1MSP", "node03": "Org2MSP"}
ONE = changed("steps", 0, "iterations", 1, base=SPEC) | {"nodes": NODES, "topology": {"kind": "full"}}


@pytest.fixture
def federation():
    """One that was completed, and the next one, accepted and not started yet."""
    made = blocks.record(Federation)(ONE)
    made.players = {node: SmallPlayer(made, node) for node in NODES}
    made.play(0)
    made.publish_all()
    made.admin1.submit(HERE, "Complete", made.process)
    model = made.admin1.evaluate(MODEL, "Get", made.process, "node01")
    wanted = {"process": made.process, "node": "node01", "digest": model["digest"]}
    made.create(changed("initial_model", wanted, base=ONE) | {"process": NEXT})
    for caller in (made.admin1, made.admin2):
        caller.submit(HERE, "Accept", NEXT)
    made.process, made.model = NEXT, model
    return made


def start(federation):
    return federation.admin1.endorse(HERE, "Start", NEXT)


def committed(federation, endorsed):
    assert federation.commit([endorsed]) == [VALID]
    return failures(federation)


def test_a_process_that_goes_on_with_a_model_holds(federation):
    assert committed(federation, start(federation)) == []
    federation.players = {node: Successor.of(federation, node, federation.model) for node in NODES}
    assert all(player.first > 0 for player in federation.players.values())
    federation.play(0)
    assert failures(federation) == []


@pytest.mark.parametrize("number", range(3))
def test_a_node_shares_any_tree_of_the_model_that_its_process_began_with(federation, number):
    """Those that were shared before, and those that came with the model alone."""
    assert committed(federation, start(federation)) == []
    ids = [EstimatorId.parse(member["id"]) for member in federation.model["estimators"]]
    player = federation.players["node01"] = Successor(federation, "node01")
    player.ensemble = {id_: SmallPlayer.make(id_).tree.digest for id_ in ids}
    player.keys, player.first = 100, max(id_.counter + 1 for id_ in ids if id_.creator == "node01")
    player.open(0)
    arguments, options = player.call_share([SmallPlayer.make(ids[number])])
    assert committed(federation, player.member.endorse(*arguments, **options)) == []


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("initial", ("agreements", f"process~{NEXT} starts from another model than was agreed on")),
        ("initialtree", ("estimators", f"initial~{NEXT} leaves out trees of the model")),
        ("process", ("estimators", f"initial~{NEXT} was fixed without a start")),
    ],
)
def test_h1_a_start_that_leaves_out_a_part_of_its_model_is_found(federation, kind, what):
    assert what in committed(federation, deleted(start(federation), kind))


def test_h15_counters_that_begin_again_are_found(federation):
    forged = rewritten(start(federation), "initial", {"next_counters": {"node01": 0}})
    what = f"initial~{NEXT} continues at other counters than the model's"
    assert committed(federation, forged) == [("estimators", what)]


def test_h1_another_model_than_was_agreed_on_is_found(federation):
    other = {"process": "fraud-2026", "node": "node03", "digest": str(Digest.of(b"other"))}
    found = committed(federation, rewritten(start(federation), "initial", {"model": other}))
    assert ("estimators", f"initial~{NEXT} is another model") in found


def test_c4_a_start_from_a_model_that_is_closed_to_a_member_is_found(federation, monkeypatch):
    federation.admin1.submit(MODEL, "Revoke", "fraud-2026", "node01", "Org2MSP")
    monkeypatch.setattr(initial, "_check_open_to", lambda *said: None)
    what = f"initial~{NEXT} was fixed for some who had no access to the model"
    assert committed(federation, start(federation)) == [("access", what)]


def test_d17_a_start_that_gives_trees_to_another_organisations_node_is_found(federation, monkeypatch):
    """A majority with other chaincode took a proposal in which the creators' names are exchanged."""
    monkeypatch.setattr(orchestration_initial, "check_origin", lambda *_: None)
    model = {"process": "fraud-2026", "node": "node01", "digest": federation.model["digest"]}
    exchanged = {"node01": "Org2MSP", "node03": "Org1MSP"}
    made = changed("initial_model", model, base=ONE) | {"process": "third", "nodes": exchanged}
    federation.create(made)
    for caller in (federation.admin1, federation.admin2):
        caller.submit(HERE, "Accept", "third")
    (what,) = committed(federation, federation.admin1.endorse(HERE, "Start", "third"))
    assert "node01 of Org1MSP made trees of the model, and would belong to Org2MSP" in str(what)
