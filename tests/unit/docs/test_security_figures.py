"""The figures in SECURITY.md are those of the results page: bounds that were measured, of what ships now."""

import re

import pytest

from docs.generator.repository import ROOT

SECURITY = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
Table = list[list[str]]


def part(name: str) -> str:
    return RESULTS.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0]


def table(text: str, title: str) -> Table:
    """The cells of the rows under a title."""
    lines = text.split(f"**{title}**\n\n")[1].split("\n\n", maxsplit=1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ATTACKS = [row for row in table(part("robust"), "Under attack") if row[1] == "default"]
MEMBERS = table(part("privacy"), "Membership of a node's rows, from ten estimators")


def lost(column: int, where: str) -> str:
    """The most that any attack takes; column 3 is recall, 5 is precision."""
    losses = [-float(row[column]) for row in ATTACKS if where in row[0] and not row[0].startswith("eclipse")]
    assert len(losses) > 7
    return f"{max(*losses, 0.0):.3f}"


def test_what_hostile_members_cost_is_what_was_measured() -> None:
    whole = [float(row[6]) for row in ATTACKS if "5 of 20" in row[0]]
    said = (
        f"all nodes of one organisation of four cost the honest ones at most {lost(3, '5 of 20')} of recall "
        f"and {lost(5, '5 of 20')} of precision, and leave none below a recall of {min(whole):.3f} in any "
        f"run; three of them cost {lost(3, '3 of 20')} and {lost(5, '3 of 20')}, a node in each of three "
        f"organisations {lost(3, '3 spread of 20')} and {lost(5, '3 spread of 20')}, one node of twenty "
        f"{lost(3, '1 of 20')} and {lost(5, '1 of 20')}, one of four on a ring {lost(3, '1 of 4,')} and "
        f"{lost(5, '1 of 4,')}"
    )
    assert said in SECURITY
    lowest = min(float(row[6]) for row in ATTACKS if not row[0].startswith("eclipse"))
    assert f"The lowest recall of any node in any run is {lowest:.3f}" in SECURITY
    least = min(float(row[8]) for row in ATTACKS)
    said = f"the lowest precision of any node in any run, surrounded ones among them, is {least:.3f}"
    assert said in SECURITY


def test_what_it_costs_to_be_surrounded_is_what_was_measured() -> None:
    rows = [row for row in ATTACKS if row[0].startswith("eclipse")]
    recall, precision = (max(0.0, *(-float(row[column]) for row in rows)) for column in (3, 5))
    assert (
        f"Between two hostile neighbours a node has at most {recall:.3f} less recall and {precision:.3f} "
        f"less precision than alone"
    ) in SECURITY


def test_how_many_runs_were_measured_is_said() -> None:
    found = re.search(r"Runs: \d+ of each federation, (\d) splits; seeds by split: split 45: (\d)", RESULTS)
    assert found
    words = ("", "one seed", "two seeds", "three seeds", "four seeds", "five seeds")
    assert found[1] == "3"
    assert f"three splits and {words[int(found[2])]} each" in SECURITY


@pytest.mark.parametrize("kind", ["forest", "boosted"])
def test_what_a_loose_home_check_costs_is_what_was_measured(kind: str) -> None:
    rows = table(part("ieee-cis"), "Beside a hostile organisation, full topology")
    loss = max(-float(row[3]) for row in rows if row[0].startswith(kind))
    words = {"forest": f"{loss:.3f} of the AP of forests", "boosted": f"{loss:.3f} of that of boosted models"}
    assert words[kind] in SECURITY


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        ("balanced, min_leaf 1", "with an area of {} under the curve"),
        ("balanced, min_leaf 1, thresholds of 4 bits", "{} with `threshold_bits: 4`"),
    ],
)
def test_what_estimators_give_away_is_what_was_measured(fit: str, words: str) -> None:
    (area,) = [row[3] for row in MEMBERS if row[0] == fit]
    assert words.format(f"{float(area):.2f}") in SECURITY
