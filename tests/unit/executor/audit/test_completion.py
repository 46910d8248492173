"""Completions and models published for others are judged again: a majority with other chaincode is found."""

import io
from dataclasses import replace

import pytest
from support.memory import blocks
from support.memory.audited import PROCESS, SPEC, SmallPlayer
from support.memory.federation import MODEL, Federation, changed

from chaincode.common import CallerIdentity
from chaincode.model import contract as model_contract
from chaincode.orchestration import contract as orchestration_contract
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle
from protocol.digest import Digest

NODES = {"node01": "Org1MSP", "node03": "Org2MSP"}


@pytest.fixture
def federation():
    made = blocks.record(Federation)(changed("steps", 0, "iterations", 1, base=SPEC) | {"nodes": NODES})
    made.players = {node: SmallPlayer(made, node) for node in NODES}
    made.play(0)
    return made


def wrong(federation):
    return [(failure.claim, failure.what) for failure in verified(federation).failures]


def verified(federation):
    recorder = federation.recorder
    return verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))


def test_the_vote_of_every_model_with_a_cap_is_computed_again():
    base = changed("steps", 0, "parameters", "options", {"vote_cap": "0.5"}, base=SPEC) | {"nodes": NODES}
    made = blocks.record(Federation)(changed("steps", 0, "iterations", 1, base=base))
    made.players = {node: SmallPlayer(made, node) for node in NODES}
    made.play(0)
    made.publish_all()
    found = verified(made)
    assert found.failures == []
    (claim,) = [claim for claim in found.claims if claim.name == "vote cap"]
    assert claim.checked == len(NODES)


def test_h10_a_completion_without_models_is_found(federation, monkeypatch):
    monkeypatch.setattr(orchestration_contract, "unpublished", lambda *asked: ())
    federation.publish_all("node01")
    federation.admin2.submit("orchestration", "Complete", PROCESS)
    assert wrong(federation) == [("models", f"process~{PROCESS} was completed without the model of node03")]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"metrics": {"auc": "1.0"}}, "says of its node what the node did not"),
        ({"missing": ()}, "misses other trees than it says"),
        ({"digest": Digest(bytes(32))}, "is not the last ensemble of its node"),
        ({"result": Digest(bytes(32))}, "is not the last ensemble of its node"),
        ({"iteration": 1}, "is not the last ensemble of its node"),
    ],
)
def test_c14_a_model_that_says_more_than_the_ledger_did_is_found(federation, monkeypatch, changes, what):
    honest = model_contract.ModelContract._announced

    def altered(self, ctx, record):
        found = replace(record, **changes)
        model_contract.write(ctx, model_contract.keys.model(record.process, record.node), found)
        return honest(self, ctx, found)

    monkeypatch.setattr(model_contract.ModelContract, "_announced", altered)
    federation.admin2.submit(MODEL, "PublishFor", PROCESS, "node01")
    found = wrong(federation)
    assert ("models", f"model~{PROCESS}~node01 {what}") in found


def test_c1_a_model_that_an_outsider_published_is_found(federation, monkeypatch):
    monkeypatch.setattr(CallerIdentity, "need_member", lambda *said: None)
    federation.admin3.submit(MODEL, "PublishFor", PROCESS, "node01")
    assert ("models", f"model~{PROCESS}~node01 was published by admin") in wrong(federation)
