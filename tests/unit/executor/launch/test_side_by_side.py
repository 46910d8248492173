"""Nodes of one host that wait for each other, with fewer places than nodes: all of them come to an end."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.memory.federation import Federation
from support.memory.launches import SCHEMA, Host, LearnerContainer, at_host
from support.memory.learners import specification

from executor.launch import task_run
from executor.launch.places import Places

SECONDS = 20
"""For a task; where nodes wait for each other's place for ever, it fails after that."""


class SideBySide(LearnerContainer):
    """Runs learners side by side, as an engine does."""

    turn: Any = nullcontext()


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host of the only two nodes of a process in which each waits for the other's share."""
    made = specification(synchronous=True, iterations=2)
    parameters = {**made["steps"][0]["parameters"], "schema_digest": str(SCHEMA.digest)}
    made["steps"][0] |= {"parameters": parameters}
    federation: Any = Federation(made)
    for node in ("node03", "node04"):
        federation.admin2.submit("orchestration", "Leave", federation.process, node, 0, "")
    with at_host(Host(socket_folder, federation), monkeypatch) as found:
        monkeypatch.setattr(task_run, "Container", SideBySide)
        yield found


def launched(host: Host) -> Any:
    ran = host.launch(
        "--all-local", "--iterations", 2, "--tasks", 1, "--timeout", SECONDS, "--json", *host.data
    )
    return ran.exit_code, json.loads(ran.stdout)["nodes"]


def test_two_neighbours_with_one_place_wait_for_each_other_and_both_complete(host: Host) -> None:
    code, reports = launched(host)
    assert (code, [report["error"] for report in reports]) == (0, [None, None])
    assert [len(report["rounds"]) for report in reports] == [2, 2]


def test_a_node_that_waits_for_its_neighbour_and_keeps_its_place_would_wait_for_ever(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above is worth: without lending, the neighbour never begins."""
    asked = threading.Event()

    @contextmanager
    def kept(_: Places) -> Iterator[None]:
        asked.set()
        yield

    monkeypatch.setattr(Places, "lent", kept)
    ran = host.launch("--all-local", "--tasks", 1, "--timeout", 2, "--json", *host.data)
    assert asked.is_set()
    codes = [(report["error"] or {}).get("code") for report in json.loads(ran.stdout)["nodes"]]
    assert "WAIT_TIMEOUT" in codes or "LEARNER_TIMEOUT" in codes
