"""Requests to read models are decided again: a majority with other chaincode cannot make decisions up."""

import io
from dataclasses import replace
from datetime import timedelta

import pytest
from support.memory import blocks
from support.memory.audited import SPEC, SmallPlayer
from support.memory.federation import DIGESTS, MODEL, Federation
from support.memory.scenario import changed

from chaincode.common import write
from chaincode.model import access, requests
from chaincode.orchestration.process import ProcessProgress
from chaincode.shim import Context
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol.agreement.consent import Consent
from protocol.agreement.process import ModelAccess
from protocol.ledger import keys
from protocol.ledger.requests import AccessRequest, RequestStatus

ONE = changed("steps", 0, "iterations", 1, base=SPEC) | {"nodes": {"node01": "Org1MSP", "node03": "Org2MSP"}}
P, PLACE = ONE["process"], f"{ONE['process']}~node01~Org3MSP~0000000000"


@pytest.fixture
def federation():
    """A completed process in which both organisations have to agree."""
    made = blocks.record(Federation)(ONE | {"model_access": "majority", "model_licence": DIGESTS[6]})
    made.players = {node: SmallPlayer(made, node) for node in ONE["nodes"]}
    made.play(0)
    made.publish_all()
    made.admin1.submit("orchestration", "Complete", P)
    return made


def ask(federation, licence=DIGESTS[6]):
    return federation.admin3.submit(MODEL, "Request", P, "node01", "to compare", licence)["digest"]


def vote(federation, caller, digest, agrees=True):
    return caller.submit(MODEL, "Decide", P, "node01", "Org3MSP", 0, digest, agrees)


def wrong(federation):
    recorder = federation.recorder
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    return [(failure.claim, failure.what) for failure in found.failures]


def test_a_decision_by_the_votes_that_it_takes_holds(federation):
    digest = ask(federation)
    vote(federation, federation.admin1, digest)
    assert vote(federation, federation.admin2, digest)["request"]["decision"]["granted"] is True
    assert wrong(federation) == []


def test_a_grant_by_one_vote_where_two_are_needed_is_found(federation, monkeypatch):
    digest = ask(federation)
    monkeypatch.setattr(Consent, "is_given", lambda consent, agreed: True)
    assert vote(federation, federation.admin1, digest)["request"]["decision"]["granted"] is True
    monkeypatch.undo()
    assert wrong(federation) == [
        ("requests", f"request~{PLACE} was decided otherwise than by the votes on it")
    ]


def test_a_grant_by_the_owner_alone_where_others_decide_is_found(federation, monkeypatch):
    monkeypatch.setattr(access, "ModelAccess", type("Any", (), {"OWNER": ModelAccess.MAJORITY}))
    federation.admin1.submit(MODEL, "Grant", P, "node01", "Org3MSP")
    assert wrong(federation) == [("access", f"access~{P}~node01 was changed by Org1MSP")]


def test_c4_a_revocation_by_the_owner_alone_where_others_decide_is_found(federation, monkeypatch):
    monkeypatch.setattr(access, "ModelAccess", type("Any", (), {"OWNER": ModelAccess.MAJORITY}))
    federation.admin1.submit(MODEL, "Revoke", P, "node01", "Org2MSP")
    assert wrong(federation) == [("access", f"access~{P}~node01 was changed by Org1MSP")]


def test_a_revocation_by_those_who_decide_holds(federation):
    made = federation.admin1.submit(MODEL, "RequestRevocation", P, "node01", "Org2MSP", "no longer wanted")
    federation.admin1.submit(MODEL, "Decide", P, "node01", "Org1MSP", 0, made["digest"], True)
    assert federation.admin2.code(MODEL, "Get", P, "node01") == "ACCESS_GRANT"
    assert wrong(federation) == []


def test_a_revocation_that_one_without_a_say_asked_for_is_found(federation, monkeypatch):
    monkeypatch.setattr(requests, "_check_say", lambda consent, organisation: None)
    federation.admin3.submit(MODEL, "RequestRevocation", P, "node01", "Org2MSP", "no longer wanted")
    assert wrong(federation) == [("requests", f"request~{PLACE} is not on the terms of its process")]


