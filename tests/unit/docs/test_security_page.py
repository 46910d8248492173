"""Each guarantee of SECURITY.md says who must collude to break it, and names tests that are there."""

import re

import pytest

from docs.generator.repository import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| Guarantee")
]
TESTS = "\n".join(
    name
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_there_are_guarantees() -> None:
    assert len(ROWS) > 15


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_guarantee_has_its_ground_its_breakers_and_its_tests(row: list[str]) -> None:
    assert len(row) == 4
    assert all(row)
    named = re.findall(r"`(test_\w+)`", row[3])
    assert named, "no test is named"
    for name in named:
        assert re.search(rf"^{name}(_|$)", TESTS, re.MULTILINE), name
