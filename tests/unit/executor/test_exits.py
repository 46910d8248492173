"""The page of exit codes and the constants of the program are the same list."""

import re
from pathlib import Path

from executor import exits

PAGE = Path(__file__).resolve().parents[3] / "docs/exit-codes.md"
NUMBERS = {value for name, value in vars(exits).items() if name.isupper() and type(value) is int}


def test_the_table_lists_exactly_the_constants() -> None:
    listed = re.findall(r"^\| \[(\d+)\]\(#([^)]+)\) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in listed] == sorted(NUMBERS)


def test_every_code_has_a_section_that_its_row_leads_to() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \[(\d+)\]\(#([^)]+)\) \|", text, re.MULTILINE))
    sections = dict(re.findall(r"^## (\d+) (.+)$", text, re.MULTILINE))
    assert set(rows) == set(sections)
    for number, title in sections.items():
        assert rows[number] == f"{number}-{title.lower().replace(' ', '-')}"


def test_every_section_says_something() -> None:
    parts = re.split(r"^## .+$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(parts) == len(NUMBERS)
    assert all(len(part.split()) > 10 for part in parts)


def test_no_two_causes_share_a_number() -> None:
    names = [name for name, value in vars(exits).items() if name.isupper() and type(value) is int]
    assert len(names) == len(NUMBERS)
