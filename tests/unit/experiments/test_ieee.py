"""The experiment on card transactions: what alerts are worth, drift, and what is reported."""

from pathlib import Path

import numpy as np
import pytest

from experiments import ieee_page
from experiments.alerts import REVIEW, cost_of_none, daily_alerts, measure_alerts, recall_at
from experiments.drift import COLUMNS, DriftCase, DriftEngine
from experiments.ieee import IeeeResult, cases, measured, pieces, run_ieee
from experiments.ieee_choice import Candidate, Choice, choice_grid, choice_json, run_choice
from experiments.ieee_settings import BOOSTED, CHOSEN, FOREST, LARGE_LATEST, LARGEST, SETTINGS, Setting
from experiments.kept import Kept
from experiments.transactions import Transactions
from experiments.windows import DAY, AlertTest, WindowedSplit, windowed
from learning.fit_options import FitOptions
from learning.kernel import MAX_INTERNAL
from learning.parameters import Parameters
from learning.reach import OwnFit
from learning.robust import HOME_CHECK, HomeCheck
from learning.rows import Rows
from protocol.trees.boosted import Boosted

SMALL = Parameters(
    n_new=1, n_share=1, fit=FitOptions("balanced", max_depth=2), home_check=HomeCheck(0.5, 0.2, of_own=None)
)


def alert_test(y: list[int], day: list[int], amount: list[float]) -> AlertTest:
    columns = np.array(amount, np.float32)
    return AlertTest(columns[:, None], np.array(y, np.int8), np.array(day), columns)


def test_a_budget_is_of_each_day_and_equal_scores_go_to_the_earlier_rows() -> None:
    day = np.array([1, 1, 1, 1, 2, 2, 3])
    scores = np.array([0.2, 0.9, 0.9, 0.9, 0.1, 0.0, 0.0])
    assert daily_alerts(day, scores, 2).tolist() == [False, True, True, False, True, False, False]


def test_cost_is_what_was_missed_and_what_was_looked_into() -> None:
    test = alert_test([1, 0, 1, 0], [1, 1, 2, 2], [100.0, 5.0, 40.0, 7.0])
    found = measure_alerts(test, np.array([0.9, 0.1, 0.1, 0.8]), budget=1)
    assert found.precision_at_budget == 0.5
    assert found.cost == (40.0 + 2 * REVIEW) / 2
    assert cost_of_none(test) == 70.0
    assert measure_alerts(test, np.zeros(4), budget=1).cost == 70.0


def test_recall_is_the_most_that_some_threshold_has_with_that_precision() -> None:
    test = alert_test([1, 0, 1, 0, 0, 1], [1] * 6, [1.0] * 6)
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    assert recall_at(test, scores, 0.9) == pytest.approx(1 / 3)
    assert recall_at(test, scores, 0.6) == pytest.approx(2 / 3)
    assert recall_at(test, scores, 0.5) == 1.0
    assert recall_at(test, -scores, 0.9) == pytest.approx(1 / 3)
    assert recall_at(alert_test([0, 1], [1, 1], [1.0, 1.0]), np.array([1.0, 0.0]), 0.9) == 0.0


