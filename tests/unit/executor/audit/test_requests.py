"""Requests to read models are decided again: a majority with other chaincode cannot make decisions up."""

import io

import pytest
from support.memory import blocks
from support.memory.audited import SPEC, SmallPlayer
from support.memory.federation import DIGESTS, MODEL, Federation
from support.memory.scenario import changed

from chaincode.model import access, requests
from chaincode.shim import Context
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol.agreement.consent import Consent
from protocol.agreement.process import ModelAccess

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
