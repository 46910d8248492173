"""`executor launch` on the live network: whole federations, equal to the simulator's byte for byte."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker import DockerClient
from support.channel import unique
from support.commands import done
from support.launching import (
    PATIENCE,
    SMALL,
    blocks_about,
    caught_up,
    digest_of,
    executor,
    height,
    launch,
    launched,
    ledger,
    nothing_is_left,
    running,
    simulated,
    store_of,
    task_of,
)
from support.printed import Ran

from executor.sandbox.profile import ENTRY_POINT
from learning.simulator import Simulation
from protocol.identifiers import EstimatorId

RING = {"node01": "org1", "node02": "org1", "node06": "org2"}
ROUNDS = 2


@dataclass(frozen=True)
class Finished:
    """A process that both organisations launched until it was completed."""

    process: str
    launches: list[Ran]


@pytest.fixture(scope="module")
def finished(learner: str, rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A ring of two organisations: agreed on by the commands that people type, then launched side by side."""
    process = unique("ring")
    file = tmp_path_factory.mktemp("federation") / "federation.json"
    schema = {"schema_from": str(rows.parent / "node01.csv"), "label": "Class"}
    fields = {"process": process, "nodes": RING, "image": learner, "iterations": ROUNDS, **SMALL, **schema}
    file.write_text(json.dumps(fields))
    done("process", "create", "--spec", str(file))
    for organisation in ("org1", "org2"):
        done("process", "accept", process, "--spec", str(file), organisation=organisation)
    done("process", "start", process)
    return Finished(process, both(process, rows, "--until-complete"))


@pytest.fixture(scope="module")
def expected(rows: Path) -> Simulation:
    return simulated(rows, tuple(RING), ROUNDS)


def both(process: str, rows: Path, *arguments: str) -> list[Ran]:
    """Launch the two organisations side by side, as two operators do, in processes of their own."""

    def one(organisation: str, *nodes: str) -> Ran:
        words = ("--organisation", organisation, "--data", str(rows), "--timeout", PATIENCE, "--json", *nodes)
        return executor("launch", "--process", process, *words, *arguments)

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(one, "org1", "--all-local"), pool.submit(one, "org2")]
        launches = [each.result() for each in asked]
    for ran in launches:
        assert ran.code == 0, ran.out + ran.err
    caught_up()
    return launches


def test_a_dry_run_shows_plan_and_profile_and_changes_nothing(
    learner: str, rows: Path, docker_client: DockerClient
) -> None:
    process = running(learner, rows, RING)
    before = height()
    ran = launch(process, "--node", "node01", "--data", str(rows), "--dry-run")
    assert ran.code == 0
    (plan,) = ran.answer["plans"]
    assert (plan["node"], plan["iteration"], plan["neighbours"]) == ("node01", 0, ["node02", "node06"])
    profile = plan["sandbox"]["profile"]
    assert profile["entry_point"] == list(ENTRY_POINT)
    assert (profile["network"], profile["read_only_root"], profile["user"]) == ("none", True, "10001:10001")
    assert profile["image_id"] == plan["image"]["image_id"]
    assert blocks_about(process, before) == []
    assert list(ledger().execution.list_tasks(process)) == []
    nothing_is_left(docker_client, process, "node01")


def test_two_organisations_learn_what_the_simulator_learns(
    finished: Finished, expected: Simulation, docker_client: DockerClient
) -> None:
    for ran in finished.launches:
        for node in ran.answer["nodes"]:
            assert [summary["iteration"] for summary in node["rounds"]] == list(range(ROUNDS))
            assert set(node["rounds"][0]["transactions"]) == {"open", "share", "complete"}
            assert node["finished"]["model"] == node["rounds"][-1]["ensemble_digest"]
        assert "FIT" in ran.err
    check_ledger(finished.process, expected)
    for node, organisation in RING.items():
        nothing_is_left(docker_client, finished.process, node, organisation)


