"""What one member tries against the others, on live peers: each attack is refused, or does no harm."""

import json
from dataclasses import replace

import pytest
from support.channel import admin1, admin2, auditor1, auditor2, client_of
from support.federation import nodes, running_process
from support.player import EXECUTION, MODEL, N_NEW, N_SHARE, Player, fitted, played, shared
from support.probe import Probe, refusal

from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator

pytestmark = pytest.mark.usefixtures("network")


@pytest.fixture(scope="module")
def process(network: None) -> str:
    return running_process(iterations=2)


@pytest.fixture(scope="module")
def sharers(process: str) -> list[Player]:
    """Two nodes that have shared in the first iteration."""
    return shared([Player(member, process) for member in nodes()])


def test_t1_a_write_that_comes_through_the_probe_is_refused(process: str) -> None:
    """Fabric drops the events of a chaincode that another one calls: nobody would hear of it."""
    relayed = ("relay", "orchestration", json.dumps(["Abort", process, "unheard"]))
    assert refusal(Probe(client_of(admin2)).submit, *relayed).code == "ACCESS_CHAINCODE"
    asked = ("relay", "orchestration", json.dumps(["Get", process]))
    assert json.loads(Probe(client_of(admin2)).evaluate(*asked))["status"] == "running"


def test_fabrics_tools_find_the_functions_of_every_chaincode() -> None:
    for chaincode in ("image", "orchestration", EXECUTION, MODEL, "probe"):
        found = auditor1.cli.evaluate(chaincode, "org.hyperledger.fabric:GetMetadata")
        named = [each["name"] for each in found["contracts"][chaincode]["transactions"]]
        listed = auditor1.evaluate(chaincode, "metadata")["functions"]
        assert named == [each["name"] for each in listed]


def test_h13_a_key_that_somebody_else_made_opens_no_task_and_is_not_lost_to_its_owner(process: str) -> None:
    owner, thief = (Player(member, running_process(iterations=1)) for member in nodes())
    call = owner.call_open()
    thief.process = owner.process
    *theirs, opening, proof, profile = thief.call_open()
    stolen = opening | {"public_key": str(owner.key.verify_key)}
    for claimed in (proof, call[-2]):
        assert thief.member.code(*theirs, stolen, claimed, profile) == "SIGNATURE_INVALID"
    owner.member.submit(*call)


def test_h15_a_tree_that_was_never_offered_is_not_passed_on(sharers: list[Player]) -> None:
    first, second = sharers
    other = Player(first.member, running_process(iterations=1))
    other.open()
    call, options = other.call_share(fitted(second.node)[:1])
    assert other.member.code(*call, **options) == "ESTIMATOR_NOT_HELD"


def test_h14_a_tree_that_another_shares_first_stops_nobody_and_is_marked() -> None:
    victim, thief = (Player(member, "") for member in nodes())
    victim.process = thief.process = running_process(iterations=1)
    tree = fitted(victim.node)[0].tree
    for player in (thief, victim):
        player.open()
        player.share((Estimator(EstimatorId(player.node, 0), tree),))
    found = auditor2.cli.evaluate(EXECUTION, "Twins", victim.process, str(tree.digest))["items"]
    assert {twin["id"] for twin in found} == {f"{victim.node}/0000", f"{thief.node}/0000"}
    lineage = auditor2.evaluate(EXECUTION, "Lineage", victim.process, f"{victim.node}/0000")
    assert [twin["id"] for twin in lineage["twins"]] == [f"{thief.node}/0000"]


def test_h14_a_tree_that_a_node_took_is_not_shared_as_its_own() -> None:
    """The node holds it from its neighbour, and gives it the next name of its own."""
    process = running_process(iterations=2)
    thief, victim = played([Player(member, process) for member in nodes()])
    taken = max(fitted(victim.node)[:N_SHARE], key=lambda estimator: estimator.tree.n_internal)
    assert taken.id in thief.ensemble
    again = Player(thief.member, process, iteration=1, state=thief.left)
    again.open()
    call, options = again.call_share((Estimator(EstimatorId(thief.node, N_NEW), taken.tree),))
    assert again.member.code(*call, **options) == "ESTIMATOR_COPIED"


def test_h6_a_second_share_of_one_iteration_is_refused(sharers: list[Player]) -> None:
    first, second = sharers
    first.member.submit(EXECUTION, "Fail", first.process, first.node, 0, "KILLED", "a test")
    again = Player(first.member, first.process)
    again.open()
    one, other = fitted(first.node)[:2]
    for offered in ((other, one), (one,), (), (replace(one, tree=other.tree), other)):
        call, options = again.call_share(offered)
        assert again.member.code(*call, **options) == "SHARE_FIXED"
    again.share()
    # The neighbour's result is about the share as the first launch wrote it.
    for player in (second, again):
        player.complete()


def test_h11_access_to_an_initial_model_that_is_revoked_mid_run_stops_nobody() -> None:
    process = running_process(iterations=1)
    first, second = played([Player(member, process) for member in nodes()])
    first.publish()
    model = auditor1.evaluate(MODEL, "Get", first.process, first.node)
    initial = {"process": first.process, "node": first.node, "digest": model["digest"]}
    process = running_process(iterations=1, initial_model=initial)
    admin1.submit(MODEL, "Revoke", first.process, first.node, "Org2MSP")
    assert second.member.code(MODEL, "Trees", first.process, first.node) == "ACCESS_GRANT"
    read = second.member.evaluate(MODEL, "Trees", first.process, first.node, 0, 100, process)
    assert len(read["items"]) == len(first.ensemble)
    player = Player(second.member, process)
    player.open()
    player.share(fitted(first.node)[:1])
