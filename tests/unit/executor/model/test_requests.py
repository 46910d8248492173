"""Asking for a model by command: the licence is the file that was agreed on, and the words are plain."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.memory.composite import schema_output
from support.memory.story import call_of

from executor.errors import UsageError
from executor.model.request_output import catalogue_text, request_text, requests_text
from executor.model.requests import MAX_LICENCE_BYTES, accepted_licence
from protocol.agreement.parameters import InitialModel
from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.ledger.requests import CatalogueEntry
from protocol.task.output import Figures, MetricsOutput

TEXT = b"Use it well.\n"


def test_a_licence_is_accepted_by_the_file_with_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "LICENCE"
    file.write_bytes(TEXT)
    assert accepted_licence(Digest.of(TEXT), file) == Digest.of(TEXT)
    assert accepted_licence(None, None) is None


@pytest.mark.parametrize(
    "content", [b"Use it well.", b"Use it well.\r\n", b"", b"x" * (MAX_LICENCE_BYTES + 1), None]
)
def test_another_licence_text_is_refused_before_anything_is_sent(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "LICENCE"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match="LICENCE_FILE"):
        accepted_licence(Digest.of(TEXT), file)


def test_a_licence_that_is_missing_a_pipe_or_not_asked_for_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for agreed, file in ((Digest.of(TEXT), None), (Digest.of(TEXT), pipe), (None, pipe)):
        with pytest.raises(UsageError, match="LICENCE_FILE"):
            accepted_licence(agreed, file)


def test_where_a_request_stands_is_said_in_a_line() -> None:
    asked: Any = call_of("model", "Request").found.answer
    assert request_text(asked) == "request 0, 0 of 1 votes for it, 0 against, waiting for Org1MSP"
    assert request_text(call_of("model", "Decide").found.answer) == "granted, 1 of 1 votes for it, 0 against"
    shown = requests_text("p", [replace(asked, request=replace(asked.request, purpose="a\x1b[2Jb"))])
    assert "Org3MSP" in shown
    assert "\x1b" not in shown


def test_who_votes_sees_for_how_long_and_about_whom() -> None:
    asked: Any = call_of("model", "Request").found.answer
    for changes, words in (
        ({}, "to read without end"),
        ({"expires": "2027-01-31T00:00:00.000000Z"}, "to read until 2027-01-31"),
        ({"revokes": "Org2MSP"}, "that Org2MSP no longer reads"),
    ):
        shown = requests_text("p", [replace(asked, request=replace(asked.request, **changes))])
        assert words in " ".join(shown.split())


def test_h1_a_measure_of_another_kind_is_refused() -> None:
    (entry, *_) = call_of("model", "Catalogue").found
    with pytest.raises(RecordError, match="another type than metrics"):
        CatalogueEntry.from_dict({**entry.to_dict(), "measured": schema_output().to_dict()})


def test_the_catalogue_says_how_to_ask() -> None:
    (entry, *_) = call_of("model", "Catalogue").found
    licensed = replace(entry, licence=Digest.of(TEXT), missing=2)
    text = catalogue_text([licensed])
    assert f"executor model request {entry.process} {entry.node} --purpose TEXT --licence FILE" in text
    assert "decided  by its owner" in text
    assert "lacks    2 trees" in text
    assert "as its node says" in text
    assert "--licence" not in catalogue_text([entry])
    assert "measured" not in catalogue_text([entry])
    good = replace(entry, measured=MetricsOutput(Figures(0.95, 0.875, 0.9), None))
    shown = "balanced accuracy 0.950, precision 0.875, recall 0.900, on rows that it held out, signed"
    assert shown in catalogue_text([good])
    assert "of one class" in catalogue_text([replace(entry, measured=MetricsOutput(None, None))])
    initial = InitialModel("before", "node02", Digest.of(b"model"))
    doubt = "started  from before/node02: nothing says whether that one learned from the rows held out"
    assert doubt in catalogue_text([replace(good, initial=initial)])
    assert "started  from before/node02\n" in catalogue_text([replace(entry, initial=initial)])
    assert catalogue_text([]) == "no models"
