"""Votes, quorums and silences are counted again: a majority with other chaincode cannot make them up."""

import io
from dataclasses import replace
from datetime import timedelta

import pytest
from support.memory import blocks
from support.memory.federation import Federation
from support.memory.forgery import rewritten
from support.memory.scenario import changed

from chaincode.orchestration import absence, changes, contract
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol.ledger.changes import AskRecord
from protocol.ledger.common import Provenance
from protocol.ledger.silence import Silence

P, HERE = "fraud-2026", "orchestration"
LONG, SOON = timedelta(days=1, hours=1), timedelta(hours=1)
THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {
    "nodes": {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"},
    "topology": {"kind": "full"},
}


@pytest.fixture
def consortium():
    return blocks.record(Federation)(THREE)


@pytest.fixture
def outcome(consortium):
    return lambda: judged(consortium)


def judged(consortium):
    """Verify what a consortium has done; returns what is wrong, and the claims that were checked."""
    recorder = consortium.recorder
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    return [(failure.claim, failure.what) for failure in found.failures], {c.name for c in found.claims}


def leave_out(consortium, *members, after=LONG):
    return [
        member.submit(HERE, "LeaveOut", P, "node05", "no sign of life", time=consortium.time + after)
        for member in members
    ]


def test_h10_an_iteration_from_which_its_one_silent_node_was_left_out_holds(consortium, outcome):
    """node01 and node03 are away for one iteration, in which node05 is alone."""
    consortium.play(0)
    for node, member in (("node01", consortium.admin1), ("node03", consortium.admin2)):
        member.submit(HERE, "Leave", P, node, 1)
        member.submit(HERE, "Join", P, node, member.organisation, 2)
    *_, last = leave_out(consortium, consortium.admin1, consortium.admin2)
    assert last["change"] == 4
    assert outcome()[0] == []


def test_votes_that_the_chaincode_counted_hold(consortium, outcome):
    leave_out(consortium, consortium.admin1, consortium.scientist2, after=SOON)
    *_, last = leave_out(consortium, consortium.admin1, consortium.scientist2, after=LONG + SOON)
    assert last["change"] == 0
    for member in (consortium.admin1, consortium.admin2):
        member.submit(HERE, "Abort", P, "nobody is left")
    wrong, claims = outcome()
    assert wrong == []
    assert {"quorums", "onsets", "silence"} <= claims


def test_h10_votes_after_signs_of_life_and_after_shares_hold(consortium, outcome):
    """What counts and what does not is the same to the chaincode and to whoever audits."""
    for node in ("node01", "node03"):
        consortium.players[node].open(0)
        consortium.players[node].share()
    silent = consortium.players["node05"]
    silent.open(0)
    silent.member.submit("execution-record", "Fail", P, "node05", 0, "OOM", "too much")
    leave_out(consortium, consortium.admin1, after=SOON)
    (early,) = leave_out(consortium, consortium.admin1, after=LONG + SOON)
    consortium.time += LONG
    silent.open(0)
    silent.share()
    votes = leave_out(consortium, consortium.admin1, consortium.admin2, after=timedelta(hours=1))
    assert [vote["vote"]["counts"] for vote in (early, *votes)] == [True, False, False]
    consortium.time += timedelta(hours=1)
    *_, last = leave_out(consortium, consortium.admin1, consortium.scientist2)
    assert last["change"] == 0
    assert outcome()[0] == []


def test_h10_a_sign_of_life_that_was_counted_is_found(consortium, outcome, monkeypatch):
    """What a member's altered chaincode would do to stay: let an opening begin the silence anew."""
    honest, player = absence._vote, consortium.players["node05"]
    consortium.play(0)
    consortium.time += LONG
    opened = Provenance.from_dict(player.open(1)["opened"])
    monkeypatch.setattr(absence, "_vote", lambda ctx, acts, *said: honest(ctx, [opened], *said))
    leave_out(consortium, consortium.admin1, after=timedelta(hours=1))
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["silence"]
    assert f"counts since {opened.time}" in wrong[0][1]


def test_h10_a_vote_about_a_node_that_waits_is_found(consortium, outcome, monkeypatch):
    consortium.players["node05"].open(0)
    consortium.players["node05"].share()
    monkeypatch.setattr(absence, "_check_owing", lambda *said: None)
    leave_out(consortium, consortium.admin1)
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["silence"]
    assert wrong[0][1].endswith("is about nodes that wait for others")


def test_h9_a_vote_about_an_organisation_that_has_done_its_work_is_found(monkeypatch):
    once = {"steps": changed("steps", 0, "iterations", 1)["steps"], "topology": {"kind": "disconnected"}}
    consortium = blocks.record(Federation)(THREE | once)
    consortium.players["node05"].open(0)
    consortium.players["node05"].complete()
    monkeypatch.setattr(absence, "_check_owing", lambda *said: None)
    consortium.admin1.submit(HERE, "LeaveOutOrganisation", P, "Org3MSP", "gone", time=consortium.time + LONG)
    wrong, _ = judged(consortium)
    assert [claim for claim, _ in wrong] == ["silence"]
    assert wrong[0][1].endswith("is about nodes that owe nothing")


def test_h10_a_vote_that_became_void_and_was_counted_is_found(consortium, outcome, monkeypatch):
    """The node shared after the first vote; altered chaincode takes it for one about what came since."""
    seen, honest, read = [], absence._vote, absence.find_words

    def vote(*said):
        made = honest(*said)
        seen.append(made.seen)
        return made

    def others(*said):
        return {name: replace(found, seen=seen[-1]) for name, found in read(*said).items()}

    leave_out(consortium, consortium.admin1, after=SOON)
    leave_out(consortium, consortium.admin1, after=LONG + SOON)
    consortium.time += LONG
    for player in consortium.players.values():
        player.open(0)
        player.share()
    monkeypatch.setattr(absence, "_vote", vote)
    monkeypatch.setattr(absence, "find_words", others)
    leave_out(consortium, consortium.admin2, after=timedelta(hours=1))
    consortium.time += timedelta(hours=1)
    (last,) = leave_out(consortium, consortium.admin2)
    assert last["change"] == 0
    wrong, _ = outcome()
    assert wrong == [("agreements", f"Org1MSP did not agree to change~{P}~0000000000")]


def test_h10_one_vote_where_two_are_needed_is_found(consortium, outcome, monkeypatch):
    monkeypatch.setattr(absence, "majority_of", lambda members: 1)
    leave_out(consortium, consortium.admin1, after=SOON)
    (last,) = leave_out(consortium, consortium.admin1, after=LONG + SOON)
    assert last["change"] == 0
    wrong, _ = outcome()
    assert wrong == [("quorums", f"change~{P}~0000000000 holds with 1 agreements, and 2 are needed")]


def test_h10_a_silence_that_did_not_last_long_enough_is_found(consortium, outcome, monkeypatch):
    honest = absence._vote
    monkeypatch.setattr(absence, "_vote", lambda *said: replace(honest(*said), counts=True))
    leave_out(consortium, consortium.admin1, after=timedelta(hours=1))
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["silence"]
    assert wrong[0][1].endswith("says that it counts, and the ledger says that it does not count yet")


def test_h10_a_silence_counted_from_too_early_is_found(consortium, outcome, monkeypatch):
    honest, early = absence._vote, "2026-01-01T00:00:00.000000Z"
    monkeypatch.setattr(absence, "_vote", lambda *said: replace(honest(*said), since=early))
    leave_out(consortium, consortium.admin1)
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["silence"]
    assert f"counts since {early}" in wrong[0][1]


def test_c6_a_change_that_alters_what_tasks_have_begun_with_is_found(consortium, outcome, monkeypatch):
    monkeypatch.setattr(changes, "check_onset", lambda *said: None)
    ask = consortium.admin1.submit(HERE, "ChangeTopology", P, 0, {"kind": "disconnected"})
    for member in (consortium.admin2, consortium.admin3):
        consortium.agree(member, ask)
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["onsets"]
    assert "node01 may have begun iteration 0, and would have other neighbours in it" in wrong[0][1]


def test_h10_a_share_whose_claimed_time_was_believed_is_found(consortium, outcome, monkeypatch):
    """The node waited for two others; altered chaincode counts from what their shares claim."""
    for player in consortium.players.values():
        player.open(0)
        player.share()
    monkeypatch.setattr(Silence, "waited", lambda *said: False)
    leave_out(consortium, consortium.admin1)
    monkeypatch.undo()
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["silence"]
    assert "counts since" in wrong[0][1]


def test_h10_a_start_whose_claimed_time_was_believed_is_found(consortium, outcome, monkeypatch):
    """Altered chaincode counts from what the organisation that started the process claims."""
    monkeypatch.setattr(Silence, "waited", lambda *said: False)
    leave_out(consortium, consortium.admin1)
    monkeypatch.undo()
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["silence"]
    assert "counts since" in wrong[0][1]


def test_c6_a_leave_from_what_was_completed_on_is_found(consortium, outcome, monkeypatch):
    consortium.play(0)
    monkeypatch.setattr(changes, "check_onset", lambda *said: None)
    consortium.admin3.submit(HERE, "Leave", P, "node05", 0)
    wrong, _ = outcome()
    assert "onsets" in [claim for claim, _ in wrong]
    assert any("node05 can leave from 1 to 3, not 0" in what for _, what in wrong)


def test_h9_a_return_far_ahead_is_found(consortium, outcome, monkeypatch):
    consortium.admin3.submit(HERE, "Leave", P, "node05", 0)
    monkeypatch.setattr(changes, "check_onset", lambda *said: None)
    consortium.admin3.submit(HERE, "Join", P, "node05", "Org3MSP", 3)
    wrong, _ = outcome()
    assert [claim for claim, _ in wrong] == ["onsets"]
    assert "node05 can come back from 1 on at the latest" in wrong[0][1]


def test_h8_a_running_process_that_one_member_aborted_is_found(consortium, outcome, monkeypatch):
    monkeypatch.setattr(contract, "needed_to_abort", lambda *said: 1)
    consortium.admin1.submit(HERE, "Abort", P, "spite")
    wrong, _ = outcome()
    assert wrong == [("quorums", f"process~{P} was aborted by 1 votes, and 2 are needed")]


def overtaken(consortium, monkeypatch):
    """Let an agreement to an image that was asked for before another replace it."""
    for version in ("2.0.0", "3.0.0"):
        consortium.register(version=version)
    early, later = (
        consortium.admin1.submit(HERE, "UpdateImage", P, 1, version) for version in ("2.0.0", "3.0.0")
    )
    assert consortium.agree(consortium.admin2, later)["change"] == 0
    monkeypatch.setattr(AskRecord, "overtaken_by", lambda *said: None)
    assert consortium.agree(consortium.admin3, early)["change"] == 1
    monkeypatch.undo()


def test_h7_a_late_agreement_that_replaces_a_later_image_is_found(consortium, outcome, monkeypatch):
    overtaken(consortium, monkeypatch)
    found, _ = outcome()
    assert found == [
        ("agreements", f"change~{P}~0000000001 was asked for before change 0, which decided otherwise")
    ]


def test_h7_an_ask_that_claims_to_be_later_than_it_is_is_found(consortium, outcome):
    ask = consortium.admin1.endorse(HERE, "ChangeTopology", P, 1, {"kind": "ring"})
    assert consortium.commit([rewritten(ask, "ask", {"after": 7})]) == ["VALID"]
    found, _ = outcome()
    assert ("agreements", f"ask~{P}~Org1MSP~0000000000 says that it was asked at another time") in found
