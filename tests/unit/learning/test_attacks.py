"""Hostile nodes of the simulator: each attack does what it says, made for the check in force."""

from dataclasses import replace

import numpy as np
import pytest

from learning import attacks
from learning.accord import SAID
from learning.attacks import Attack
from learning.errors import ParameterError
from learning.fit import FitTask, fit
from learning.fit_cache import FitCache
from learning.fit_options import FitOptions
from learning.hostile_trees import MARGIN, bounds
from learning.kernel import gram
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.reach import OwnFit, own_reach
from learning.robust import HomeBehaviour, HomeCheck
from learning.rows import Rows
from learning.simulator import Member, simulate
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.trees.tree import TreeLimits

CONSTANT = {"zero": {0.0}, "one": {1.0}, "grey": {0.5, 0.5000001}}
LOOSE = HomeCheck(max_alarms=0.3, min_found=0.03)
"""The check of the card transactions, whose frauds no single estimator tells well."""
OPTIONS = FitOptions("balanced")


@pytest.fixture
def rows(make_rows):
    return make_rows(n=1500)


def made(kind, rows, check=None, seen=(), n_new=4):
    task = FitTask("node03", 0, 0, n_new, 1, OPTIONS, TreeLimits(rows.n_features, 1000, format=2))
    return [e.tree for e in attacks.fit(Attack(kind, check or HomeCheck()), rows, task, seen)]


def leaves(trees):
    return set(np.concatenate([tree.value[tree.is_leaf] for tree in trees]).tolist())


def own(rows):
    return OwnFit("node03", 1, OPTIONS, TreeLimits(rows.n_features, 1000, format=2))


def test_every_attack_has_a_test_here():
    tested = {*CONSTANT, "noise", "mimic", "main-leaf", "inverted", "shadow", "accord", "murmur"}
    assert set(attacks.ATTACKS) == tested


@pytest.mark.parametrize("kind", attacks.ATTACKS)
def test_an_attack_is_the_same_each_time(rows, kind):
    assert made(kind, rows) == made(kind, rows)


@pytest.mark.parametrize("kind", CONSTANT)
def test_zero_one_and_grey_say_the_same_of_all_rows_in_big_trees(rows, kind):
    trees = made(kind, rows)
    assert leaves(trees) == CONSTANT[kind]
    assert {tree.n_internal for tree in trees} == {60}


def test_noise_has_learned_nothing_about_anomalies(rows):
    found = [HomeBehaviour.of(tree, rows) for tree in made("noise", rows)]
    assert max(abs(one.anomalous - one.normal) for one in found) < 0.1
    assert all(one.highest == 1.0 for one in found)


def test_mimic_finds_a_few_of_the_own_anomalies_and_is_big(rows):
    for tree in made("mimic", rows):
        alarmed = Predictor.of([tree]).scores(rows) > 0.5
        assert 1 <= int(alarmed[rows.y == 1].sum()) <= 12
        assert tree.n_internal > 60


@pytest.mark.parametrize("check", [HomeCheck(), LOOSE, HomeCheck(min_found=0.2)])
def test_h16_main_leaf_finds_what_the_check_in_force_asks_for_and_little_more(rows, check):
    leaf = 0.15
    for tree in made("main-leaf", rows, check):
        found = HomeBehaviour.of(tree, rows)
        assert check.accepts(found, rows, 0.3)
        assert check.min_found <= found.anomalous <= check.min_found + MARGIN + leaf
        assert leaves([tree]) == {0.0, 1.0}
        assert tree.n_internal > 60


@pytest.mark.parametrize("check", [HomeCheck(), LOOSE, HomeCheck(max_alarms=0.1, min_found=0.2)])
def test_h16_inverted_passes_with_as_many_alarms_and_as_few_finds_as_the_check_lets(rows, check):
    for tree in made("inverted", rows, check):
        found = HomeBehaviour.of(tree, rows)
        assert check.accepts(found, rows, 0.3)
        assert found.normal == pytest.approx(0.9 * check.max_alarms, abs=0.002)
        (plain,) = made("main-leaf", rows, check, n_new=1)
        assert found.anomalous <= HomeBehaviour.of(plain, rows).anomalous + 0.1


def test_h16_inverted_ranks_normal_rows_above_anomalies_where_the_check_is_loose(rows):
    found = [HomeBehaviour.of(tree, rows) for tree in made("inverted", rows, LOOSE)]
    assert np.mean([one.normal for one in found]) > np.mean([one.anomalous for one in found])


def test_h16_where_own_trees_find_little_attackers_are_made_for_what_they_reach():
    rng = np.random.default_rng(2)
    hard = Rows.of(rng.normal(size=(600, 3)), rng.random(600) < 0.2)
    reach = own_reach(hard, own(hard))
    assert reach is not None
    strict, relative = HomeCheck(), HomeCheck(of_own=0.7)
    assert bounds(hard, own(hard), strict) == (0.5, 0.01)
    found, alarms = bounds(hard, own(hard), relative)
    assert found == pytest.approx(0.7 * reach.anomalous)
    assert alarms == pytest.approx(reach.normal / 0.7)
    assert bounds(hard, own(hard), None) == (0.0, 1.0)
    means = [
        np.mean([HomeBehaviour.of(tree, hard).anomalous for tree in made("main-leaf", hard, check)])
        for check in (strict, relative)
    ]
    assert means[1] < means[0]


def test_missing_values_go_the_same_way_in_an_enlarged_tree(make_rows):
    gaps = make_rows(n=1500, missing=0.3)
    for tree in made("main-leaf", gaps):
        assert HomeCheck().accepts(HomeBehaviour.of(tree, gaps), gaps, 0.3)


