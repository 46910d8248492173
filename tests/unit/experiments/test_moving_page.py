"""The page of a federation that changes: what happened is told by roles, and misses are said."""

from dataclasses import replace
from pathlib import Path

from experiments import moving_page, pages
from experiments.moving_page import Moved

RUN = Moved(
    nodes=20,
    organisations=4,
    processes={"roaming": "moving-1f-roaming", "waiting": "moving-1f-waiting"},
    events=["node15 dies while its task is open", "the executor of org2 for moving-1f-roaming is killed"],
    results={"roaming": 76, "waiting": 4},
    different={},
    seed=7,
    begun_again=3,
    audited=True,
    seconds=97.4,
)


def test_the_part_of_the_page_tells_what_happened_without_the_ids_of_one_run(tmp_path: Path) -> None:
    moving_page.write(RUN, tmp_path)
    page = (tmp_path / pages.PAGE).read_text()
    assert "1. node15 dies while its task is open\n2. the executor of org2 for `roaming` is killed" in page
    assert "moving-1f" not in page
    assert "`executor experiment moving`, seeds 7;" in page
    assert page.index("<!-- moving: begin -->") < page.index("verified") < page.index("<!-- moving: end -->")


def test_results_that_differ_and_an_audit_that_fails_are_said() -> None:
    shown = moving_page.text(replace(RUN, different={"roaming": 2}, audited=False))
    assert [row[1:] for row in moving_page.results_grid(replace(RUN, different={"roaming": 2})).rows] == [
        ("76", "74"),
        ("4", "4"),
    ]
    assert "FAILED" in shown
    assert "verified" not in shown
