"""Federations in memory: the same bits as by plain prediction, for any number of processes."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.comparison import ComparisonPlan
from experiments.data import synthetic
from experiments.engine import Case, Engine, dealt, make_topology, run_cases
from experiments.methods import PAPER, rules, run_methods
from experiments.methods_page import methods_json
from experiments.paper import PaperResult, run_paper
from experiments.paper_page import _section, paper_json, paper_text
from experiments.scenes import scenes
from experiments.split import Split, split
from experiments.variants import Choices, Variant, compared, home_threshold, paper_variant
from learning.actions import predictor
from learning.errors import ParameterError
from learning.fit_cache import FitCache
from learning.parameters import Parameters
from learning.rows import Rows
from protocol.defence import Membership


@pytest.fixture(scope="module")
def small_split() -> Split:
    return split(synthetic(900, 5, 0.1, seed=3), nodes=4, seed=5)


def test_variants_are_named_by_what_differs() -> None:
    names = [v.name for v in Choices(fit=("plain", "balanced"), quota=(None, 2.0)).variants()]
    assert names == ["plain, no quota", "plain, quota 2", "balanced, no quota", "balanced, quota 2"]
    assert [v.name for v in Choices().variants()] == ["default"]
    assert Choices().variants()[0].parameters == Parameters()


def test_paper_variant_has_no_defence() -> None:
    parameters = paper_variant().parameters
    assert (parameters.fit.kind, parameters.ranking, parameters.threshold) == ("plain", "kernel", 0.5)
    assert parameters.quota is parameters.vote_cap is parameters.home_check is None


def test_what_ships_is_reported_in_raw_units_since_nobody_may_pool_rows(small_split: Split) -> None:
    raw = [*Choices().variants(), *(rule for rule in rules(20) if rule.name != PAPER)]
    raw += [scene.case().variant for scene in scenes()]
    engine = Engine(small_split, 0, FitCache())
    assert all(engine.parameters(variant).kernel == Parameters().kernel for variant in raw)
    assert engine.parameters(paper_variant()).kernel != Parameters().kernel


def test_remembered_scores_equal_prediction(small_split: Split) -> None:
    engine = Engine(small_split, 0, FitCache())
    variant = Variant("v", Parameters(n_new=3, n_max=6, n_share=3))
    case = Case(variant, "full", iterations=2)
    outcome = engine.run(case)
    names = list(engine.rows)
    parameters = replace(variant.parameters, members=Membership.of(dealt(names, 4)))
    for i, ensemble in enumerate(engine.simulate(case).ensembles().values()):
        expected = predictor(names[i], ensemble, parameters).scores(small_split.X_test)
        assert np.array_equal(outcome.scores[i], expected)


def test_processes_do_not_change_results(small_split: Split) -> None:
    cases = [
        Case(Variant("v", Parameters(n_new=2, n_max=4, n_share=2)), t, iterations=2) for t in ("ring", "full")
    ]
    one, two = (run_cases(small_split, (0, 1), cases, lambda _: None, jobs=jobs) for jobs in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert [run.seed for run in first] == [0, 1]
        assert all(np.array_equal(a.scores, b.scores) for a, b in zip(first, second, strict=True))


def test_home_threshold_needs_anomalies_and_foreign_trees(small_split: Split) -> None:
    engine = Engine(small_split, 0, FitCache())
    ensembles = engine.simulate(
        Case(Variant("v", Parameters(n_new=3, n_max=6, n_share=3)), "full", iterations=2)
    ).ensembles()
    name, ensemble = next(iter(ensembles.items()))
    rows = engine.rows[name]
    tuned = home_threshold(name, ensemble, Parameters(), rows)
    assert 0 < tuned < 1
    few = Rows.of(rows.X, np.zeros(len(rows)))
    assert home_threshold(name, ensemble, Parameters(), few) == 0.5
    own = type(ensemble).of(e for e in ensemble if e.id.creator == name)
    assert home_threshold(name, own, Parameters(), rows) == 0.5


def test_unknown_topology_is_refused() -> None:
    assert make_topology("random:0.5", ("a", "b"), 0)
    for name in ("star", "random:x", "random:2"):
        with pytest.raises(ParameterError):
            make_topology(name, ("a", "b"), 0)


@pytest.fixture(scope="module")
def paper_split() -> Split:
    return split(synthetic(1000, 4, 0.1, seed=3))


@pytest.fixture(scope="module")
def second_seed(paper_split: Split) -> PaperResult:
    return run_paper(paper_split, (1,), lambda _: None, rankings=("kernel", "random"))


def test_paper_experiment_runs_on_any_rows(second_seed: PaperResult) -> None:
    report = paper_json(second_seed)
    assert report["table_exact"] is False
    assert report["seeds"] == [1]
    missed = [goal.text for goal in second_seed.goals() if not goal.met]
    assert report["missed_by_seed"] == {"1": missed}
    assert second_seed.repeated


def test_the_paper_page_says_what_one_seed_would_miss(paper_split: Split, second_seed: PaperResult) -> None:
    """Seed by seed from its own runs: what the mean of seeds meets, one of them may not."""
    steps: list[str] = []
    result = run_paper(paper_split, (0, 1), steps.append, rankings=("kernel", "random"))
    assert len(steps) == (20 * 4 + 5) * 2
    missed = result.missed_by_seed()
    assert [*missed] == [0, 1]
    assert missed[1] == second_seed.missed()
    counts = "; ".join(f"seed {seed}: {len(goals)} of 13" for seed, goals in missed.items())
    for text in (paper_text(result), _section(result)):
        assert f"Goals missed by each seed alone: {counts}." in text


def test_methods_are_compared_without_attack() -> None:
    parts = split(synthetic(300, 3, 0.2, seed=3), nodes=4, seed=1)
    result = run_methods(parts, (0,), lambda _: None)
    report = methods_json(result, None)
    assert isinstance(report["cases"], list)
    assert len(report["cases"]) == len(result.runs) == 4 + 5 * 2 + 1
    assert result.goals()


def test_what_cannot_be_run_is_refused_before_any_fit() -> None:
    variants = compared({})
    assert len(ComparisonPlan(variants, ("ring",), ("zero",), hostile=2, nodes=3).cases()) == 2
    for topology, hostile in (("star", 2), ("ring", 3), ("ring", -1)):
        with pytest.raises(ParameterError):
            ComparisonPlan(variants, (topology,), ("zero",), hostile=hostile, nodes=3)


def test_a_comparison_takes_two_splits_and_a_look_takes_one() -> None:
    table = synthetic(900, 5, 0.1, seed=3)
    for given, seeds in (({}, [45]), ({"fit": ("plain", "balanced")}, [45, 46])):
        assert [
            part.seed for part in ComparisonPlan(compared(given), ("ring",), nodes=4).splits(table)
        ] == seeds
