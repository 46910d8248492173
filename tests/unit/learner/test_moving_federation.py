"""Federations that change while they run: learners and contracts come to the bytes of the simulator."""

from dataclasses import replace

import pytest
from support.memory.federation import Federation, Player
from support.memory.learners import LIMITS, PARAMETERS, Channel, Node, specification, table_of
from support.memory.ledger import RefusedError
from support.memory.scenario import NODES

from learner.outcome import StopError
from learning.ensemble import Ensemble
from learning.options import from_step
from learning.rows import Rows
from learning.simulator import Member, simulate
from learning.turns import Turn, replay
from protocol.agreement import step
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.broker.messages import BrokerRefusal
from protocol.errors import StateError
from protocol.task.result import TaskResult
from protocol.task.state import StateRecord

ROUNDS = 4
EVERYBODY = NODES | {"node06": "Org1MSP"}
QUOTA = {"home_check": None, "quota": "1.5"}
"""How many places an organisation has depends on who has joined, so a wrong membership shows."""
MODEL = {**PARAMETERS, "options": QUOTA}


def members(**when):
    """Every node with its rows, and when it takes part."""
    parameters = from_step(step.StepParameters.from_dict(MODEL))
    return {
        node: replace(Member(Rows.of(table_of(i).X, table_of(i).y), parameters), **when.get(node, {}))
        for i, node in enumerate(sorted(EVERYBODY))
    }


def channel_of(directory, **changes):
    made = specification(iterations=ROUNDS, parameters=MODEL, **changes)
    return Channel(made, directory, Federation(made))


def join(channel, node, iteration):
    """Both organisations let a node of the first one take part from an iteration on."""
    federation = channel.federation
    asked = federation.admin1.submit(
        "orchestration", "Join", federation.process, node, EVERYBODY[node], iteration
    )
    federation.agree(federation.admin2, asked)
    folder = channel.nodes["node01"].folder.parent / node
    folder.mkdir()
    (folder / "rows").write_bytes(table_of(sorted(EVERYBODY).index(node)).to_bytes())
    federation.players[node] = Player(federation, node)
    channel.nodes[node] = Node(channel, federation.players[node], folder)


def change(channel, function, *arguments):
    federation = channel.federation
    asked = federation.admin1.submit("orchestration", function, federation.process, *arguments)
    if asked["missing"]:
        federation.agree(federation.admin2, asked)


def contents(estimators):
    return [(str(estimator.id), estimator.tree.to_bytes()) for estimator in estimators]


def turns_of(channel, came_out):
    """What happened, as the results on the ledger tell it."""
    return [
        Turn(node, iteration, {slot.sender: slot.iteration for slot in result.slots})
        for (node, iteration), (result, _) in came_out.items()
    ]


def check(came_out, simulation):
    """Every task on the ledger has the ensemble that the simulator has at its place; there are no others."""
    expected = {(record.node, record.iteration): record for record in simulation.records}
    assert expected.keys() == came_out.keys()
    for place, (_, state) in came_out.items():
        assert contents(state.ensemble) == contents(expected[place].ensemble), place
        assert state.iteration == place[1] + 1


def play(channel, iteration, nodes, came_out):
    for node in channel.play(iteration, nodes):
        state = StateRecord.from_bytes(node.states[-1], LIMITS)
        came_out[node.player.node, iteration] = TaskResult.from_bytes(node.results[-1]), state


def test_c11_c12_nodes_leave_return_and_join_while_the_topology_changes(tmp_path):
    channel, came_out = channel_of(tmp_path), {}
    play(channel, 0, None, came_out)
    change(channel, "ChangeTopology", 2, {"kind": "full"})
    change(channel, "ChangeTopology", 3, {"kind": "ring"})
    join(channel, "node06", 2)
    change(channel, "Leave", "node02", 1)
    play(channel, 1, ["node01", "node03", "node04"], came_out)
    change(channel, "Join", "node02", "Org1MSP", 3)
    play(channel, 2, ["node01", "node03", "node04", "node06"], came_out)
    play(channel, 3, sorted(EVERYBODY), came_out)

    when = {"node02": {"leaves": 1, "returns": ((3, None),)}, "node06": {"joins": 2}}
    ring, full = Topology(Kind.RING), Topology(Kind.FULL)
    expected = simulate(
        members(**when),
        Schedule(ring, ((2, full), (3, ring))),
        iterations=ROUNDS,
        seed=PARAMETERS["seed"],
        organisations=EVERYBODY,
    )
    check(came_out, expected)
    again = replay(
        members(**when), turns_of(channel, came_out), seed=PARAMETERS["seed"], organisations=EVERYBODY
    )
    check(came_out, again)


