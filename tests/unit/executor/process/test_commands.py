"""Commands that need no ledger: a file is checked anywhere, and wrong usage is refused before any call."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from executor.cli import main

EXAMPLE = Path(__file__).parents[4] / "examples/federation.yaml"


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTESTREE_STATE", str(tmp_path / "nowhere"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["process", *arguments])


def test_a_dry_run_needs_no_network() -> None:
    ran = run("create", "--spec", str(EXAMPLE), "--dry-run")
    assert ran.exit_code == 0
    specification, digest, note = ran.stdout.splitlines()
    assert "pins its images" in note
    assert json.loads(specification)["process"] == "fraud-demo"
    answer = json.loads(run("create", "--spec", str(EXAMPLE), "--dry-run", "--json").stdout)
    assert answer.pop("pinned") is False
    assert answer == {"specification": json.loads(specification), "specification_digest": digest}


def test_a_proposal_needs_a_network() -> None:
    ran = run("create", "--spec", str(EXAMPLE), "--json")
    assert ran.exit_code == 20
    assert json.loads(ran.stdout)["error"]["code"] == "NETWORK_MISSING"


def test_a_file_with_faults_is_reported_with_all_of_them(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(EXAMPLE.read_text("utf-8").replace("seed: 42", "seed: x\nseeds: 1"), encoding="utf-8")
    ran = run("create", "--spec", str(wrong), "--dry-run")
    assert ran.exit_code == 14
    assert ran.stdout == ""
    assert f"error: FEDERATION_SCHEMA: {wrong}, line 15: seed" in ran.stderr
    assert f"{wrong}, line 16: seeds is not a field" in ran.stderr
    assert "remedy: " in ran.stderr
    error = json.loads(run("create", "--spec", str(wrong), "--dry-run", "--json").stdout)["error"]
    assert (error["code"], error["exit_code"]) == ("FEDERATION_SCHEMA", 14)


@pytest.mark.parametrize(
    "arguments",
    [
        ("create",),
        ("create", "--spec", "none.yaml"),
        ("accept",),
        ("abort", "p"),
        ("list", "--status", "sleeping"),
        ("leave", "p", "node01", "--from", "-1"),
        ("topology", "p", "star"),
        ("watch", "p", "--seconds", "-1"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2
