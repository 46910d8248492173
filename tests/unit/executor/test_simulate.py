"""`executor simulate` through its command line, on made-up rows."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from executor.cli import main
from executor.experiment import paper, robust
from executor.experiment.batch import run_cases
from executor.experiment.engine import Bench, Case, make_topology
from executor.experiment.paper import run_paper
from executor.experiment.robust import ATTACKS, rules, run_robust
from executor.experiment.split import Split, split
from executor.experiment.synthetic import synthetic
from executor.experiment.threshold import home_threshold
from executor.experiment.variant import Choices, Variant, paper_variant
from executor.simulate import command
from learning import attacks
from learning.actions import predictor
from learning.errors import ParameterError
from learning.fit import KINDS
from learning.fit_cache import FitCache
from learning.parameters import Parameters
from learning.ranking import RANKINGS
from learning.rows import Rows

SMALL = ("--nodes", "3", "--rounds", "2", "--n-new", "2", "--n-max", "5", "--n-share", "2", "--jobs", "1")


@pytest.fixture(scope="module")
def rows_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = synthetic(600, 4, 0.1, seed=1)
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    lines = [",".join((*table.features, "fraud"))]
    lines += [",".join(map(repr, [*x.tolist(), int(y)])) for x, y in zip(table.X, table.y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def small_split() -> Split:
    return split(synthetic(900, 5, 0.1, seed=3), nodes=4, seed=5)


def simulate(path: Path, *options: str) -> Result:
    command = ["simulate", "--data", str(path), "--label", "fraud", *SMALL, *options]
    return CliRunner().invoke(main, command, catch_exceptions=False)


def test_one_variant_prints_no_verdict(rows_csv: Path) -> None:
    result = simulate(rows_csv)
    assert result.exit_code == 0, result.output
    assert "default" in result.stdout
    assert "Verdict" not in result.stdout


def test_variants_are_compared_on_two_splits(rows_csv: Path) -> None:
    result = simulate(rows_csv, "--fit", "plain", "--fit", "balanced", "--topology", "ring", "--json")
    report = json.loads(result.stdout)
    assert report["split_seeds"] == [45, 46]
    assert [v["variant"] for v in report["variants"]] == ["plain", "balanced"]
    assert all(len(d["by_split"]) == 2 for d in report["differences"])
    assert {d["metric"] for d in report["differences"]} >= {"bacc", "precision", "recall", "ap"}
    assert set(report["versions"]) >= {"python", "numpy", "scikit-learn", "attestree"}


def test_one_split_never_says_better(rows_csv: Path) -> None:
    result = simulate(rows_csv, "--ranking", "kernel", "--ranking", "random", "--split-seed", "7")
    assert "one split: no verdict" in result.stdout
    assert "better " not in result.stdout.replace("better or worse", "")


def test_paper_mode_is_the_first_row(rows_csv: Path) -> None:
    report = json.loads(
        simulate(rows_csv, "--paper", "--fit", "balanced", "--topology", "full", "--json").stdout
    )
    assert [v["variant"] for v in report["variants"]] == ["paper", "variant"]
    alone = json.loads(simulate(rows_csv, "--paper", "--topology", "full", "--json").stdout)
    assert [v["variant"] for v in alone["variants"]] == ["paper"]


def test_attack_and_home_check_are_reported(rows_csv: Path) -> None:
    result = simulate(
        rows_csv, "--attack", "zero", "--hostile", "1", "--home-check", "--topology", "full", "--json"
    )
    report = json.loads(result.stdout)
    assert [v["attack"] for v in report["variants"]] == ["clean", "zero"]
    assert report["variants"][1]["refusals"] > 0


def test_results_are_written(rows_csv: Path, tmp_path: Path) -> None:
    options = ("--threshold", "0.3", "--threshold", "home", "--async", "--out", str(tmp_path))
    assert simulate(rows_csv, *options).exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"variants.csv", "differences.csv", "simulate.md"}
    assert (tmp_path / "variants.csv").read_text(encoding="utf-8").startswith("variant,topology,attack,bacc")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--topology", "star"), "star"),
        (("--hostile", "9", "--attack", "zero"), "node 9"),
        (("--quota", "0.5"), "quota"),
        (("--n-share", "50"), "n_share"),
        (("--drop", "nothing"), "nothing"),
    ],
)
def test_wrong_options_are_refused_without_a_traceback(
    rows_csv: Path, options: tuple[str, ...], words: str
) -> None:
    result = simulate(rows_csv, *options)
    assert result.exit_code != 0
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_word_where_a_number_belongs_is_a_usage_error(rows_csv: Path) -> None:
    result = simulate(rows_csv, "--quota", "some")
    assert result.exit_code == 2
    assert "neither a number nor 'none'" in result.stderr


def test_missing_file_names_code_and_remedy() -> None:
    result = CliRunner().invoke(main, ["simulate", "--data", "/nowhere/rows.csv"])
    assert result.exit_code == 40
    assert "DATA_FILE" in result.stderr


def test_variants_are_named_by_what_differs() -> None:
    names = [v.name for v in Choices(fit=("plain", "balanced"), quota=(None, 2.0)).variants()]
    assert names == ["plain, no quota", "plain, quota 2", "balanced, no quota", "balanced, quota 2"]
    assert [v.name for v in Choices().variants()] == ["default"]
    assert Choices().variants()[0].parameters == Parameters()


def test_help_names_the_shipped_defaults() -> None:
    text = " ".join(CliRunner().invoke(main, ["simulate", "--help"]).output.split())
    shipped = Parameters()
    for value in (shipped.fit.kind, shipped.ranking, shipped.threshold, shipped.quota, shipped.vote_cap):
        assert f"[default: {value:g}]" in text if isinstance(value, float) else f"[default: {value}]" in text


def test_choices_are_those_of_the_learning_package() -> None:
    assert set(command.FITS) == set(KINDS)
    assert set(command.RANKINGS) == set(RANKINGS)
    assert set(command.ATTACKS) == set(attacks.ATTACKS)


def test_paper_variant_has_no_defence() -> None:
    parameters = paper_variant().parameters
    assert (parameters.fit.kind, parameters.ranking, parameters.threshold) == ("plain", "kernel", 0.5)
    assert parameters.quota is parameters.vote_cap is parameters.home_check is None


def test_remembered_scores_equal_prediction(small_split: Split) -> None:
    bench = Bench(small_split, 0, FitCache())
    variant = Variant("v", Parameters(n_new=3, n_max=6, n_share=3))
    case = Case(variant, "full", rounds=2)
    outcome = bench.run(case)
    for i, ensemble in enumerate(bench.simulate(case).ensembles().values()):
        expected = predictor(ensemble, variant.parameters).scores(small_split.X_test)
        assert np.array_equal(outcome.scores[i], expected)


def test_processes_do_not_change_results(small_split: Split) -> None:
    cases = [
        Case(Variant("v", Parameters(n_new=2, n_max=4, n_share=2)), t, rounds=2) for t in ("ring", "full")
    ]
    one, two = (run_cases(small_split, (0, 1), cases, lambda _: None, jobs=jobs) for jobs in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert [run.seed for run in first] == [0, 1]
        assert all(np.array_equal(a.scores, b.scores) for a, b in zip(first, second, strict=True))


def test_home_threshold_needs_anomalies_and_foreign_trees(small_split: Split) -> None:
    bench = Bench(small_split, 0, FitCache())
    ensembles = bench.simulate(
        Case(Variant("v", Parameters(n_new=3, n_max=6, n_share=3)), "full", rounds=2)
    ).ensembles()
    name, ensemble = next(iter(ensembles.items()))
    rows = bench.rows[name]
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


FEW = {"n_new": 3, "n_max": 12, "n_share": 3}


def test_paper_experiment_runs_on_any_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "paper_variant", partial(paper_variant, **FEW))
    steps: list[str] = []
    parts = split(synthetic(1000, 4, 0.1, seed=3))
    result = run_paper(parts, (0,), steps.append, rankings=("kernel", "random"))
    report = result.as_json()
    assert report["table_exact"] is False
    assert report["seeds"] == [0]
    assert len(steps) == 20 * 4 + 5
    assert result.repeated


def test_hostile_node_is_left_out_of_the_honest_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robust, "HOSTILE", 1)  # fewer nodes and trees than in the experiment
    monkeypatch.setattr(robust, "paper_variant", partial(paper_variant, **FEW))
    monkeypatch.setattr(robust, "Parameters", partial(Parameters, **FEW))
    parts = split(synthetic(600, 5, 0.1, seed=3), nodes=4, seed=1)
    result = run_robust(parts, (0,), lambda _: None, attacks=("zero", "one"))
    assert result.honest == [0, 2, 3]
    assert result.values("default", "full", "zero").shape == (1, 3)
    assert result.held("paper ranking", "full", "zero") > result.held("default", "full", "zero")
    assert result.goals()
    assert set(ATTACKS) == {"zero", "noise", "mimic", "one"}
    assert [rule.name for rule in rules(4)][-1] == "naive union"
