"""The experiment with hostile members: who is measured, what is kept, and what the page says of itself."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import adversary, adversary_page, scenes
from experiments.adversary import AdversaryResult, Stage, run_adversary
from experiments.adversary_page import adversary_json, adversary_text
from experiments.data import DataTable, synthetic
from experiments.kept import Kept
from experiments.scenes import (
    ATTACKS,
    CLEAN,
    DEFAULT,
    ECLIPSES,
    FULL,
    HOSTILE,
    MANY,
    RING,
    SPREAD_ATTACKS,
    VICTIMS,
    Scene,
)
from learning import attacks


@pytest.fixture(scope="module")
def table() -> DataTable:
    return synthetic(600, 3, 0.2, seed=3)


@pytest.fixture
def two_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what ships, where it matters who is measured and not how well they do."""
    monkeypatch.setattr(scenes, "ITERATIONS", 2)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Scene]:
    """Two scenes of four nodes, where it does not matter which are run."""
    attacked = Scene("zero", (1,), 4, RING, DEFAULT)
    found = [attacked.base, attacked]
    monkeypatch.setattr(adversary, "scenes", lambda **_: found)
    return found


@pytest.mark.usefixtures("two_iterations")
def test_h16_the_table_of_attacks_measures_the_honest_nodes_alone(table: DataTable) -> None:
    steps: list[str] = []
    result = run_adversary(table, 1, steps.append, quick=True, splits=(45,))
    assert len(steps) == len(result.scenes) == 8
    report = adversary_json(result)
    rows = report["attacks"]
    assert isinstance(rows, list)
    assert {(row["attack"], row["topology"]) for row in rows} == {
        (attack, topology) for attack in ("zero", "one", "accord") for topology in ("full", "ring")
    }
    keys = {"attack", "hostile", "nodes", "topology", "defence", "recall", "precision", "worst_recall"}
    more = {"clean_recall", "clean_precision", "worst_mean_recall", "worst_precision", "spread", "victim"}
    assert {*rows[0]} == keys | more
    assert {(row["hostile"], row["nodes"], row["defence"]) for row in rows} == {(5, 20, "default")}
    assert next(scene for scene in result.scenes if scene.hostile).honest == [*range(5), *range(10, 20)]
    assert report["seeds"] == {"45": [0]}
    assert "one organisation of four" in adversary_text(result)


def test_every_attack_of_the_simulator_is_in_the_table() -> None:
    assert set(ATTACKS) == set(attacks.ATTACKS)
    run = {(scene.attack, len(scene.hostile), scene.nodes, scene.topology) for scene in scenes.scenes()}
    assert {(a, n, 20, t) for a in ATTACKS for n in (1, 3, 5) for t in ("full", "ring")} < run
    assert {(a, 1, 4, "ring") for a in ATTACKS} < run


def test_h16_hostile_nodes_of_several_organisations_act_together_in_the_table(table: DataTable) -> None:
    spread = [scene for scene in scenes.scenes() if scene.spread]
    assert {(scene.attack, scene.topology) for scene in spread} == {
        (attack, topology) for attack in SPREAD_ATTACKS for topology in (FULL, RING)
    }
    scene = Scene("accord", HOSTILE["spread"], MANY, FULL, DEFAULT)
    assert scene in spread
    engine = Stage(table, 45, 0, [scene])._engine(MANY)
    members = dict(engine._membership(scene.case()).nodes)
    names = [f"node{place:02d}" for place in scene.hostile]
    assert len({members[name] for name in names}) == len(names)


@pytest.mark.usefixtures("two_iterations")
@pytest.mark.parametrize("attack", ECLIPSES)
def test_h16_an_eclipse_is_by_both_ring_neighbours_and_its_victim_is_held_against_itself_alone(
    table: DataTable, attack: str
) -> None:
    found = {scene.victim: scene for scene in scenes.scenes() if scene.attack == attack}
    assert tuple(found) == VICTIMS
    victim = VICTIMS[0]
    scene = found[victim]
    assert scene.hostile == (victim - 1, victim + 1)
    assert scene.honest == [victim]
    assert scene.base == Scene(CLEAN, (), MANY, "disconnected", DEFAULT)
    engine = Stage(table, 45, 0, [scene])._engine(MANY)
    told = engine.simulate(scene.case())
    hostile = {f"node{place:02d}" for place in scene.hostile}
    records = [record for record in told.records if record.node == f"node{victim:02d}"]
    assert all(set(record.share.recipients) == hostile for record in records)
    assert {r.id.creator for record in records for r in record.refusals} <= hostile
    held = set(records[-1].ensemble.origins()) - {records[-1].node}
    assert held <= hostile, "all that the victim has from others is the attackers'"


