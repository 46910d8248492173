"""A federation of boosted estimators on the live network: the same images, chaincodes and commands."""

import base64
import json
from dataclasses import replace
from pathlib import Path

from support.commands import done
from support.launching import SMALL, digest_of, launched, ledger, load_rows, running, task_of

from learning.fit_options import FitOptions
from learning.parameters import Parameters
from learning.rows import Rows
from learning.simulator import Member, Simulation, simulate
from protocol.agreement.topology import Kind, Schedule, Topology

NODES = {"node01": "org1", "node02": "org1"}
ROUNDS = 1


def simulated(rows: Path) -> Simulation:
    counts = {name: SMALL[name] for name in ("n_new", "n_share", "n_max")}
    parameters = replace(Parameters(**counts), fit=FitOptions("boosted"))
    members = {}
    for node in NODES:
        table = load_rows(Path(str(rows).format(node=node)), "Class").table
        members[node] = Member(Rows.of(table.X, table.y), parameters)
    ring = Schedule(Topology(Kind.RING))
    return simulate(members, ring, iterations=ROUNDS, seed=SMALL["seed"], organisations=NODES)


def test_containers_boost_what_the_simulator_boosts_and_the_model_leaves_as_onnx(
    learner: str, rows: Path, tmp_path: Path
) -> None:
    process = running(learner, rows, NODES, iterations=ROUNDS, estimator_kind="boosted")
    launched(process, "--all-local", "--until-complete", "--data", str(rows))
    expected = simulated(rows)
    for record in expected.records:
        outcome = task_of(process, record.node, record.iteration).outcome
        assert outcome.ensemble_digest == digest_of(record.ensemble)
    trees = {each.id: each.tree for ensemble in expected.ensembles().values() for each in ensemble}
    found = ledger("org1", "node01").execution.estimators(process, sorted(trees)).estimators
    assert found
    for entry in found:
        assert base64.b64decode(entry.tree) == trees[entry.id].to_bytes()
    exported = done("model", "export", process, "node01", "--out", str(tmp_path))
    assert exported["trees"] == len(expected.ensembles()["node01"])
    written = json.loads((tmp_path / "model.json").read_bytes())
    assert {entry["format"] for entry in written["estimators"]} == {0x81}
    assert (tmp_path / "model.onnx").stat().st_size > 0
