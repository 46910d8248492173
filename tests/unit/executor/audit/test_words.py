"""Asks, agreements and votes in an export: each vouched for by the organisation whose word it is."""

import pytest
from support.memory import blocks
from support.memory.federation import Federation
from support.memory.forgery import failures, without_mark
from support.memory.ledger import VALID
from support.memory.scenario import SPECIFICATION

P, HERE = SPECIFICATION["process"], "orchestration"
ASK = (HERE, "ChangeTopology", P, 2, {"kind": "full"})
WORDS = {
    "ask": ASK,
    "absence": (HERE, "LeaveOut", P, "node03", "silent"),
    "departure": (HERE, "LeaveOutOrganisation", P, "Org2MSP", "silent"),
    "abort": (HERE, "Abort", P, "why"),
}


@pytest.fixture
def federation():
    return blocks.record(Federation)(SPECIFICATION)


def test_words_that_their_organisations_vouched_for_hold(federation):
    ask = federation.admin1.submit(*ASK)
    federation.agree(federation.admin2, ask)
    for call in WORDS.values():
        federation.admin1.submit(*call)
    federation.admin1.submit(HERE, "Withdraw", P, 1)
    assert failures(federation) == []


@pytest.mark.parametrize("kind", WORDS)
def test_h1_a_word_that_others_wrote_in_an_organisations_name_is_found(federation, kind):
    assert federation.commit([without_mark(federation.admin1.endorse(*WORDS[kind]))]) == [VALID]
    (found,) = failures(federation)
    assert found[0] == "agreements"
    assert found[1].startswith(f"Org1MSP did not vouch for {kind}~{P}")


def test_h1_an_agreement_that_others_wrote_in_an_organisations_name_is_found(federation):
    ask = federation.admin1.submit(*ASK)
    forged = without_mark(federation.admin2.endorse(*federation.agreement(ask)))
    assert federation.commit([forged]) == [VALID]
    assert [what[:25] for _, what in failures(federation)] == ["Org2MSP did not vouch for"]
