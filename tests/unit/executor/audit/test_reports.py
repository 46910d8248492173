"""Reports on one subject: what happened in the order of the blocks, and a mark for each claim."""

import csv
import io
import json

import pytest
from click.testing import CliRunner
from support.memory.audited import PROCESS
from support.memory.federation import PROFILE
from support.tampering import find_block, flipped

from executor.cli import main
from protocol.digest import Digest


@pytest.fixture
def run(tmp_path, raw_export, recorder):
    def report(*words, raw=raw_export):
        file = tmp_path / "export.tar"
        file.write_bytes(raw)
        return CliRunner().invoke(main, ["audit", *words, "--file", str(file), "--genesis", recorder.genesis])

    return report


def test_a_task_shows_both_of_its_attempts_in_the_order_of_the_blocks(run):
    shown = json.loads(run("task", f"{PROCESS}/node01/0", "--json").stdout)
    assert shown["verified"] is True
    assert {claim["claim"] for claim in shown["claims"]} >= {
        "task images", "task keys", "task inputs", "task signatures", "neighbours", "ensembles",
    }  # fmt: skip
    places = [(event["block"], event["transaction"]) for event in shown["events"]]
    assert places == sorted(places)
    states = [event["sentence"].split(" is ")[1] for event in shown["events"] if " is " in event["sentence"]]
    assert [state.split(",")[0] for state in states] == ["open", "failed", "open", "shared", "completed"]
    assert shown["facts"]["data commitment"].startswith("sha256:")
    assert shown["facts"]["sandbox profile"] == PROFILE.decode()
    assert str(Digest.of(PROFILE)) == shown["facts"]["sandbox"]


def test_a_model_shows_who_had_access_and_when(run):
    ran = run("model", f"{PROCESS}/node01")
    assert ran.exit_code == 0
    assert "access: grant Org3MSP; open to Org1MSP, Org2MSP, Org3MSP (admin of Org1MSP)" in ran.stdout
    assert "greatest vote of another organisation: 0." in ran.stdout
    assert "access: revoke Org3MSP; open to Org1MSP, Org2MSP (admin of Org1MSP)" in ran.stdout


def test_an_estimator_is_followed_from_its_task_to_every_model(run):
    ran = run("estimator", f"{PROCESS}/node01/0")
    assert ran.exit_code == 0
    for line in ("node01/0000 is put on the ledger", "node01 offers it", "in the model of node02"):
        assert line in ran.stdout


def test_the_report_on_a_process_tells_of_tasks_and_not_of_every_tree(run):
    shown = json.loads(run("process", PROCESS, "--json").stdout)
    sentences = [event["sentence"] for event in shown["events"]]
    assert any("created" in sentence for sentence in sentences)
    assert not [sentence for sentence in sentences if "on the ledger" in sentence or "offers it" in sentence]
    assert "key" not in shown["facts"]
    assert shown["facts"]["specification"].startswith("sha256:")


def test_the_report_on_a_process_is_one_page_without_anything_from_elsewhere(run, tmp_path):
    page = tmp_path / "report.html"
    ran = run("process", PROCESS, "--html", str(page))
    assert ran.exit_code == 0
    assert ran.stdout.endswith("\nverified\n")
    text = page.read_text()
    assert "What this does not prove" in text
    assert not any(word in text for word in ("src=", "href=", "<script", "@import", "url("))


def test_h20_the_report_on_an_altered_task_says_what_is_wrong_and_exits_with_11(run, export):
    number = find_block(export.blocks, b"\0share\0" + PROCESS.encode() + b"\0")
    raw = export.with_block(number, flipped(export.blocks[number], b'"signature":"', 3)).write()
    ran = run("task", f"{PROCESS}/node01/0", raw=raw)
    assert ran.exit_code == 11
    assert f"✗ block {number} transaction 0" in ran.stdout
    assert "NOT VERIFIED" in ran.stdout


def test_h20_the_report_on_a_task_leaves_out_what_is_wrong_with_others(run, export):
    """Failures about the task alone, in the order of the blocks."""
    places = []
    for node in ("node02", "node01"):
        key = b"\0share\0" + PROCESS.encode() + b"\0" + b"0" * 10 + b"\0" + node.encode() + b"\0"
        places.append(find_block(export.blocks, key))
        raw = flipped(export.blocks[places[-1]], b'"signature":"', 3)
        export = export.with_block(places[-1], raw)
    ran = run("task", f"{PROCESS}/node01/0", "--json", raw=export.write())
    failures = json.loads(ran.stdout)["failures"]
    assert {failure["where"].split(" (")[0] for failure in failures} == {f"block {places[1]} transaction 0"}


@pytest.mark.parametrize(
    "words",
    [("task", "f"), ("model", "f/node01/1"), ("estimator", "a/b/c"), ("process", "../x")],
)
def test_a_name_of_another_kind_is_refused(run, words):
    ran = run(*words)
    assert ran.exit_code == 14
    assert "NAME_SYNTAX" in ran.stderr


def test_a_subject_that_the_channel_does_not_know_is_refused(run):
    ran = run("task", f"{PROCESS}/node01/99")
    assert ran.exit_code == 2
    assert "AUDIT_SUBJECT" in ran.stderr


def test_contributions_are_counted_from_the_ensembles_that_tasks_signed(run, tmp_path):
    table = tmp_path / "origins.csv"
    ran = run("contribution", PROCESS, "--json", "--csv", str(table))
    assert ran.exit_code == 0
    shown = json.loads(ran.stdout)
    assert shown["nodes"]["node02"] == {"node01": 0.5, "node02": 0.5, "node03": 0.0}
    assert shown["organisations"]["Org2MSP"] == {"Org1MSP": 0.5, "Org2MSP": 0.5}
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {row["iteration"] for row in rows} == {"0", "1"}
    whole = [float(row["share"]) for row in rows if (row["iteration"], row["node"]) == ("1", "node02")]
    assert sum(whole) == 1


def test_the_heat_map_of_origins_is_the_same_for_the_same_chain(run, tmp_path):
    drawn = []
    for name in ("one.svg", "two.svg"):
        assert run("contribution", PROCESS, "--figure", str(tmp_path / name)).exit_code == 0
        drawn.append((tmp_path / name).read_text())
    assert "<svg" in drawn[0]
    assert drawn[0] == drawn[1]
    assert run("contribution", PROCESS, "--figure", str(tmp_path / "one.png")).exit_code == 0
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert run("contribution", PROCESS, "--figure", str(tmp_path / "x.gif")).exit_code == 2