def test_processes_do_not_change_what_is_measured_and_what_was_kept_is_not_run_again(
    table: DataTable, few: list[Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    one = run_adversary(table, 1, steps.append, quick=True, splits=(45,))
    two = run_adversary(table, 1, steps.append, quick=True, splits=(45,), jobs=2, kept=Kept(tmp_path))
    monkeypatch.setattr(Stage, "_engine", lambda *_: pytest.fail("run again"))
    again = run_adversary(table, 1, steps.append, quick=True, splits=(45,), kept=Kept(tmp_path))
    assert len(steps) == 3 * len(few)
    for other in (two, again):
        assert [(scene, values.tobytes()) for scene, values in other.runs[45, 0].items()] == [
            (scene, values.tobytes()) for scene, values in one.runs[45, 0].items()
        ]


def test_a_process_that_has_whole_stages_measures_the_same(table: DataTable, few: list[Scene]) -> None:
    steps: list[str] = []
    seeds: list[int] = []
    one, two = (
        run_adversary(
            table,
            1,
            steps.append,
            splits=(45, 46),
            jobs=jobs,
            after=lambda so_far: seeds.append(len(so_far.runs)),
        )
        for jobs in (1, 2)
    )
    assert seeds == [2, 2], "the page is written when all splits of a seed are there"
    assert steps == 2 * [title for part in (45, 46) for title in [f"split {part}, seed 0"] * len(few)]
    assert [values.tobytes() for run in one.runs.values() for values in run.values()] == [
        values.tobytes() for run in two.runs.values() for values in run.values()
    ]


def test_old_figures_are_not_taken_for_others(table: DataTable, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene("zero", (5, 6), MANY, RING, DEFAULT)
    stage = Stage(table, 45, 0, [scene], made="made by this")
    keys = {stage._key(scene)}
    for changes in ({"part": 46}, {"seed": 1}, {"made": "other code or rows"}):
        keys.add(replace(stage, **changes)._key(scene))  # type: ignore[arg-type]
    keys.add(stage._key(replace(scene, hostile=(5, 7))))
    monkeypatch.setattr(scenes, "ITERATIONS", 5)
    keys.add(stage._key(scene))
    assert len(keys) == 6


def test_the_code_that_attacks_and_defends_counts_as_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.kept import DECIDING, ROOT, _sources

    names = {str(file.relative_to(ROOT)) for part in DECIDING for file in _sources(ROOT / part)}
    assert {
        "learning/attacks.py",
        "learning/hostile_trees.py",
        "learning/robust.py",
        "learning/_kernel.c",
        "protocol/defence.py",
        "protocol/trees/encoding_v2.py",
    } <= names
    assert all((ROOT / "experiments" / f"{name}.py").is_file() for name in adversary.MODULES)


def test_the_worst_node_is_of_a_single_run_and_the_mean_of_seeds_stands_beside_it() -> None:
    scene = Scene("zero", (1,), 4, RING, DEFAULT)
    metrics = np.full((4, 5), 0.9)
    bad = metrics.copy()
    bad[2, adversary.RECALL] = 0.1
    bad[1, adversary.RECALL] = 0.0
    runs = {(45, 0): {scene: metrics, scene.base: metrics}, (45, 1): {scene: bad, scene.base: metrics}}
    (row,) = AdversaryResult(2, False, runs).rows()
    assert row.worst_recall == 0.1
    assert row.worst_mean_recall == pytest.approx(0.5)


def test_the_page_is_written_after_each_seed_and_says_what_made_it(
    table: DataTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stage, "_run", lambda _, scene: np.full((scene.nodes, 5), 0.9))
    pages: list[str] = []

    def after(so_far: AdversaryResult) -> None:
        adversary_page.write_adversary(so_far, tmp_path, tmp_path)
        pages.append((tmp_path / "results.md").read_text())

    run_adversary(table, 2, lambda _: None, quick=True, splits=(45,), after=after)
    first, last = pages
    assert "seeds by split: split 45: 1 (1 of 2: the run was not ended)" in first
    assert "seeds by split: split 45: 2 (all)" in last
    assert "Estimator format 2; code " in last
    assert "thresholds moved by 1e-06" in last
    for name in ("numpy", "scikit-learn"):
        assert f"{name} " in last
    assert first.endswith("<!-- robust: end -->\n")
