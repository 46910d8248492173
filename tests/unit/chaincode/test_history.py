"""Histories: newest first, page by page, and no page costs a peer more than its size allows."""

import pytest
from support.memory import ledger as peer
from support.memory.federation import EXECUTION, prepared

from chaincode.common import pages
from protocol import canonical
from protocol.digest import Digest
from protocol.ledger import keys
from protocol.ledger.tasks import Head

CHANGES = 250


@pytest.fixture
def federation():
    """A federation in which a node has stood at many places, the last of them 249."""
    found = prepared()()
    digest = Digest.of(b"")
    found.changes[EXECUTION, keys.head(found.process, "node01")] = [
        (f"tx{number}", peer.START, canonical.encode(Head(number, 0, digest, digest).to_dict()))
        for number in range(CHANGES)
    ]
    return found


def ask(federation, size, bookmark=""):
    parts = [federation.process, "node01"]
    return federation.auditor1.evaluate(EXECUTION, "History", "head", parts, size, bookmark)


def refusal(federation, size, bookmark):
    parts = [federation.process, "node01"]
    return federation.auditor1.code(EXECUTION, "History", "head", parts, size, bookmark)


def places(answer):
    return [change["value"]["iteration"] for change in answer["items"]]


def test_e19_a_history_is_read_whole_in_pages(federation):
    found, bookmark = [], None
    while bookmark != "":
        answer = ask(federation, 60, bookmark or "")
        found += places(answer)
        bookmark = answer["bookmark"]
    assert found == [*reversed(range(CHANGES))]


@pytest.mark.parametrize(
    ("size", "bookmark", "sent"), [(1, "", 10), (10, "", 10), (11, "", 20), (10, "95", 110), (100, "", 100)]
)
def test_e19_a_page_has_the_peer_read_what_it_lists_and_what_it_skips(
    federation, monkeypatch, size, bookmark, sent
):
    monkeypatch.setattr(peer, "PART", 10)
    answer = ask(federation, size, bookmark)
    first = CHANGES - 1 - int(bookmark or 0)
    assert places(answer) == [*range(first, first - size, -1)]
    assert answer["bookmark"] == str(int(bookmark or 0) + size)
    assert federation.sent == sent


def test_e19_the_last_page_says_so(federation):
    assert ask(federation, CHANGES)["bookmark"] == ""
    assert ask(federation, 50, "200")["bookmark"] == ""
    assert ask(federation, 49, "200")["bookmark"] == "249"
    assert ask(federation, 50, "250") == {"items": [], "bookmark": ""}
    assert ask(federation, 50, "400") == {"items": [], "bookmark": ""}


def test_e19_who_goes_far_back_takes_large_pages(federation):
    assert places(ask(federation, 20, "200")) == [*range(49, 29, -1)]
    for size in (1, 19):
        assert refusal(federation, size, "200") == "HISTORY_DEPTH"
    assert federation.sent == CHANGES
    assert ask(federation, 1000, "999")["items"] == []
    assert refusal(federation, 1000, "1000") == "HISTORY_DEPTH"


def test_e19_a_page_of_large_records_is_cut_short_and_has_a_bookmark(federation, monkeypatch):
    weight = len(federation.changes[EXECUTION, keys.head(federation.process, "node01")][-1][2])
    monkeypatch.setattr(pages, "MAX_BYTES", 3 * weight)
    answer = ask(federation, 10)
    assert (places(answer), answer["bookmark"]) == ([249, 248, 247], "3")
    monkeypatch.setattr(pages, "MAX_BYTES", 1)
    answer = ask(federation, 10, "3")
    assert (places(answer), answer["bookmark"]) == ([246], "4")


@pytest.mark.parametrize("bookmark", ["-1", "x", "1.0", "²", "1" * 10])
def test_a_bookmark_that_no_history_returned_is_refused(federation, bookmark):
    assert refusal(federation, 10, bookmark) == "BAD_ARGUMENT"