def check_ledger(process: str, expected: Simulation) -> None:
    """Compare every round's share and ensemble, every shared tree's bytes, and the models."""
    assert ledger().orchestration.status(process).status == "completed"
    record = ledger("org1", "node01").execution
    results = {(found.node, found.iteration): found for found in record.artifacts(process)}
    assert len(results) == len(RING) * ROUNDS
    for record_in_memory in expected.records:
        place = record_in_memory.node, record_in_memory.iteration
        assert results[place].ensemble_digest == digest_of(record_in_memory.ensemble), place
        offered = task_of(process, *place).offered
        assert offered is not None
        assert offered.ids == record_in_memory.share.ids, place
    trees = {each.id: each.tree for ensemble in expected.ensembles().values() for each in ensemble}
    found = record.estimators(process, sorted(trees))
    assert found.estimators
    for entry in found.estimators:
        assert base64.b64decode(entry.tree) == trees[entry.id].to_bytes()
    models = {model.node: model for model in ledger().models.list(process)}
    assert {node: model.digest for node, model in models.items()} == {
        node: digest_of(ensemble) for node, ensemble in expected.ensembles().items()
    }


def test_a_launch_with_nothing_left_to_do_does_nothing(finished: Finished) -> None:
    """The data is remembered from the launch before, or not even needed."""
    before = height()
    reports = launched(finished.process, "--all-local", "--until-complete")
    assert [report["rounds"] for report in reports] == [[], []]
    assert {report["finished"]["process"] for report in reports} == {"completed"}
    assert blocks_about(finished.process, before) == []


def test_the_same_round_run_twice_gives_byte_identical_trees(
    finished: Finished, learner: str, rows: Path
) -> None:
    """Another process with the same seed and data: other ids, keys and states, and the same trees."""
    again = running(learner, rows, RING)
    both(again, rows)
    for node in RING:
        first, second = task_of(finished.process, node), task_of(again, node)
        for name in ("share", "created", "ensemble", "ensemble_digest"):
            assert getattr(first.outcome, name) == getattr(second.outcome, name), (node, name)
        assert first.offered.ids == second.offered.ids
        assert first.opening.public_key != second.opening.public_key
        assert first.opening.data != second.opening.data


def test_nodes_that_do_not_wait_and_then_one_that_starts_from_their_model(
    learner: str, rows: Path, docker_client: DockerClient
) -> None:
    """Asynchronous first; then a node without neighbours that goes on from the published model."""
    nodes = {"node01": "org1", "node02": "org1"}
    # So few rows say nothing about the trees of others.
    untested = {"home_check": None}
    first = running(learner, rows, nodes, synchronous=False, iterations=2, options=untested)
    (alone,) = launched(first, "--node", "node02", "--iterations", "2", "--data", str(rows))
    assert len(alone["rounds"]) == 2
    (taking,) = launched(first, "--node", "node01", "--until-complete", "--data", str(rows))
    assert taking["rounds"][0]["taken"] == 2
    assert taking["finished"]["process"] == "completed"

    model = ledger().models.get(first, "node01")
    initial = {"process": first, "node": "node01", "digest": str(model.digest)}
    second = running(learner, rows, {"node01": "org1"}, topology="disconnected", initial_model=initial)
    words = ("--organisation", "org1", "--until-complete", "--data", str(rows), "--timeout", PATIENCE)
    ran = executor("launch", "--process", second, *words)
    assert ran.code == 0, ran.err
    assert "node01" in ran.out
    assert "the process is completed" in ran.out
    task = task_of(second, "node01")
    assert task.offered is None
    before = {member.id for member in ledger().models.members(first, "node01").estimators}
    after = {member.id for member in task.outcome.ensemble}
    # Own trees go on counting where the model's end.
    created = {member.id for member in task.outcome.created}
    assert created == {EstimatorId("node01", counter) for counter in range(6, 9)}
    assert after <= before | created
    assert after & before
    assert after & created
    nothing_is_left(docker_client, second, "node01")
    assert (store_of(second, "node01").directory.stat().st_mode & 0o777) == 0o700
