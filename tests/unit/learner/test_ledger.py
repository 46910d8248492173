"""The learner and the ledger's rules together: starting from a model, rounds done again, brokers that lie."""

from dataclasses import replace

import pytest
from support.memory.broker_double import HangUpError
from support.memory.federation import EXECUTION, MODEL
from support.memory.learners import LIMITS, RING, Channel, specification
from support.memory.ledger import RefusedError

from learner.outcome import Exit, StopError
from protocol.broker.answers import SlotsAnswer
from protocol.broker.messages import Answer, Verb
from protocol.task.opening import TaskId
from protocol.task.result import TaskResult
from protocol.task.state import StateRecord
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.trees.tree import Tree

STUMP = Tree.from_arrays([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1.0])


@pytest.fixture
def channel(tmp_path):
    return Channel(RING, tmp_path)


def publish(node):
    """Publish a node's last ensemble, with the trees that were never shared, and return its digest."""
    state, member, process = node.state, node.player.member, node.channel.federation.process
    ids = [str(estimator.id) for estimator in state.ensemble]
    unshared = member.evaluate(EXECUTION, "Estimators", process, ids)["missing"]
    trees = Share(tuple(estimator for estimator in state.ensemble if str(estimator.id) in unshared))
    member.submit(
        MODEL, "Publish", process, node.player.node, ids, str(state.ensemble_digest), {}, str(trees.digest),
        transient={"trees": trees.to_bytes()},
    )  # fmt: skip
    return str(state.ensemble_digest)


def test_a_second_process_starts_from_the_model_of_the_first(tmp_path):
    first = Channel(specification(iterations=1), tmp_path / "first")
    first.play(0)
    digest, model = publish(first.nodes["node01"]), first.nodes["node01"].state.ensemble
    federation, process = first.federation, "second"
    initial = {"process": federation.process, "node": "node01", "digest": digest}
    made = specification(iterations=2) | {"process": process, "initial_model": initial}
    federation.scientist1.submit("orchestration", "Create", made)
    for caller in (federation.admin1, federation.admin2):
        caller.submit("orchestration", "Accept", process)
    federation.admin1.submit("orchestration", "Start", process)
    trees = federation.auditor1.evaluate(MODEL, "Trees", initial["process"], "node01")["items"]
    federation.process = process

    second = Channel(made, tmp_path / "second", federation)
    second.model = trees
    for name, node in second.nodes.items():
        node.player.state = None
        state = StateRecord.initial(TaskId(process, name, 0), 42, model)
        (node.folder / "state").write_bytes(state.to_bytes())
    for iteration in range(2):
        second.play(iteration)
    own = [estimator.id.counter for estimator in model if estimator.id.creator == "node01"]
    assert second.nodes["node01"].state.first == max(own) + 1
    for node in second.nodes.values():
        assert node.result.first == node.state.first + 4
        assert node.state.process == process


def test_b9_a_round_that_failed_after_share_is_done_again_with_the_same_trees(channel):
    node = channel.nodes["node01"]
    node.player.open(0)
    node.slots = hang_up
    with pytest.raises(StopError) as stop:
        node.run()
    assert stop.value.exit_code is Exit.BROKER
    del node.slots
    process = channel.federation.process
    node.player.member.submit(EXECUTION, "Fail", process, "node01", 0, "EXECUTOR_KILLED", "it died")
    channel.play(0)
    assert node.shares[0] == node.shares[1]
    assert node.result.first == 0


def hang_up(request):
    raise HangUpError


def lying(node, alter):
    """Let the broker of a node alter what the slots hold."""
    honest = node.slots

    def slots(request):
        return alter(SlotsAnswer.of(honest(request))).to_answer()

    node.slots = slots


def refused_code(channel):
    with pytest.raises(RefusedError) as refusal:
        channel.play(0)
    return refusal.value.code


def test_a_broker_that_alters_a_tree_and_its_digest_alike_is_found_by_the_ledger(channel):
    def alter(said):
        bundle = Share.from_bytes(said.bundle, ShareLimits(99), LIMITS)
        altered = {estimator.id: Estimator(estimator.id, STUMP) for estimator in bundle.estimators}
        offers = tuple(
            replace(offer, share=Share(tuple(altered[id_] for id_ in offer.ids)).digest)
            for offer in said.offers
        )
        return SlotsAnswer(offers, Share(tuple(altered.values())).to_bytes())

    lying(channel.nodes["node01"], alter)
    assert refused_code(channel) == "RESULT_SLOT"


def test_a_broker_that_hides_a_neighbour_is_found_by_the_ledger(channel):
    def alter(said):
        kept = said.offers[:1]
        bundle = Share.from_bytes(said.bundle, ShareLimits(99), LIMITS)
        estimators = tuple(member for member in bundle.estimators if member.id in kept[0].ids)
        return SlotsAnswer(kept, Share(estimators).to_bytes())

    lying(channel.nodes["node01"], alter)
    assert refused_code(channel) == "RESULT_SLOT"


def test_f12_a_broker_that_keeps_the_result_to_itself_leaves_nothing_on_the_ledger(channel):
    node = channel.nodes["node01"]

    def swallow(request):
        node.results.append(request.blobs[0])
        return Answer(Verb.COMPLETE)

    node.complete = swallow
    channel.play(0)
    task = node.player.member.evaluate(EXECUTION, "GetTask", channel.federation.process, "node01", 0)
    assert task["outcome"] is None
    assert TaskResult.from_bytes(node.results[0]).first == 0
