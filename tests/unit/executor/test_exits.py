"""The page of exit codes and the constants of the program are the same list."""

import re
from pathlib import Path

import pytest

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


def test_what_the_host_refuses_is_told_and_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    @exits.reported
    def command(**_: object) -> None:
        Path("/dev/null/folder").mkdir()

    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == exits.FAILED
    assert "error: HOST_FAILED: /dev/null/folder: Not a directory" in capsys.readouterr().err


def test_an_output_that_nobody_reads_is_left_to_the_command_line() -> None:
    @exits.reported
    def command(**_: object) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        command()
