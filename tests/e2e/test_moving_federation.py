"""Federations that change while they run: nodes join, leave, return and die, and the bytes stay the same."""

import json
from typing import Any

import pytest
from support.network import done
from support.printed import EXECUTOR


def moved(*options: str, seconds: float) -> dict[str, Any]:
    """Play the scenario and return its report; the command itself fails if anything differs."""
    report = json.loads(done(EXECUTOR, "experiment", "moving", *options, "--json", seconds=seconds))
    assert report["equals_simulator"] is True
    assert report["audited"] is True
    # Three executors were killed in the middle of a task; each task has one result all the same.
    assert report["begun_again"] >= 2
    # Where nodes wait for each other, the deadline decides about one that is never heard of again.
    (left_out,) = [event for event in report["events"] if "leave node" in event]
    assert "a majority" in left_out
    assert len(report["events"]) == 7
    return dict(report)


@pytest.mark.timeout(600)
def test_c11_c12_e9_h10_nodes_join_leave_return_and_die_and_nothing_is_doubled() -> None:
    """Four nodes: two stay throughout, one dies in iteration 1 and is back for 3, one joins for 2.

    Of the three that wait for each other, one is never heard of again after iteration 0, and left out.
    """
    results = moved("--quick", seconds=600)["results"]
    assert results == {"roaming": 2 * 4 + 2 + 2, "waiting": 2 * 2 + 1, "warm": 1}


@pytest.mark.large
@pytest.mark.timeout(1800)
def test_c11_c12_e9_h10_twenty_nodes_join_leave_return_and_die() -> None:
    results = moved(seconds=1800)["results"]
    assert results == {"roaming": 18 * 4 + 2 + 2, "waiting": 2 * 2 + 1, "warm": 1}
