"""The page of a run through the ledger: its parts make up one bar, and misses are said."""

from pathlib import Path

import pytest

from experiments import figures
from experiments.ledger_page import BAR, PARTS, OnLedger, parts_grid, run_grid

RUN = OnLedger(
    nodes=20,
    iterations=4,
    tasks=240,
    compared=240,
    different=0,
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
    shown = dict(run_grid(OnLedger(**{**vars(RUN), "different": 3, "audited": False})).rows)
    assert shown["Ensembles on the chain equal to the simulator's"] == "237 of 240"
    assert shown["Audit since the first block"] == "FAILED"
    assert (shown["Ratio to the first of these"], shown["Ratio to the second"]) == ("3.00", "1.50")


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