def test_nodes_that_do_not_wait_are_simulated_in_the_order_in_which_they_acted(tmp_path):
    channel, came_out = channel_of(tmp_path, synchronous=False), {}
    # One runs ahead, one lags behind, and both find what is in their slots by then.
    for iteration, node in (
        (0, "node01"),
        (1, "node01"),
        (0, "node02"),
        (2, "node01"),
        (0, "node03"),
        (1, "node02"),
        (0, "node04"),
        (3, "node01"),
        (1, "node04"),
    ):
        play(channel, iteration, [node], came_out)
    assert [slot.iteration for slot in came_out["node04", 0][0].slots] == [2, 0]
    four = {node: member for node, member in members().items() if node in NODES}
    turns = turns_of(channel, came_out)
    expected = replay(four, turns, seed=PARAMETERS["seed"], organisations=NODES)
    check(came_out, expected)
    # The order is read off the turns, not off how they are listed.
    check(came_out, replay(four, turns[::-1], seed=PARAMETERS["seed"], organisations=NODES))


def test_c11_what_a_node_shared_before_it_died_is_taken_and_its_task_done_again(tmp_path):
    """Its share stands; what it does once it is started again are the same bytes, and nothing is doubled."""
    channel, came_out = channel_of(tmp_path, synchronous=False), {}
    dying = channel.nodes["node02"]
    honest = dying.slots
    dying.slots = lambda request: BrokerRefusal.of(StateError("PROCESS_NOT_RUNNING", "it died here"))
    with pytest.raises(StopError):
        channel.play(0, ["node02"])
    channel.failures.clear()
    task = ("execution-record", "Fail", channel.federation.process, "node02", 0, "EXECUTOR_LOST", "lost")
    dying.player.member.submit(*task)
    play(channel, 0, ["node01"], came_out)
    assert [slot.sender for slot in came_out["node01", 0][0].slots] == ["node02"]
    four = {node: member for node, member in members().items() if node in NODES}
    given_up = [*turns_of(channel, came_out), Turn("node02", 0, None)]
    check(came_out, replay(four, given_up, seed=PARAMETERS["seed"], organisations=NODES))

    dying.slots = honest
    play(channel, 0, ["node02"], came_out)
    assert dying.shares[0] == dying.shares[1]
    turns = turns_of(channel, came_out)
    check(came_out, replay(four, turns, seed=PARAMETERS["seed"], organisations=NODES))


def test_c12_a_node_that_left_after_it_shared_does_not_return_with_other_trees_under_their_ids(tmp_path):
    """Its neighbours may hold what it shared, and its counters begin where its last result ended."""
    channel = channel_of(tmp_path, synchronous=False)
    gone = channel.nodes["node02"]
    honest = gone.slots
    gone.slots = lambda request: BrokerRefusal.of(StateError("NODE_INACTIVE", "it left here"))
    with pytest.raises(StopError):
        channel.play(0, ["node02"])
    channel.failures.clear()
    change(channel, "Leave", "node02", 0)
    change(channel, "Join", "node02", "Org1MSP", 1)
    gone.slots = honest
    with pytest.raises(RefusedError, match="ESTIMATOR_CONFLICT"):
        channel.play(1, ["node02"])


def test_a_federation_that_starts_from_a_model_counts_on_from_it(tmp_path):
    first = simulate(
        {node: member for node, member in members().items() if node in NODES},
        Schedule(Topology(Kind.RING)),
        iterations=2,
        seed=PARAMETERS["seed"],
        organisations=NODES,
    )
    model = Ensemble(tuple(sorted(first.states["node01"].ensemble, key=lambda estimator: estimator.id)))
    going_on = simulate(
        {node: member for node, member in members().items() if node in NODES},
        Schedule(Topology(Kind.RING)),
        iterations=1,
        seed=PARAMETERS["seed"],
        organisations=NODES,
        model=model,
    )
    own = [estimator.id.counter for estimator in model if estimator.id.creator == "node01"]
    assert going_on.states["node01"].first == max(own) + 1
    assert (
        going_on.states["node03"].counter
        == max((e.id.counter + 1 for e in model if e.id.creator == "node03"), default=0) + PARAMETERS["n_new"]
    )