def drifting(nodes: int, last: int | None = None) -> WindowedSplit:
    """The column that tells frauds is another one in every window."""
    rng = np.random.default_rng(0)
    seconds = np.tile(np.arange(200) * DAY // 4, nodes)
    y = (np.arange(200 * nodes) % 4 == 3).astype(np.int8)
    X = rng.normal(0, 0.1, (len(y), 5)).astype(np.float32)
    window = np.minimum(np.tile(np.arange(200), nodes) // 40, 3)
    X[np.arange(len(y)), 1 + window] += y
    X[:, 0] = 1.0
    address = np.repeat(np.arange(nodes, dtype=np.float32), 200)
    table = Transactions(X, y, seconds, address, ("TransactionAmt", "a", "b", "c", "d"))
    return windowed(table, nodes, last=last)


def test_each_iteration_learns_from_its_own_window_alone() -> None:
    whole = Parameters(fit=FitOptions("regressor", max_depth=1), n_new=1, n_share=1, home_check=None)
    found = DriftEngine(drifting(2), 0, whole).simulate(DriftCase("disconnected"))
    for ensemble in found.ensembles().values():
        assert [int(estimator.tree.feature[0]) for estimator in ensemble] == [1, 2, 3, 4]


def test_with_past_rows_an_iteration_learns_from_all_windows_so_far() -> None:
    split = drifting(2)
    past = split.past()
    for name, windows in split.nodes.items():
        assert [len(rows) for rows in past.nodes[name]] == [40, 80, 120, 160]
        assert past.nodes[name][2].y.tolist() == np.concatenate([rows.y for rows in windows[:3]]).tolist()
    assert [len(rows) for rows in past.pooled()] == [80, 160, 240, 320]
    assert past.test is split.test


def test_settings_are_chosen_without_the_window_that_is_reported() -> None:
    """Whatever the fifth window holds, the choice is the same: it is made as if that had not happened."""
    whole = drifting(2)
    earlier = drifting(2, last=4)
    assert earlier.iterations == 3
    for name, windows in earlier.nodes.items():
        assert [rows.digest for rows in windows] == [rows.digest for rows in whole.nodes[name][:3]]
    fourth = np.concatenate([windows[3].y for windows in whole.nodes.values()])
    assert len(earlier.test.y) == len(fourth) == 80
    assert int(earlier.test.day.max()) < int(whole.test.day.min())


def test_nothing_is_forgotten_where_the_setting_says_so() -> None:
    """The federation of the newest 200 holds the last window alone; alone and pooled keep all of theirs."""
    for kind, named in SETTINGS.items():
        for name, setting in named.items():
            made = 20 * 4 * setting.parameters.n_new
            forgets = setting.parameters.n_max < made
            assert forgets == (name in ("newest 200", "past rows", LARGE_LATEST, LARGEST)), (kind, name)
            assert setting.past == ("past rows" in name)
    assert set(CHOSEN) == {FOREST, BOOSTED}
    assert all(name in SETTINGS[kind] for kind, name in CHOSEN.items())


def test_no_setting_makes_models_that_a_ranking_would_refuse() -> None:
    """They would be lost at each GET, and the federation would be every node alone."""
    for named in SETTINGS.values():
        assert all(setting.parameters.max_internal <= MAX_INTERNAL for setting in named.values())
    fit = SETTINGS[BOOSTED][LARGEST].parameters.fit
    assert fit.rounds * (fit.leaves - 1) <= SETTINGS[BOOSTED][LARGEST].parameters.max_internal


def test_h16_a_model_that_alarms_a_quarter_of_all_normal_rows_is_refused() -> None:
    """The loose check would let it in, if it but finds its share of the frauds."""
    rows = Rows.of(np.arange(100, dtype=np.float32)[:, None], (np.arange(100) >= 80).astype(np.int8))
    tree = {"feature": [0, -1, -1], "threshold": [59.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1]}
    hostile = Boosted.from_arrays(0.0, [{**tree, "value": [0.0, -20.0, 20.0]}])
    reasons = {}
    for name in (LARGE_LATEST, LARGEST):
        parameters = SETTINGS[BOOSTED][name].parameters
        assert parameters.home_check is not None
        own = OwnFit("node00", 0, parameters.fit, parameters.limits(1))
        reasons[name] = parameters.home_check.reasons_to_refuse([hostile], rows, parameters.threshold, own)
    assert reasons == {LARGE_LATEST: [None], LARGEST: [HOME_CHECK]}


def test_the_best_setting_is_that_of_the_highest_federation() -> None:
    tried = [
        Candidate(FOREST, "newest 200", 0.1, 0.2, 0.3, 0.0),
        Candidate(FOREST, "past rows", 0.3, 0.25, 0.2, 1.0),
        Candidate(BOOSTED, "newest 200", 0.1, 0.4, 0.3, 0.0),
    ]
    choice = Choice((0,), tuple(tried))
    assert choice.best() == {FOREST: "past rows", BOOSTED: "newest 200"}
    assert "best" in choice_grid(choice).text()


def test_a_choice_is_printed_with_what_the_home_check_refused() -> None:
    two = {FOREST: {"newest 200": Setting(SMALL), "past rows": Setting(SMALL, past=True)}}
    done: list[str] = []
    choice = run_choice(drifting(4, last=4), [0], done.append, settings=two)
    assert len(done) == 2 * 3
    shown = choice_json(choice)
    assert shown["best"] == choice.best()
    assert all(0 < one.federated <= 1 for one in choice.candidates)


def test_what_the_home_check_refused_is_counted_by_who_made_it() -> None:
    strict = Parameters(
        n_new=1, n_share=1, fit=FitOptions("balanced", max_depth=2), home_check=HomeCheck(0.5, 1.0)
    )
    engine = DriftEngine(drifting(4), 0, strict)
    clean, attacked = (engine.run(DriftCase("full", *attack)) for attack in ((), ("zero", (1,))))
    assert clean.shape == (4, len(COLUMNS))
    honest, hostile = (COLUMNS.index(name) for name in ("refused", "refused_hostile"))
    assert clean[:, honest].sum() > 0
    assert clean[:, hostile].sum() == 0
    assert (attacked[[0, 2, 3], hostile] == 4).all()


def test_figures_of_other_settings_rows_or_attackers_are_not_reused(tmp_path: Path) -> None:
    wanted = {name: case for name, case in cases(quick=True).items() if name == "alone"}
    kept = Kept(tmp_path)
    for split, setting in (
        (drifting(2), Setting(SMALL)),
        (drifting(2), Setting(SMALL, past=True)),
        (drifting(2, last=4), Setting(SMALL)),
    ):
        list(measured(split, setting, 0, wanted, "ieee", kept))
    assert len(list(tmp_path.iterdir())) == 2 * 3
    list(measured(drifting(2), Setting(SMALL), 0, wanted, "ieee", kept))
    assert len(list(tmp_path.iterdir())) == 2 * 3


@pytest.fixture(scope="module")
def result() -> IeeeResult:
    done: list[str] = []
    found = run_ieee(drifting(20), [0], done.append, quick=True, kinds={FOREST: Setting(SMALL)})
    assert 2 * len(done) == pieces(1, quick=True)
    return found


def test_what_is_reported_has_every_way_and_every_goal(result: IeeeResult) -> None:
    shown = ieee_page.ieee_json(result)
    ap = shown["ap"]
    assert isinstance(ap, dict)
    assert set(ap[FOREST]) == {"alone", "ring", "federated", "pooled"}
    assert all(0 < value <= 1 for value in ap[FOREST].values())
    assert len(result.goals()) == 3
    text = ieee_page.ieee_text(result)
    assert "3,200 rows with 800 frauds to train on, 800 with 200 to test; seeds run: 1. Settings: " in text
    assert "forest, zero" in text
    assert "forest, inverted" in text


def test_hostile_nodes_are_not_measured(result: IeeeResult) -> None:
    (row,) = [row for row in result.attacks() if row.attack == "zero"]
    honest = [place for place in range(20) if not 5 <= place <= 9]
    assert row.ap == pytest.approx(result.runs[FOREST, "zero"][0][honest, 0].mean())
    assert row.clean_ap == pytest.approx(result.runs[FOREST, "federated"][0][honest, 0].mean())


def test_h16_trees_that_say_normal_find_no_room_under_the_home_check() -> None:
    engine = DriftEngine(drifting(20), 0, SMALL)
    found = engine.simulate(DriftCase("full", "zero", (5, 6, 7, 8, 9)))
    hostile = {f"node0{place}" for place in range(5, 10)}
    held = {name: set(ensemble.origins()) for name, ensemble in found.ensembles().items()}
    assert all(not creators & hostile for name, creators in held.items() if name not in hostile)
    assert any(len(creators) > 5 for creators in held.values())


def test_only_this_part_of_the_page_is_written(result: IeeeResult, tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text("<!-- paper: begin -->\nkept\n<!-- paper: end -->\n")
    ieee_page.write_ieee(result, tmp_path, tmp_path)
    text = page.read_text()
    assert "kept" in text
    assert "`executor experiment ieee-cis --quick`, seeds 0;" in text
    assert len((tmp_path / "ieee-cis.csv").read_text().splitlines()) == 1 + 6 * 20 + 1
