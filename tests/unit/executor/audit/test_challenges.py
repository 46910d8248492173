"""Challenges in an audit: shown in every report, counted against a task by a verdict, and judged again."""

import io
import json

import pytest
from click.testing import CliRunner
from support.memory import blocks
from support.memory.audited import PROCESS, SPEC, SmallPlayer
from support.memory.federation import DIGESTS, EXECUTION, Federation

from chaincode.execution_record import challenges as altered
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from executor.cli import main
from protocol.ledger.challenges import Verdict

TASK = (PROCESS, "node01", 0)


def played():
    """One round, recorded as blocks."""
    federation = blocks.record(Federation)(SPEC)
    federation.players = {node: SmallPlayer(federation, node) for node in SPEC["nodes"]}
    federation.play(0)
    return federation


@pytest.fixture(scope="module")
def exposed():
    """A task that an auditor ran again, and got other trees; beside it another process."""
    federation = played()
    federation.create(SPEC | {"process": "another"})
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [], "too good")
    federation.admin1.submit(EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", "Org3MSP", DIGESTS[3])
    replayed = {"share": DIGESTS[1], "result": DIGESTS[2], "differing": ["node01/0000"]}
    federation.auditor3.submit(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", replayed)
    return federation.recorder


def report(recorder, raw, tmp_path, *words):
    file = tmp_path / "export.tar"
    file.write_bytes(raw)
    return CliRunner().invoke(main, ["audit", *words, "--file", str(file), "--genesis", recorder.genesis])


def verified(recorder):
    return verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))


def test_unanswered_challenges_show_in_every_report(recorder, raw_export, tmp_path):
    file = tmp_path / "all.tar"
    file.write_bytes(raw_export)
    words = ["audit", "verify", str(file), "--genesis", recorder.genesis]
    ran = [CliRunner().invoke(main, words)]
    ran += [report(recorder, raw_export, tmp_path, "process", PROCESS)]
    ran += [report(recorder, raw_export, tmp_path, "model", f"{PROCESS}/node02")]
    ran += [report(recorder, raw_export, tmp_path, "task", f"{PROCESS}/node02/0")]
    for each in ran:
        assert each.exit_code == 0
        assert f"? unanswered: Org3MSP challenged task {PROCESS}/node02/0 of Org1MSP" in each.stdout


def test_what_a_challenge_is_not_about_does_not_show_it(recorder, raw_export, tmp_path):
    ran = report(recorder, raw_export, tmp_path, "task", f"{PROCESS}/node03/0", "--json")
    assert json.loads(ran.stdout)["challenges"] == []
    judged = json.loads(
        report(recorder, raw_export, tmp_path, "task", f"{PROCESS}/node01/0", "--json").stdout
    )
    assert [found["standing"] for found in judged["challenges"]] == ["same"]
    assert judged["verified"] is True


def test_h17_a_task_that_gave_other_trees_is_not_verified_nor_what_rests_on_it(exposed, tmp_path):
    whole = verified(exposed)
    assert (whole.holds, whole.verified) == (True, False)  # one of the records is a verdict
    assert [found["standing"] for found in whole.to_dict()["challenges"]] == ["differs"]
    shown = whole.to_dict()
    assert [claim["failed"] for claim in shown["claims"] if claim["claim"] == "verdicts"] == [1]
    (failure,) = shown["failures"]
    assert (failure["claim"], failure["where"]) == ("verdicts", f"task {PROCESS}/node01/0")
    page = tmp_path / "page.html"
    for words in (("process", PROCESS, "--html", str(page)), ("task", f"{PROCESS}/node01/0")):
        ran = report(exposed, exposed.bundle(), tmp_path, *words)
        assert ran.exit_code == 11
        assert "✗ differs: Org2MSP challenged" in ran.stdout
        assert "Org3MSP found other trees, among others node01/0000" in ran.stdout
        assert "NOT VERIFIED" in ran.stdout
    assert "found other trees" in page.read_text()
    assert report(exposed, exposed.bundle(), tmp_path, "task", f"{PROCESS}/node02/0").exit_code == 0


