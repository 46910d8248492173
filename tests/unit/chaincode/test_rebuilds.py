"""Rebuilds on the real contracts: one statement per organisation, and processes that ask for some."""

import pytest
from support.memory.federation import DIGESTS, TWO_ROUNDS, Federation, changed
from support.memory.scenario import IMAGE

P = "fraud-2026"
ASKED = changed("image_attestations", 2, base=TWO_ROUNDS)


@pytest.fixture
def federation():
    """A process that asks for two rebuilds, accepted and not started."""
    found = Federation(ASKED, started=False)
    for caller in (found.admin1, found.admin2):
        caller.submit("orchestration", "Accept", P)
    return found


def attest(member, digest=DIGESTS[2], version=IMAGE[1]):
    return member.submit("image", "Attest", IMAGE[0], version, digest)


def test_a_process_starts_when_enough_organisations_got_its_image_from_source(federation):
    assert attest(federation.scientist1)["same"] is True
    assert federation.admin1.code("orchestration", "Start", P) == "IMAGE_UNATTESTED"
    attest(federation.auditor2)
    assert federation.admin1.submit("orchestration", "Start", P)["status"] == "running"


@pytest.mark.parametrize(("who", "digest"), [("scientist2", DIGESTS[9]), ("scientist3", DIGESTS[2])])
def test_another_id_or_an_organisation_outside_does_not_count(federation, who, digest):
    attest(federation.scientist1)
    attest(getattr(federation, who), digest)
    assert federation.admin1.code("orchestration", "Start", P) == "IMAGE_UNATTESTED"


def test_a_statement_changes_and_its_history_stays(federation):
    attest(federation.scientist1, DIGESTS[9])
    attest(federation.auditor1)
    (found,) = federation.auditor3.evaluate("image", "ListRebuilds", *IMAGE)["items"]
    assert (found["same"], found["organisation"]) == (True, "Org1MSP")
    history = federation.auditor3.evaluate("image", "RebuildHistory", *IMAGE, "Org1MSP")["items"]
    assert [change["value"]["same"] for change in history] == [True, False]


def test_a_statement_that_is_taken_back_stops_no_running_process(federation):
    attest(federation.scientist1)
    attest(federation.scientist2)
    federation.admin1.submit("orchestration", "Start", P)
    attest(federation.scientist2, DIGESTS[9])
    federation.play(0)


def test_a_process_moves_to_no_version_that_fewer_rebuilt(federation):
    for scientist in (federation.scientist1, federation.scientist2):
        attest(scientist)
    federation.admin1.submit("orchestration", "Start", P)
    federation.register(version="2")
    ask = ("orchestration", "UpdateImage", P, 1, "2")
    assert federation.admin1.code(*ask) == "IMAGE_UNATTESTED"
    for scientist in (federation.scientist1, federation.scientist2):
        attest(scientist, version="2")
    federation.admin1.submit(*ask)


def test_more_rebuilds_than_organisations_cannot_be_asked_for():
    found = Federation(started=False)
    too_many = changed("image_attestations", 3) | {"process": "many"}
    assert found.scientist1.code("orchestration", "Create", too_many) == "PROCESS_VALUE"