def test_shadow_copies_what_it_saw_and_explains_it_away(rows):
    limits = TreeLimits(rows.n_features, 1000, format=2)
    seen = fit(rows, FitTask("node00", 0, 0, 3, 5, OPTIONS, limits))
    for model, copy in zip(seen, made("shadow", rows, LOOSE, seen, n_new=3), strict=True):
        assert copy.feature.tolist() == model.tree.feature.tolist()
        assert copy != model.tree
        k = gram([model.tree, copy])
        assert k[0, 1] / np.sqrt(k[0, 0] * k[1, 1]) > 0.999
        found = HomeBehaviour.of(copy, rows).anomalous
        assert 0.03 <= found < HomeBehaviour.of(model.tree, rows).anomalous


def test_a_shadow_that_has_seen_nothing_is_fitted_once_for_all_federations(make_rows, monkeypatch):
    parameters = Parameters(n_new=2, n_share=2, n_max=20, home_check=LOOSE)
    members = {f"node0{i}": Member(make_rows(i, n=300), parameters) for i in range(3)}
    members["node02"] = Member(members["node02"].rows, parameters, attack="shadow")
    cache, made_of = FitCache(), []
    fitted = attacks.fit
    monkeypatch.setattr(
        attacks, "fit", lambda *given: made_of.append(bool(given[3:] and given[3])) or fitted(*given)
    )
    ran = [
        simulate(members, Schedule(Topology(Kind.FULL)), iterations=2, cache=cache).states for _ in range(2)
    ]
    assert made_of == [False, True, True]
    assert ran[0] == ran[1]


def test_h16_hostile_members_know_the_check_that_their_federation_agreed_on(make_rows):
    """What they send is what an attack on these parameters makes, not one on the shipped ones."""
    loose = Parameters(n_new=2, n_share=2, n_max=20, home_check=LOOSE)
    members = {f"node0{i}": Member(make_rows(i, n=1500), loose) for i in range(4)}
    members["node03"] = Member(members["node03"].rows, loose, attack="main-leaf")
    ran = simulate(members, Schedule(Topology(Kind.FULL)), iterations=1)
    sent = [e.tree for e in ran.states["node00"].ensemble if e.id.creator == "node03"]
    assert sent
    found = [HomeBehaviour.of(tree, members["node00"].rows).anomalous for tree in sent]
    assert max(found) < 0.4


@pytest.mark.parametrize("together", [None, 0.05])
def test_h16_nodes_in_accord_send_one_tree_with_other_branches(make_rows, together):
    """Made from the rows of the one with most anomalies, of the same rows it says the same everywhere."""
    check = HomeCheck(max_alarms=0.3, min_found=0.2, together=together)
    parameters = Parameters(n_new=3, n_share=3, n_max=20, home_check=check)
    members = {f"node0{i}": Member(make_rows(i, n=1500), parameters) for i in range(4)}
    hostile = {name: replace(members[name], attack="accord") for name in ("node01", "node02")}
    cache = FitCache()
    ran = simulate(members | hostile, Schedule(Topology(Kind.FULL)), iterations=1, cache=cache)
    sent = [e.tree for name in hostile for e in ran.states[name].ensemble if e.id.creator in hostile]
    assert len({tree.digest for tree in sent}) == 6
    richest = max((members[name].rows for name in hostile), key=lambda rows: int(rows.y.sum()))
    said = {Predictor.of([tree]).scores(richest).tobytes() for tree in sent}
    assert len(said) == 1
    found = HomeBehaviour.of(sent[0], richest)
    assert found.anomalous >= 0.2
    assert found.normal <= 0.3 * (together or 1.0)


def test_h16_nodes_that_murmur_doubt_more_rows_than_may_be_alarmed_and_say_less_of_each(make_rows):
    rows = make_rows(n=8000)
    check = HomeCheck(max_alarms=0.1, min_found=0.2)
    tree, other = made("murmur", rows, check, n_new=2)
    assert tree != other
    said = Predictor.of([tree]).scores(rows)
    assert (said == Predictor.of([other]).scores(rows)).all()
    doubted = said[rows.y == 0]
    assert set(doubted[(doubted > 0.0) & (doubted < 1.0)]) == {SAID}
    assert (doubted == SAID).sum() > check.rows_together(rows)
    assert (doubted > 0.3).sum() > 2 * check.rows_together(rows)
    assert check.accepts(HomeBehaviour.of(tree, rows), rows, 0.3)


def test_without_a_rule_for_all_together_a_murmur_is_bounded_by_that_for_each(rows):
    loose = HomeCheck(max_alarms=0.1, min_found=0.2, together=None)
    for tree in made("murmur", rows, loose):
        assert 0.0 < HomeBehaviour.of(tree, rows).normal <= loose.max_alarms


def test_in_accord_without_an_anomaly_to_learn_from_nothing_is_found(rows):
    quiet = Rows.of(rows.X, np.zeros(len(rows)))
    assert {tree.n_nodes > 1 for tree in made("accord", quiet)} == {True}


@pytest.mark.parametrize("kind", ["accord", "murmur"])
def test_a_single_row_is_enough_to_agree_on_a_tree(rows, kind):
    assert len(made(kind, Rows.of(rows.X[:1], rows.y[:1]))) == 4


def test_a_check_with_a_memory_makes_the_same_attack():
    class Remembering(HomeCheck):
        pass

    parameters = Parameters(home_check=Remembering(0.3, 0.03))
    assert Attack.on(parameters, "main-leaf") == Attack("main-leaf", LOOSE)
    assert Attack.on(Parameters(home_check=None), "zero") == Attack("zero", None)


def test_an_unknown_attack_is_refused(rows):
    with pytest.raises(ParameterError, match="flood"):
        made("flood", rows)
