"""Votes, quorums and silences are counted again: a majority with other chaincode cannot make them up."""

import io
from dataclasses import replace
from datetime import timedelta

import pytest
from support.memory import blocks
from support.memory.federation import Federation
from support.memory.scenario import changed

from chaincode.orchestration import absence, contract
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle

P, HERE = "fraud-2026", "orchestration"
LONG = timedelta(days=1, hours=1)
THREE = changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]) | {
    "nodes": {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP"},
    "topology": {"kind": "full"},
}


@pytest.fixture
def consortium():
    return blocks.record(Federation)(THREE)


@pytest.fixture
def outcome(consortium):
    """Verify what the consortium has done; returns what is wrong, and the claims that were checked."""

    def judge():
        recorder = consortium.recorder
        found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
        return [(failure.claim, failure.what) for failure in found.failures], {c.name for c in found.claims}

    return judge


def leave_out(consortium, *members, after=LONG):
    return [
        member.submit(HERE, "LeaveOut", P, "node05", "no sign of life", time=consortium.time + after)
        for member in members
    ]


def test_votes_that_the_chaincode_counted_hold(consortium, outcome):
    leave_out(consortium, consortium.admin1, after=timedelta(hours=1))
    *_, last = leave_out(consortium, consortium.admin1, consortium.scientist2)
    assert last["change"] == 0
    for member in (consortium.admin1, consortium.admin2):
        member.submit(HERE, "Abort", P, "nobody is left")
    wrong, claims = outcome()
    assert wrong == []
    assert {"quorums", "silence"} <= claims


def test_h10_one_vote_where_two_are_needed_is_found(consortium, outcome, monkeypatch):
    monkeypatch.setattr(absence, "majority_of", lambda members: 1)
    (last,) = leave_out(consortium, consortium.admin1)
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


def test_h8_a_running_process_that_one_member_aborted_is_found(consortium, outcome, monkeypatch):
    monkeypatch.setattr(contract, "needed_to_abort", lambda *said: 1)
    consortium.admin1.submit(HERE, "Abort", P, "spite")
    wrong, _ = outcome()
    assert wrong == [("quorums", f"process~{P} was aborted by 1 votes, and 2 are needed")]
