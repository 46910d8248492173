"""Many nodes in one block (E9), the same bytes on every peer (E12), times that go back (E15), and speed."""

import copy
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from support.memory.federation import EXECUTION, NODES, TWO_ROUNDS, Federation
from support.memory.ledger import VALID
from support.memory.transcript import transcript, trees

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.task.result import TaskResult, ensemble_digest

ROOT = Path(__file__).parents[3]
NAMES = [f"node{number:02d}" for number in range(20)]
TWENTY = TWO_ROUNDS | {
    "nodes": {name: f"Org{1 + number % 2}MSP" for number, name in enumerate(NAMES)},
    "topology": {"kind": "full"},
}


def twenty_nodes():
    specification = copy.deepcopy(TWENTY)
    specification["steps"][0]["parameters"]["n_max"] = 500
    return Federation(specification)


def endorsed(player, call):
    arguments, options = call
    made = player.member.endorse(*arguments, **options)
    assert made.status == 200, made.message
    return made


def test_e9_twenty_nodes_in_one_block_do_not_conflict():
    federation = twenty_nodes()
    players = [federation.players[name] for name in NAMES]
    opened = [endorsed(player, (player.call_open(0), {})) for player in players]
    assert federation.commit(opened) == [VALID] * 20
    assert federation.commit([endorsed(player, player.call_share()) for player in players]) == [VALID] * 20
    completed = [endorsed(player, player.call_complete()) for player in players]
    assert federation.commit(completed) == [VALID] * 20


def test_e9_rounds_that_drift_apart_do_not_conflict():
    """One node completes, opens, and shares its next round in the blocks in which the others complete."""
    federation = Federation()
    for player in federation.players.values():
        player.open(0)
        player.share()
    first, second, third, fourth = federation.players.values()
    first.complete()
    block = [endorsed(first, (first.call_open(1), {})), endorsed(second, second.call_complete())]
    assert federation.commit(block) == [VALID] * 2
    block = [endorsed(first, first.call_share()), endorsed(third, third.call_complete())]
    block.append(endorsed(fourth, fourth.call_complete()))
    assert federation.commit(block) == [VALID] * 3


def test_e9_submitting_functions_read_no_ranges():
    federation = Federation()
    player = federation.players["node01"]
    for other in federation.players.values():
        other.open(0)
    assert not endorsed(player, player.call_share()).ranges
    for other in federation.players.values():
        other.share()
    assert not endorsed(player, player.call_complete()).ranges


def another_peer(hash_seed):
    """The transcript of an interpreter of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "support.memory.transcript"],
        cwd=ROOT / "tests",
        input=trees(),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def test_e12_two_interpreters_with_other_hash_seeds_endorse_the_same_bytes_for_every_function():
    here = transcript()
    assert another_peer("8" if os.environ.get("PYTHONHASHSEED") == "7" else "7") == here
    called = {(chaincode, function) for chaincode, function, _ in here}
    # Advance and BindInitial are no client's to call; Complete and Start do.
    assert called == {
        (name, function)
        for name, contract in Federation().contracts.items()
        for function in {*contract.functions} - {"metadata", "Advance", "BindInitial"}
    }


def test_e15_times_that_go_back_are_recorded_as_claimed():
    federation = Federation()
    player = federation.players["node01"]
    player.open(0)
    player.share(time=federation.time - timedelta(days=1))
    parts = [federation.process, "node01", "0"]
    changes = federation.auditor1.evaluate(EXECUTION, "History", "task", parts)["items"]
    assert [change["value"]["state"] for change in changes] == ["shared", "open"]
    assert changes[0]["time"] < changes[1]["time"]


def test_e14_nodes_whose_clocks_are_days_apart_finish_a_round_together():
    federation = Federation()
    clocks = {node: federation.time + timedelta(days=3 * place) for place, node in enumerate(NODES)}
    for node, player in federation.players.items():
        player.open(0, time=clocks[node])
        player.share(time=clocks[node])
    for node, player in federation.players.items():
        player.complete(time=clocks[node])
    found = federation.auditor1.evaluate(EXECUTION, "Artifacts", federation.process, 0)["items"]
    assert sorted(result["node"] for result in found) == sorted(NODES)


def test_e14_a_clock_that_is_days_ahead_ends_nobody_elses_task():
    federation = Federation()
    federation.players["node01"].open(0)
    later = federation.time + timedelta(days=30)
    task = (EXECUTION, "Expire", federation.process, "node01", 0)
    assert federation.nodes["node03"].code(*task, time=later) == "ACCESS_ORGANISATION"
    assert federation.nodes["node02"].code(*task) == "TASK_NOT_EXPIRED"
    # Its own organisation may be wrong at its own cost: the task is then launched again.
    assert federation.nodes["node02"].submit(*task, time=later)["state"] == "expired"


def test_a_share_of_ten_real_trees_takes_at_most_15_ms(processor_seconds):
    """The whole transaction, the chaincodes it calls included."""
    federation = Federation()
    player = federation.players["node01"]
    player.open(0)
    arguments, options = player.call_share()
    assert player.member.endorse(*arguments, **options).status == 200
    assert processor_seconds(lambda: player.member.endorse(*arguments, **options), times=9) < 0.015


@pytest.mark.parametrize("function", ["Share", "Complete", "OpenTask", "Fail", "Refuse", "Expire"])
def test_wrong_argument_counts_are_refused(function):
    federation = Federation()
    assert federation.nodes["node01"].code(EXECUTION, function) == "BAD_ARGUMENT_COUNT"


def test_a_result_of_six_thousand_estimators_is_recorded():
    """The largest ensembles a process may have make records of more than a megabyte."""
    specification = copy.deepcopy(TWO_ROUNDS) | {"topology": {"kind": "disconnected"}}
    specification["steps"][0]["parameters"] |= {"n_new": 6000, "n_max": 6000}
    federation = Federation(specification)
    player = federation.players["node01"]
    player.open(0)
    digest = Digest.of(b"a tree that stays home")
    members = {EstimatorId("node01", counter): digest for counter in range(6000)}
    player.after = members
    result = TaskResult(
        0, (digest,) * 6000, (), tuple(members), ensemble_digest(list(members.items())), digest, {}
    )
    assert player.complete(result)["next_counter"] == 6000
    (found,) = federation.auditor1.evaluate(EXECUTION, "Artifacts", federation.process)["items"]
    assert len(found["ensemble"]) == 6000
