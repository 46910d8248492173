"""Organisations say what their peers hold: a liar, a peer with another state, two chains are named."""

import io
from dataclasses import replace

import pytest
from support.memory.blocks import authority

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.errors import BundleError
from executor.audit.fabric.block import Block
from executor.audit.statements import Statement
from executor.audit.verify import verify_bundle


@pytest.fixture
def say(recorder):
    def statement(organisation="Org1MSP", height=10, signer=None, **changes):
        block = Block.from_bytes(recorder.blocks[height - 1]) if height <= len(recorder.blocks) else None
        member = authority(signer or organisation).issue("auditor", "client", role="auditor")
        made = Statement(
            "attestree",
            organisation,
            height,
            block.hash.hex() if block else "00",
            block.commit_hash.hex() if block else "00",
            member.certificate.decode(),
        )
        made = replace(made, **changes)
        return replace(made, signature=member.sign(made.signed).hex())

    return statement


@pytest.fixture
def wrong(recorder, raw_export):
    def failures(*said):
        found = verify_bundle(io.BytesIO(raw_export), Anchor(parse_anchor(recorder.genesis)), said=said)
        assert {failure.claim for failure in found.failures} <= {"statements"}
        return [failure.what for failure in found.failures]

    return failures


def test_statements_that_agree_with_the_export_hold(say, wrong):
    assert wrong(say(), say("Org2MSP", 12), say("Org3MSP", 40)) == []


def test_h19_a_peer_with_another_state_is_named(say, wrong):
    assert wrong(say(), say("Org2MSP", commit_hash="11" * 32)) == ["the peer of Org2MSP has another state"]


def test_h18_an_orderer_that_shows_two_chains_is_found(say, wrong):
    assert wrong(say("Org3MSP", block_hash="22" * 32)) == ["Org3MSP has another chain"]
    beyond = [say("Org1MSP", 99, block_hash="11"), say("Org2MSP", 99, block_hash="22")]
    assert wrong(*beyond) == ["Org1MSP and Org2MSP have two chains or two states"]


def test_h18_a_statement_beyond_the_export_is_said_not_to_be_compared(say, recorder, raw_export):
    """A peer that is further, or says so, is no evidence that it has the same chain."""
    said = [say("Org1MSP", 99), say("Org2MSP", 99)]
    found = verify_bundle(io.BytesIO(raw_export), Anchor(parse_anchor(recorder.genesis)), said=said)
    assert "statements" not in {claim.name for claim in found.claims}
    told = [sentence for sentence in found.not_proven if "not compared" in sentence]
    assert len(told) == 2
    assert f"of height 99, the blocks at hand are of {len(recorder.blocks)}" in told[0]


def test_h20_a_statement_of_somebody_else_counts_for_nobody(say, wrong):
    (what,) = wrong(say("Org1MSP", signer="Org2MSP"))
    assert what.startswith("nobody of Org1MSP said so: 0 chains lead")
    (what,) = wrong(replace(say(), height=11))
    assert what == "nobody of Org1MSP said so: its signature is not over this"
    (what,) = wrong(replace(say(), channel="other"))
    assert "about channel" in what


def test_a_statement_has_one_form(say):
    made = say()
    raw = made.to_bytes()
    assert Statement.from_bytes(raw + b"\n") == made
    later, odd = raw.replace(b'"version":1', b'"version":2'), raw.replace(b'"height":10', b'"height":"1"')
    for bad in (b"", b"{}", b"[" * 9999, later, odd):
        with pytest.raises(BundleError, match="STATEMENT_FORMAT"):
            Statement.from_bytes(bad)
