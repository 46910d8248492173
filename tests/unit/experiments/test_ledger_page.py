"""The page of a run through the ledger: its parts make up one bar, and misses are said."""

from pathlib import Path

import pytest

from experiments import figures
from experiments.claims import goals_grid
from experiments.ledger_page import BAR, MOST_TIMES, PART, PARTS, OnLedger, goals, parts_grid, run_grid

ROOT = Path(__file__).parents[3]

RUN = OnLedger(
    nodes=20,
    iterations=4,
    tasks=240,
    compared=240,
    different=0,
    other_models=0,
    audited=True,
    seconds=90.0,
    simulator_seconds=30.0,
    separate_seconds=60.0,
    parts={name: 1.0 + place for place, name in enumerate(PARTS)},
)


def test_the_bars_of_all_parts_make_up_one():
    bars = [row[-1] for row in parts_grid(RUN).rows]
    assert {len(bar) for bar in bars} == {BAR}
    for place in range(BAR):
        assert sum(bar[place] == "#" for bar in bars) == 1
    assert [row[1] for row in parts_grid(RUN).rows][:2] == ["1.0", "2.0"]


def test_a_run_that_differs_and_fails_its_audit_says_so():
    wrong = {"different": 3, "other_models": 2, "audited": False}
    shown = dict(run_grid(OnLedger(**{**vars(RUN), **wrong})).rows)
    assert shown["Models with other trees or figures than the simulator's"] == "2"
    assert shown["Ensembles on the chain equal to the simulator's"] == "237 of 240"
    assert shown["Audit since the first block"] == "FAILED"
    assert (shown["Ratio to the first of these"], shown["Ratio to the second"]) == ("3.00", "1.50")


def test_the_ratio_is_held_against_its_goal_and_a_miss_is_said():
    slower = OnLedger(**{**vars(RUN), "seconds": 90.5})
    for run, met in ((RUN, ["met", "met"]), (slower, ["MISSED", "met"])):
        rows = goals_grid("Goals", goals(run)).rows
        assert [row[-1] for row in rows] == met
        assert {row[1] for row in rows} == {"at most 3"}
    assert goals(OnLedger(**{**vars(RUN), "tasks": 239})) == []


def test_the_goals_of_the_page_are_those_of_the_run_that_it_shows():
    """The page is written by a run; what it says of the goals follows from the ratios that it has."""
    page = (ROOT / "docs/results.md").read_text()
    part = page[page.index(f"<!-- {PART}: begin") : page.index(f"<!-- {PART}: end")]
    cells = {row[1].strip(): row for row in (line.split("|") for line in part.splitlines()) if len(row) > 2}
    ratios = [cells[name][2].strip() for name in ("Ratio to the first of these", "Ratio to the second")]
    for goal, ratio in zip(goals(RUN), ratios, strict=True):
        met = "met" if float(ratio) <= MOST_TIMES else "MISSED"
        assert [cell.strip() for cell in cells[goal.text][2:5]] == [f"at most {MOST_TIMES}", ratio, met]


def test_the_picture_of_the_parts_is_the_same_for_the_same_run(tmp_path: Path):
    first, second = (
        figures.stacked_parts(dict(RUN.parts), {"simulator": 30.0}, tmp_path / name / "parts")
        for name in ("first", "second")
    )
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.parametrize("parts", [{}, {"learning": 0.0}])
def test_a_run_in_which_nothing_was_left_to_do_has_an_empty_bar(parts):
    bars = [row[-1] for row in parts_grid(OnLedger(**{**vars(RUN), "parts": parts})).rows]
    assert set("".join(bars)) == {"."}


def test_a_run_that_was_taken_up_again_shows_no_ratio():
    """Its time is that of the tasks that were left, the simulator's that of all."""
    rows = dict(run_grid(OnLedger(**{**vars(RUN), "tasks": 239})).rows)
    assert not [name for name in rows if name.startswith("Ratio to")]
    assert rows["Ratio"] == "none: of 240 tasks this run did 239"
    assert OnLedger(**{**vars(RUN), "tasks": 0}).ratio is None
    assert RUN.ratio == 3.0