def test_h17_verify_fails_for_the_process_whose_task_gave_other_trees_and_says_it_of_others(
    exposed, tmp_path
):
    """What `audit process` says of a process is what `audit verify` says of an export about it."""
    for process, code in ((PROCESS, 11), ("another", 0)):
        file = tmp_path / f"{process}.tar"
        file.write_bytes(exposed.bundle(process))
        kept = tmp_path / f"{process}.checkpoint"
        words = ["audit", "verify", str(file), "--genesis", exposed.genesis, "--checkpoint", str(kept)]
        ran = CliRunner().invoke(main, words)
        assert ran.exit_code == code
        assert "✗ differs: Org2MSP challenged" in ran.stdout
        assert ("✗ verdicts: no auditor" in ran.stdout) is (code == 11)
        assert kept.exists()  # a verdict leaves the blocks as right as they were


def test_h17_contributions_of_a_process_whose_task_gave_other_trees_are_not_verified(exposed, tmp_path):
    ran = report(exposed, exposed.bundle("another"), tmp_path, "contribution", PROCESS, "--json")
    assert ran.exit_code == 11
    assert json.loads(ran.stdout)["verified"] is False


def test_h17_a_verdict_that_its_digests_do_not_bear_out_is_found(monkeypatch):
    """A majority whose chaincode lets an auditor write what it likes."""
    monkeypatch.setattr(altered, "judged", lambda *_: Verdict.SAME)
    federation = played()
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [])
    federation.admin1.submit(EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", "Org3MSP", DIGESTS[3])
    federation.auditor3.submit(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", {})
    (failure,) = verified(federation.recorder).failures
    assert failure.claim == "challenges"
    assert "says same, which its digests do not" in failure.what


def test_h17_auditors_of_the_owners_own_and_challenges_beyond_the_quota_are_found(monkeypatch):
    monkeypatch.setattr(altered, "third_parties", lambda *_: ("Org1MSP",))
    monkeypatch.setattr(altered, "_count", lambda *_: None)
    federation = played()
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [])
    whats = " ".join(failure.what for failure in verified(federation.recorder).failures)
    assert "names auditors who are no third parties" in whats
    assert "was not counted" in whats


def test_h17_an_open_challenge_that_is_forgotten_is_found_and_a_judged_one_may_be(monkeypatch):
    """A majority whose chaincode counts every challenge as judged; of two, an auditor judged one."""
    federation, (process, node, iteration) = played(), TASK
    federation.play(1)
    federation.auditor2.submit(EXECUTION, "Challenge", *TASK, [])
    federation.auditor2.submit(EXECUTION, "Challenge", process, node, 1, [])
    federation.admin1.submit(EXECUTION, "AnswerChallenge", *TASK, "Org2MSP", "Org3MSP", DIGESTS[3])
    federation.auditor3.submit(EXECUTION, "JudgeChallenge", *TASK, "Org2MSP", {})
    monkeypatch.setattr(altered, "_is_judged", lambda *_: True)
    federation.auditor2.submit(EXECUTION, "Challenge", process, "node02", iteration, [])
    (failure,) = verified(federation.recorder).failures
    assert failure.claim == "challenges"
    assert failure.what.endswith(f" leaves out {node}/1")


@pytest.mark.parametrize(
    ("forged", "where", "standing"),
    [
        ("Challenge", "challenge", []),
        ("AnswerChallenge", "answer", ["unanswered"]),
        ("JudgeChallenge", "verdict", ["answered"]),
    ],
)
def test_h1_what_others_said_in_ones_name_is_found_and_does_not_count(monkeypatch, forged, where, standing):
    """A majority whose chaincode asks for nobody's own endorsement."""
    federation = played()
    calls = {
        "Challenge": (federation.auditor2, ([],)),
        "AnswerChallenge": (federation.admin1, ("Org2MSP", "Org3MSP", DIGESTS[3])),
        "JudgeChallenge": (federation.auditor3, ("Org2MSP", {})),
    }
    until = [*calls][: [*calls].index(forged) + 1]
    for function in until:
        if function == forged:
            monkeypatch.setattr(altered, "write_word", lambda ctx, _, *more: altered.write(ctx, *more))
        member, arguments = calls[function]
        member.submit(EXECUTION, function, *TASK, *arguments)
    organisation = calls[forged][0].organisation
    found = verified(federation.recorder)
    (failure,) = found.failures
    assert failure.claim == "challenges"
    assert failure.what.startswith(f"{organisation} did not vouch for {where}~{PROCESS}")
    assert [each["standing"] for each in found.to_dict()["challenges"]] == standing
