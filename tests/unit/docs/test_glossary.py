"""The glossary has every word once, in alphabetical order."""

import re

from docs.generator.repository import ROOT

ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
)[1:]


def test_the_words_are_in_alphabetical_order():
    words = [word for word, _, _ in ROWS]
    assert words == sorted(words, key=lambda word: (word.casefold(), word.isupper()))


def test_a_word_is_explained_once():
    words = [word for entry, _, _ in ROWS for word in entry.split(", ")]
    assert len(words) == len(set(words)) > 50


def test_the_words_of_the_paper_and_of_the_records_are_there():
    words = {word for entry, _, _ in ROWS for word in entry.split(", ")}
    assert words >= {
        *("FIT", "SHARE", "GET", "ADD", "GET_TOP", "CROP", "slot", "ensemble", "estimator", "neighbour"),
        *("iteration", "task", "step", "share", "opening", "statement", "standing", "head", "provenance"),
        *("commitment", "broker", "relay", "organisation", "node", "process", "topology", "model"),
    }
