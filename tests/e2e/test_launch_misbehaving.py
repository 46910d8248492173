"""Learners that misbehave, through `executor launch`: each has its exit code, and its code on the ledger.

One image holds every behaviour, and the first value of the node's rows chooses one. A task that came to
nothing is opened anew by the next launch, so that one process serves all cases in any order.
"""

import errno
import functools
import importlib.util
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.altered_images import derived
from support.launching import (
    containers_of,
    launch,
    ledger,
    nothing_is_left,
    published,
    running,
    store_of,
    task_of,
)
from support.network import ROOT
from support.printed import Ran

from executor.launch.reasons import OTHERWISE, SENTENCES
from executor.launch.relay import TaskRelay
from executor.launch.store import NodeStore
from protocol.digest import Digest

SCRIPT = ROOT / "tests/e2e/learners/misbehaving.py"
PACKAGE = "opt/venv/lib/python3.11/site-packages/learner"
# The image's compiled files are used unseen; an empty one sends the interpreter to the source.
FILES = {
    f"{PACKAGE}/__main__.py": SCRIPT.read_bytes(),
    f"{PACKAGE}/__pycache__/__main__.cpython-311.pyc": b"",
}


@functools.cache
def behaviours() -> list[str]:
    spec = importlib.util.spec_from_file_location("misbehaving", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.BEHAVIOURS)


@pytest.fixture(scope="module")
def image(docker_client: DockerClient, learner_id: Digest, learner: str) -> Iterator[str]:
    """After the learner image, whose layers the registry then has."""
    with derived(docker_client, learner_id, FILES) as made:
        yield published(docker_client, "attestree/misbehaving", made)


@pytest.fixture(scope="module")
def process(image: str, rows: Path) -> str:
    """A path of four nodes, none of which waits for another, and one node by itself; none ever completes."""
    nodes = [f"node{i:02}" for i in range(1, 6)]
    edges = [list(pair) for pair in itertools.pairwise(nodes[:4])]
    return running(
        image, rows, dict.fromkeys(nodes, "org1"), topology={"edges": edges}, synchronous=False, iterations=2
    )


@pytest.fixture
def misbehave(process: str, rows: Path, tmp_path: Path, docker_client: DockerClient) -> Any:
    """Launch a node whose rows choose a behaviour; afterwards nothing may be left of the round."""

    def once(behaviour: str, node: str = "node01", *arguments: str, process: str = process) -> Ran:
        header, first, *others = Path(str(rows).format(node=node)).read_text().splitlines()
        chosen = ",".join([str(float(behaviours().index(behaviour))), *first.split(",")[1:]])
        path = tmp_path / f"{node}.csv"
        path.write_text("\n".join([header, chosen, *others, ""]))
        ran = launch(process, "--node", node, "--data", str(path), *arguments)
        nothing_is_left(docker_client, process, node)
        return ran

    return once


