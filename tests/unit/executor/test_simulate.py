"""`executor simulate` through its command line, on made-up rows."""

import json
import os
import signal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from joblib import Parallel, delayed

from executor.cli import main
from executor.exits import DATA_UNUSABLE, USAGE
from executor.experiment import simulate as command
from executor.experiment.options import jobs_option, workers
from experiments.comparison import ComparisonPlan
from experiments.data import synthetic
from learning import attacks
from learning.errors import ParameterError
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


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--imbalance", "nan"), None),
        (("--split-seed", str(2**32)), None),
        (("--out", "{file}/results"), "OUT_DIRECTORY"),
        (("--write-docs", "{file}/docs"), "OUT_DIRECTORY"),
    ],
)
def test_what_cannot_be_run_or_kept_is_refused_before_anything_is_measured(
    rows_csv: Path, options: tuple[str, str], code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ComparisonPlan, "run", lambda *_, **__: pytest.fail("it was run"))
    result = simulate(rows_csv, *(text.format(file=rows_csv) for text in options), "--json")
    assert result.exit_code == USAGE
    if code is not None:
        assert json.loads(result.stdout)["error"]["code"] == code


def test_an_imbalance_that_is_no_number_deals_no_rows() -> None:
    with pytest.raises(ParameterError, match="imbalance nan"):
        ComparisonPlan([], [], imbalance=float("nan"))


def test_no_more_processes_are_started_than_there_are_cores() -> None:
    command = click.Command("any", params=[], callback=lambda jobs: click.echo(f"{jobs}"))
    jobs_option(command)
    (asked,) = CliRunner().invoke(command, ["--jobs", "256"]).stdout.split()
    assert int(asked) == len(os.sched_getaffinity(0))


def _ignores_interrupts(_: int) -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_worker_processes_leave_an_interrupt_to_the_command() -> None:
    with workers():
        assert all(Parallel(n_jobs=2)(delayed(_ignores_interrupts)(i) for i in range(2)))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