def test_a_grant_for_longer_than_was_asked_for_is_found(federation, monkeypatch):
    until = "2999-01-01T00:00:00Z"
    asked = federation.admin3.submit(MODEL, "Request", P, "node01", "to compare", DIGESTS[6], until)
    vote(federation, federation.admin1, asked["digest"])
    honest = AccessRequest.carried_out
    monkeypatch.setattr(
        AccessRequest, "carried_out", lambda made, *said: honest(replace(made, expires=None), *said)
    )
    vote(federation, federation.admin2, asked["digest"])
    monkeypatch.undo()
    assert wrong(federation) == [("access", f"access~{P}~node01 changed otherwise than it says")]


def test_a_decision_that_is_not_carried_out_is_found(federation, monkeypatch):
    digest = ask(federation)
    vote(federation, federation.admin1, digest)
    skipped = keys.access(P, "node01")
    monkeypatch.setattr(requests, "write", lambda ctx, key, record: key == skipped or write(ctx, key, record))
    vote(federation, federation.admin2, digest)
    assert wrong(federation) == [("requests", f"request~{PLACE} was not carried out as decided")]


def test_votes_that_are_enough_and_decide_nothing_are_found(federation, monkeypatch):
    digest = ask(federation)
    vote(federation, federation.admin1, digest)
    monkeypatch.setattr(requests, "outcome_of", lambda *said: None)
    vote(federation, federation.admin2, digest)
    assert wrong(federation) == [("requests", f"decision~{PLACE}~Org2MSP was enough and decided nothing")]


def test_b5_a_second_vote_of_one_organisation_is_found(federation, monkeypatch):
    digest = ask(federation)
    vote(federation, federation.admin1, digest)
    monkeypatch.setattr(requests, "_votes", lambda *said: {})
    vote(federation, federation.admin1, digest, agrees=False)
    assert ("requests", f"Org1MSP voted twice in decision~{PLACE}~Org1MSP") in wrong(federation)


def test_h5_a_request_that_is_not_counted_is_found(federation, monkeypatch):
    monkeypatch.setattr(requests, "_count", lambda *said: 0)
    ask(federation)
    assert wrong(federation) == [("requests", f"request~{PLACE} was not counted")]


def test_h5_a_count_that_uses_up_anothers_requests_is_found(federation, monkeypatch):
    monkeypatch.setattr(
        requests.AccessRequests, "_asked", lambda _, ctx, made, consent: RequestStatus.of(made, consent, {})
    )
    ask(federation)
    counted = f"requests~{P}~Org3MSP counts a request that was not made"
    assert wrong(federation) == [("requests", counted)]


def test_c1_a_vote_of_one_who_has_no_say_is_found(federation, monkeypatch):
    digest = ask(federation)
    monkeypatch.setattr(requests, "_consent", lambda *said: Consent(("Org3MSP",), 2))
    vote(federation, federation.admin3, digest)
    assert ("requests", f"Org3MSP has no say in decision~{PLACE}~Org3MSP") in wrong(federation)


def test_b5_a_vote_without_its_organisations_endorsement_is_found(federation, monkeypatch):
    digest = ask(federation)
    monkeypatch.setattr(requests, "write_word", lambda ctx, voter, key, word: requests.write(ctx, key, word))
    vote(federation, federation.admin1, digest)
    assert wrong(federation) == [("requests", f"Org1MSP did not vouch for decision~{PLACE}~Org1MSP")]


def test_a_request_on_another_licence_is_found(federation, monkeypatch):
    honest = requests.access_terms

    def without_licence(ctx: Context, process: str):
        terms = honest(ctx, process)
        return type(terms).from_dict(terms.to_dict() | {"licence": None})

    monkeypatch.setattr(requests, "access_terms", without_licence)
    ask(federation, "")
    assert wrong(federation) == [("requests", f"request~{PLACE} is not on the terms of its process")]


