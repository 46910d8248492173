"""Whole rounds: byte for byte those of the simulator, accepted by the real contracts, the same every time."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.memory.broker_double import serving
from support.memory.learners import LIMITS, PARAMETERS, RING, ROUNDS, WAIT, Channel, specification, table_of
from support.memory.scenario import NODES, changed

from learning.options import from_step
from learning.rows import Rows
from learning.simulator import Member, simulate
from protocol.agreement import step
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.broker.messages import Verb
from protocol.digest import Digest
from protocol.task.result import TaskResult
from protocol.task.state import StateRecord
from protocol.trees.share import Share, ShareLimits


def simulated(kind=Kind.RING, iterations=ROUNDS, **changes):
    parameters = from_step(step.StepParameters.from_dict(PARAMETERS | changes))
    members = {
        node: Member(Rows.of(table_of(i).X, table_of(i).y), parameters)
        for i, node in enumerate(sorted(NODES))
    }
    graph, seed = Schedule(Topology(kind)), PARAMETERS["seed"]
    return simulate(members, graph, iterations=iterations, seed=seed, organisations=NODES)


def contents(estimators):
    return [(str(estimator.id), estimator.tree.to_bytes()) for estimator in estimators]


@pytest.fixture(scope="module")
def ring():
    """Three rounds of four nodes on a ring, all played; nobody changes them."""
    with TemporaryDirectory(prefix="ring-") as folder:
        channel = Channel(RING, Path(folder))
        for iteration in range(ROUNDS):
            channel.play(iteration)
        yield channel


def test_three_rounds_on_a_ring_are_those_of_the_simulator_byte_for_byte(ring):
    expected = simulated()
    records = {(record.node, record.iteration): record for record in expected.records}
    for name, node in ring.nodes.items():
        for round_ in range(ROUNDS):
            record = records[name, round_]
            share = Share.from_bytes(node.shares[round_], ShareLimits(3), LIMITS)
            assert share.ids == record.share.ids
            result = TaskResult.from_bytes(node.results[round_])
            assert result.ensemble == record.ensemble.ids
            state = StateRecord.from_bytes(node.states[round_], LIMITS)
            assert contents(state.ensemble) == contents(record.ensemble)
            assert (state.iteration, state.seed, state.first) == (round_ + 1, 42, 0)
        assert node.state.created == expected.states[name].created
    assert any(len(node.result.slots) == 2 for node in ring.nodes.values())


def test_the_ledger_has_what_the_learners_sent(ring):
    for name, node in ring.nodes.items():
        for iteration in range(ROUNDS):
            task = node.player.member.evaluate(
                "execution-record", "GetTask", ring.federation.process, name, iteration
            )
            result = TaskResult.from_bytes(node.results[iteration])
            assert task["state"] == "completed"
            assert task["outcome"]["ensemble_digest"] == str(result.ensemble_digest)
            assert result.state == Digest.of(node.states[iteration])


def test_metrics_are_counts_and_sizes(ring):
    for node in ring.nodes.values():
        metrics = node.result.metrics
        assert sorted(metrics) == [
            "creators", "ensemble", "offered", "own", "refused", "share_bytes", "state_bytes"
        ]  # fmt: skip
        assert all(type(value) is int for value in metrics.values())
        assert metrics["ensemble"] == len(node.result.ensemble) == 8
        assert metrics["share_bytes"] == len(node.shares[-1])
        assert metrics["state_bytes"] == len(node.states[-1])
        assert metrics["offered"] == sum(len(slot.taken) + len(slot.refused) for slot in node.result.slots)


def test_what_is_said_holds_ids_and_sizes_alone(ring):
    said = ring.nodes["node01"].said
    assert said[:4] == [
        "task fraud-2026/node01/0, 2 neighbours",
        "FIT: 4 estimators from 0",
        f"SHARE: 3 estimators, {len(ring.nodes['node01'].shares[0])} bytes",
        "GET: 2 slots, 0 refused; 8 kept",
    ]


def test_b8_no_private_key_is_on_the_ledger_or_in_what_a_learner_says_and_leaves(ring):
    nodes, federation = ring.nodes.values(), ring.federation
    seen = [value for changes in federation.changes.values() for _, _, value in changes if value is not None]
    seen += [payload for _, _, payload in federation.events]
    seen += ["\n".join(node.said).encode() for node in nodes]
    seen += [path.read_bytes() for node in nodes for path in node.folder.iterdir() if path.is_file()]
    everything = b"\n".join(seen).lower()
    seeds = [seed for node in nodes for seed in node.seeds]
    assert len(set(seeds)) == ROUNDS * len(NODES)
    for seed in seeds:
        assert seed.hex().encode() not in everything
        for spelling in (seed, base64.b64encode(seed), base64.urlsafe_b64encode(seed)):
            assert spelling.rstrip(b"=").lower() not in everything


def test_the_same_round_again_gives_the_same_bytes_with_another_key(tmp_path):
    sent = []
    for attempt in ("first", "second"):
        channel = Channel(RING, tmp_path / attempt)
        for player in channel.federation.players.values():
            player.keys = {"first": 0, "second": 100}[attempt]
        for iteration in range(2):
            channel.play(iteration)
        sent.append([(node.shares, node.results, node.states) for node in channel.nodes.values()])
    assert sent[0] == sent[1]


def test_a_process_of_its_own_sends_the_same_bytes(ring, tmp_path):
    """As the container runs it; in the second round, which goes on from a state, with the same answers."""
    node, dialogue = ring.nodes["node01"], ring.nodes["node01"].dialogues[1]
    (tmp_path / "rows").write_bytes((node.folder / "rows").read_bytes())
    (tmp_path / "state").write_bytes(node.states[0])
    answers = iter(dialogue)
    with serving(tmp_path, lambda _: next(answers)[1]) as broker:
        ran = subprocess.run(
            [sys.executable, "-I", "-B", "-m", "learner", str(tmp_path)],
            input=node.seeds[1],
            capture_output=True,
            env={"PATH": os.environ["PATH"]},
            timeout=WAIT,
            check=False,
        )
    assert (ran.returncode, ran.stdout) == (0, b""), ran.stderr
    assert [request.to_bytes() for request in broker.asked] == [asked.to_bytes() for asked, _ in dialogue]
    assert [request.verb for request in broker.asked] == [Verb.TASK, Verb.SHARE, Verb.SLOTS, Verb.COMPLETE]
    assert ran.stderr.decode().splitlines() == [f"learner: {line}" for line in node.said[5:10]]


def test_nodes_without_neighbours_fit_and_crop_and_ask_for_no_slots(tmp_path):
    alone = RING | {"topology": {"kind": "disconnected"}}
    channel = Channel(alone, tmp_path)
    expected = simulated(Kind.DISCONNECTED)
    for iteration in range(ROUNDS):
        for node in channel.nodes.values():
            node.player.open(iteration)
            asked = node.run().asked
            assert [request.verb for request in asked] == [Verb.TASK, Verb.COMPLETE]
            assert node.result.slots == ()
    for name, node in channel.nodes.items():
        assert contents(node.state.ensemble) == contents(expected.states[name].ensemble)


def test_a_single_step_is_one_fit_without_neighbours(tmp_path):
    single = changed("steps", 0, "parameters", PARAMETERS)
    single["steps"][0] |= {"kind": "single"}
    del single["steps"][0]["iterations"]
    channel = Channel(single, tmp_path)
    for node in channel.play(0):
        assert node.shares == []
        assert len(node.result.created) == 4
        assert node.result.metrics["share_bytes"] == 0


def test_composite_processes_go_on_with_another_seed_and_other_counts(tmp_path):
    composite = specification(iterations=1)
    second = PARAMETERS | {"seed": 7, "n_new": 2, "n_max": 6}
    image = composite["steps"][0]["image"]
    composite["steps"].append({"name": "refine", "image": image, "iterations": 1, "parameters": second})
    channel = Channel(composite, tmp_path)
    channel.play(0)
    for node in channel.play(1):
        assert (node.state.seed, len(node.state.ensemble), len(node.state.created)) == (7, 6, 6)


def test_asynchronous_rounds_take_what_is_there(tmp_path):
    channel = Channel(specification(synchronous=False), tmp_path)
    early = channel.nodes["node01"]
    channel.play(0, ["node01"])
    assert early.result.slots == ()
    channel.play(0, ["node02"])
    channel.play(1, ["node02"])
    late = channel.nodes["node02"].result
    assert [(slot.sender, slot.iteration) for slot in late.slots] == [("node01", 0)]
    channel.play(1, ["node01"])
    assert [(slot.sender, slot.iteration) for slot in early.result.slots] == [("node02", 1)]


def test_own_parameters_of_a_node_hold(tmp_path):
    own = specification(overrides={"node02": {"n_new": 2, "options": {"fit": "plain"}}})
    channel = Channel(own, tmp_path)
    channel.play(0)
    assert {name: len(node.result.created) for name, node in channel.nodes.items()} == {
        "node01": 4, "node02": 2, "node03": 4, "node04": 4
    }  # fmt: skip


def test_refused_estimators_are_named_with_their_reason(tmp_path):
    strict = {"home_check": {"max_alarms": "0.0", "min_found": "1.0", "enough_anomalies": 1}}
    parameters = PARAMETERS | {"options": strict}
    channel = Channel(changed("steps", 0, "parameters", parameters, base=RING), tmp_path)
    channel.play(0)
    expected = simulated(iterations=1, options=strict)
    for record in expected.records:
        slots = channel.nodes[record.node].result.slots
        refused = {id_: reason for slot in slots for id_, reason in slot.refused}
        assert refused == {refusal.id: refusal.reason for refusal in record.refusals}
        for slot in slots:
            assert not {*slot.taken} & {*refused}
    assert any(record.refusals for record in expected.records)


def test_a_node_that_left_and_joined_again_goes_on_from_its_state(tmp_path):
    channel = Channel(RING, tmp_path)
    channel.play(0)
    node, federation = channel.nodes["node01"], channel.federation
    before = node.state
    federation.admin1.submit("orchestration", "Leave", federation.process, "node01", 1)
    federation.admin1.submit("orchestration", "Join", federation.process, "node01", "Org1MSP", 2)
    channel.play(1, [name for name in channel.nodes if name != "node01"])
    channel.play(2)
    assert (before.iteration, node.state.iteration) == (1, 3)
    assert node.state.created[:4] == before.created
    assert len(node.state.created) == 8
