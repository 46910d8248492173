"""`executor simulate` through its command line, on made-up rows."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from executor.cli import main
from executor.exits import DATA_UNUSABLE, USAGE
from executor.experiment import simulate as command
from experiments.data import synthetic
from learning import attacks
from learning.fit_options import WAYS
from learning.parameters import Parameters
from learning.ranking import RANKINGS

SMALL = ("--nodes", "3", "--iterations", "2", "--n-new", "2", "--n-max", "5", "--n-share", "2", "--jobs", "1")


@pytest.fixture(scope="module")
def rows_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = synthetic(600, 4, 0.1, seed=1)
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    lines = [",".join((*table.features, "fraud"))]
    lines += [",".join(map(repr, [*x.tolist(), int(y)])) for x, y in zip(table.X, table.y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


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
    ("options", "words", "code"),
    [
        (("--topology", "star"), "star", USAGE),
        (("--hostile", "9", "--attack", "zero"), "node 9", USAGE),
        (("--fit", "boosted", "--attack", "shadow", "--hostile", "1"), "shadow", USAGE),
        (("--quota", "0.5"), "quota", USAGE),
        (("--n-share", "50"), "n_share", USAGE),
        (("--synthetic",), "exclude each other", USAGE),
        (("--drop", "nothing"), "nothing", DATA_UNUSABLE),
        (("--label", "nothing"), "nothing", DATA_UNUSABLE),
    ],
)
def test_wrong_options_are_refused_without_a_traceback(
    rows_csv: Path, options: tuple[str, ...], words: str, code: int
) -> None:
    result = simulate(rows_csv, *options)
    assert result.exit_code == code
    assert words in result.stderr
    assert "remedy: " in result.stderr
    assert "Traceback" not in result.output
    told = json.loads(simulate(rows_csv, *options, "--json").stdout)["error"]
    assert words in told["cause"]
    assert told["exit_code"] == code


def test_an_attack_that_one_of_the_variants_has_no_form_of_is_refused_before_any_data_is_read() -> None:
    options = ["--fit", "plain", "--fit", "boosted", "--attack", "zero", "--attack", "shadow"]
    result = CliRunner().invoke(main, ["simulate", "--data", "/nowhere/rows.csv", *options])
    assert result.exit_code == USAGE
    assert "PARAMETER_RANGE: attack 'shadow'" in result.stderr


def test_word_where_a_number_belongs_is_a_usage_error(rows_csv: Path) -> None:
    result = simulate(rows_csv, "--quota", "some")
    assert result.exit_code == USAGE
    assert "neither a number nor 'none'" in result.stderr


def test_missing_file_names_code_and_remedy() -> None:
    result = CliRunner().invoke(main, ["simulate", "--data", "/nowhere/rows.csv"])
    assert result.exit_code == DATA_UNUSABLE
    assert "DATA_FILE" in result.stderr


def test_help_names_the_shipped_defaults() -> None:
    text = " ".join(CliRunner().invoke(main, ["simulate", "--help"]).output.split())
    shipped = Parameters()
    for value in (shipped.fit.kind, shipped.ranking, shipped.threshold, shipped.quota, shipped.vote_cap):
        assert f"[default: {value:g}]" in text if isinstance(value, float) else f"[default: {value}]" in text


def test_choices_are_those_of_the_learning_package() -> None:
    assert set(command.FITS) == set(WAYS)
    assert set(command.RANKINGS) == set(RANKINGS)
    assert set(command.ATTACKS) == set(attacks.ATTACKS)