def test_h9_a_grant_without_one_who_did_the_last_iteration_is_found(monkeypatch):
    """The others left it out for a second node that was silent, and decided on its models alone."""
    monkeypatch.setattr(ProcessProgress, "entitled", ProcessProgress.present)
    nodes = {"node01": "Org1MSP", "node03": "Org2MSP", "node05": "Org3MSP", "node06": "Org3MSP"}
    three = {"organisations": ["Org1MSP", "Org2MSP", "Org3MSP"], "nodes": nodes}
    made = blocks.record(Federation)(
        ONE | three | {"topology": {"kind": "disconnected"}, "model_access": "all"}
    )
    made.players = {node: SmallPlayer(made, node) for node in nodes}
    for node in ("node01", "node03", "node05"):
        made.players[node].open(0)
        made.players[node].complete()
    for days in (0, 2):
        made.time += timedelta(days=days)
        for member in (made.admin1, made.admin2):
            member.submit("orchestration", "LeaveOutOrganisation", P, "Org3MSP", "gone")
    made.publish_all("node01", "node03", "node05")
    made.admin1.submit("orchestration", "Complete", P)
    asked = made.admin1.submit(MODEL, "RequestRevocation", P, "node01", "Org2MSP", "to have it alone")
    decided = made.admin1.submit(MODEL, "Decide", P, "node01", "Org1MSP", 0, asked["digest"], True)
    assert decided["request"]["decision"]["granted"] is True
    place = f"{P}~node01~Org1MSP~0000000000"
    assert ("requests", f"request~{place} was decided otherwise than by the votes on it") in wrong(made)


def stale_grant(federation, monkeypatch):
    """Have a spare request granted after its asker was granted access and lost it again."""
    spare = ask(federation)
    used = federation.admin3.submit(MODEL, "Request", P, "node01", "to compare", DIGESTS[6])
    for caller in (federation.admin1, federation.admin2):
        caller.submit(MODEL, "Decide", P, "node01", "Org3MSP", 1, used["digest"], True)
    taken = federation.admin1.submit(MODEL, "RequestRevocation", P, "node01", "Org3MSP", "over")
    for caller in (federation.admin1, federation.admin2):
        caller.submit(MODEL, "Decide", P, "node01", "Org1MSP", 0, taken["digest"], True)
    assert wrong(federation) == []
    monkeypatch.setattr(AccessRequest, "check_current", lambda *said: None)
    for caller in (federation.admin1, federation.admin2):
        vote(federation, caller, spare)
    monkeypatch.undo()


def test_c4_votes_on_a_request_after_another_decision_are_found(federation, monkeypatch):
    stale_grant(federation, monkeypatch)
    over = [f"decision~{PLACE}~{name} is about a request that was over" for name in ("Org1MSP", "Org2MSP")]
    assert wrong(federation) == [("requests", what) for what in over]


def test_c4_votes_on_a_request_whose_time_is_over_are_found(federation, monkeypatch):
    until = (federation.time + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    asked = federation.admin3.submit(MODEL, "Request", P, "node01", "to compare", DIGESTS[6], until)
    federation.time += timedelta(days=2)
    monkeypatch.setattr(AccessRequest, "check_current", lambda *said: None)
    vote(federation, federation.admin1, asked["digest"])
    monkeypatch.undo()
    assert wrong(federation) == [("requests", f"decision~{PLACE}~Org1MSP is about a request that was over")]


def test_c4_a_request_that_names_another_decision_than_the_last_is_found(federation, monkeypatch):
    """Else a spare request could be made to last, by naming the decision that is to come."""
    monkeypatch.setattr(requests.AccessRecord, "last_decision", lambda *said: "ab" * 32)
    ask(federation)
    monkeypatch.undo()
    assert wrong(federation) == [("requests", f"request~{PLACE} is not on the terms of its process")]


def test_a_refusal_holds_and_is_kept_with_the_access(federation):
    digest = ask(federation)
    refused = vote(federation, federation.admin1, digest, agrees=False)
    assert refused["request"]["decision"]["granted"] is False
    assert federation.auditor1.evaluate(MODEL, "Access", P, "node01")["change"]["action"] == "refuse"
    assert wrong(federation) == []