CASES = {
    "f11": ("leaves without a result", "node01", 1, "LEARNER_NO_RESULT"),
    "f12": ("fails after sharing", "node02", 1, "LEARNER_FAILED"),
    "f13": ("eats memory", "node01", 1, "LEARNER_MEMORY", "--memory", "64"),
    "f7-endless-loop": ("loops", "node01", 3, "LEARNER_TIMEOUT", "--timeout", "3"),
    "b3": ("signs with another key", "node01", 11, "SIGNATURE_INVALID"),
    "malformed-frame": ("sends noise", "node01", 14, "FRAME_VERSION"),
    "d19": ("shares a pickle", "node01", 14, "TREE_VERSION"),
    "d15": ("shares under a forged name", "node04", 13, "ESTIMATOR_NOT_HELD"),
    "d21": ("shares too much", "node01", 14, "SHARE_COUNT"),
    "state-not-named": ("keeps another state", "node05", 14, "RECORD_VALUE"),
    "state-of-no-use": ("strands its node", "node05", 14, "RECORD_VALUE"),
    "words-of-its-own": ("asks in words of its own", "node01", 14, "FRAME_VERB"),
    "slot-not-filled": ("takes from nobody", "node05", 13, "RESULT_SLOT"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_misbehaviour_has_its_exit_code_and_its_code_on_the_ledger(
    misbehave: Any, process: str, case: str
) -> None:
    behaviour, node, exit_code, code, *arguments = CASES[case]
    ran = misbehave(behaviour, node, *arguments)
    assert (ran.code, ran.error["code"]) == (exit_code, code), ran.error
    assert ran.error["cause"]
    assert ran.error["remedy"]
    task = task_of(process, node)
    assert (task.state, task.closed.code) == ("failed", code)
    # What every organisation reads for good is a sentence of ours, whatever the learner said.
    assert task.closed.reason in {*SENTENCES.values(), OTHERWISE}
    assert task.outcome is None
    assert (task.offered is not None) == (case == "f12")


def test_f1_f4_f5_f6_f7_every_door_of_the_sandbox_is_shut(misbehave: Any, process: str) -> None:
    """Egress, names, the engine's socket, writes, devices, a full disk, a fork bomb: none of them works."""
    ran = misbehave("reaches out")
    assert ran.code == 1
    assert "ended with 42" in ran.error["cause"], ran.error
    assert "doors tried: 12, open: none" in ran.error["remedy"]
    assert task_of(process, "node01").closed.code == "LEARNER_FAILED"


def test_f7_f9_a_flooded_log_is_cut_and_none_of_it_reaches_the_ledger(misbehave: Any, process: str) -> None:
    """What a learner writes may hold rows: the operator sees the end of it, the ledger nothing."""
    ran = misbehave("floods the log")
    assert (ran.code, ran.error["code"]) == (1, "LEARNER_FAILED")
    assert len(ran.error["remedy"]) < 5000
    assert "zzz" in ran.error["remedy"]
    assert "\x1b" not in ran.error["remedy"]
    closed = task_of(process, "node01").closed
    assert (closed.code, closed.reason) == ("LEARNER_FAILED", SENTENCES["LEARNER_FAILED"])


def test_g9_a_full_disk_is_the_hosts_fault_and_its_paths_stay_here(
    misbehave: Any, process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(store: NodeStore, _: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(store.directory))

    monkeypatch.setattr(NodeStore, "keep_state", full)
    ran = misbehave("honest", "node05")
    assert (ran.code, ran.error["code"]) == (1, "HOST_FAILED")
    assert str(store_of(process, "node05").directory) in ran.error["cause"]
    closed = task_of(process, "node05").closed
    assert (closed.code, closed.reason) == ("HOST_FAILED", SENTENCES["HOST_FAILED"])


def test_a_container_killed_while_it_waits_ends_the_round_at_once(
    learner: str, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may be made to wait for neighbours on behalf of a learner that is gone."""
    process = running(learner, rows, {"node01": "org1", "node02": "org1"})
    waited = TaskRelay.slots

    def kill_first(relay: TaskRelay) -> Any:
        (container,) = containers_of(docker_client, process, "node01")
        docker_client.api.kill(container)
        return waited(relay)

    monkeypatch.setattr(TaskRelay, "slots", kill_first)
    ran = launch(process, "--node", "node01", "--data", str(rows))
    assert (ran.code, ran.error["code"]) == (1, "LEARNER_FAILED")
    assert "137" in ran.error["cause"]
    assert task_of(process, "node01").closed.code == "LEARNER_FAILED"
    nothing_is_left(docker_client, process, "node01")


def test_after_failures_the_node_completes(misbehave: Any, image: str, rows: Path) -> None:
    """The same task, with the honest behaviour: failures leave nothing behind that would hinder it."""
    nodes, edges = {"node01": "org1", "node02": "org1"}, [["node01", "node02"]]
    process = running(image, rows, nodes, topology={"edges": edges}, synchronous=False, iterations=2)
    for behaviour, code in (("leaves without a result", 1), ("sends noise", 14)):
        assert misbehave(behaviour, process=process).code == code
    ran = misbehave("honest", process=process)
    assert ran.code == 0, ran.out
    task = task_of(process, "node01")
    assert (task.state, task.attempt) == ("completed", 3)
    (summary,) = ran.answer["nodes"][0]["rounds"]
    check_lost_state(process, rows, Digest.parse(summary["state"]))


def check_lost_state(process: str, rows: Path, digest: Digest) -> None:
    """A state that is gone, or is another, starts no round: the task is not even opened."""
    path = store_of(process, "node01").directory / "states" / digest.hex
    kept = path.read_bytes()
    for content, code in ((None, "STATE_MISSING"), (kept + b"x", "STATE_MISMATCH")):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        ran = launch(process, "--node", "node01", "--data", str(rows))
        assert (ran.code, ran.error["code"]) == (13, code)
        path.write_bytes(kept)
    assert [task.iteration for task in ledger().execution.list_tasks(process, "node01")] == [0]
