"""The experiment on privacy: what estimators that know their rows by heart give away, and what helps."""

from pathlib import Path

import numpy as np
import pytest

from experiments import privacy_page
from experiments.privacy import (
    ANOMALIES,
    ROWS,
    Leak,
    PrivacyResult,
    Setting,
    attack,
    closeness,
    halved,
    joined,
    settings,
    shipped_way,
)
from experiments.split import NodeData
from learning.fit_options import FitOptions
from learning.parameters import Defaults
from protocol.trees.tree import Tree


@pytest.fixture(scope="module")
def node() -> NodeData:
    """Rows whose labels can only be learnt by heart."""
    rng = np.random.default_rng(7)
    return NodeData("node01", rng.normal(size=(400, 4)), (rng.random(400) < 0.3).astype(np.int8))


def leak(node: NodeData, group: str = ROWS, **options: object) -> Leak:
    return joined([attack(node, FitOptions("plain", **options), seed)[group] for seed in range(2)])


def test_half_of_either_class_are_members_by_the_seed_alone(node: NodeData) -> None:
    chosen = halved(node.y, 5)
    for label in (0, 1):
        mine = chosen[node.y == label]
        assert abs(int(mine.sum()) * 2 - len(mine)) <= 1
    assert chosen.tolist() == halved(node.y, 5).tolist() != halved(node.y, 6).tolist()


def test_trees_that_know_their_rows_by_heart_give_them_away_and_larger_leaves_less(node: NodeData) -> None:
    for group, least in ((ROWS, 0.75), (ANOMALIES, 0.9)):
        by_heart, floored = leak(node, group), leak(node, group, min_leaf=40)
        assert by_heart.auc > least
        assert floored.auc < by_heart.auc - 0.2
        assert floored.found < by_heart.found


def test_rows_beside_a_threshold_are_closest_to_it() -> None:
    stump = Tree.from_arrays([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0.0, 1.0])
    X = np.array([[0.49], [0.9], [-3.0], [np.nan]])
    assert np.argsort(-closeness([stump], X)).tolist()[:3] in ([0, 1, 3], [0, 1, 2])


def test_every_way_and_floor_is_attacked_and_the_shipped_way_is_measured() -> None:
    asked = settings()
    assert len(asked) == len(set(asked)) == 23
    assert Setting(Defaults.fit) in asked
    assert {setting.fit.kind for setting in shipped_way(asked)} == {Defaults.fit.kind}


def test_the_page_and_the_answer_hold_every_setting(tmp_path: Path) -> None:
    result = PrivacyResult((0,))
    for setting in settings(quick=True):
        result.leaks[setting] = {ROWS: Leak(0.5, 0.01), ANOMALIES: Leak(0.75, 0.25)}
        result.quality[setting] = {"precision": 0.9, "recall": 0.8, "ap": 0.85}
    privacy_page.write_privacy(result, tmp_path, tmp_path)
    page = (tmp_path / "results.md").read_text()
    assert "| balanced, min_leaf 5 |          0.500 | 0.010 |           0.750 | 0.250 |" in page
    assert len((tmp_path / "privacy-membership.csv").read_text().splitlines()) == 3
    shown = privacy_page.privacy_json(result)["membership"]
    assert isinstance(shown, list)
    assert shown[0]["anomalies"] == {"auc": 0.75, "found": 0.25}
    assert shown[0]["quality"]["recall"] == 0.8
