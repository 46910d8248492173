"""Nodes that leave, are left out, or never share: who waits for them, how long, and what is said of it."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.memory.launches import Host, LearnerContainer, OneByOne, at_host, fresh, specification_of

from executor.exits import TIME_OUT, WRONG_STATE
from executor.launch import task_run
from protocol.task.opening import TaskId

SILENT = timedelta(days=1, hours=1)


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as found:
        yield found


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something happen on the ledger once the task is open and its container about to start."""

    def during(happens: Callable[[], object]) -> None:
        class Disturbed(LearnerContainer):
            def start(self, key: bytearray) -> None:
                with OneByOne.lock:
                    happens()
                super().start(key)

        monkeypatch.setattr(task_run, "Container", Disturbed)

    return during


def leave(host: Host) -> None:
    host.federation.admin1.submit("orchestration", "Leave", host.process, "node01", 0, "for good")


def leave_out(host: Host) -> None:
    for admin in (host.federation.admin1, host.federation.admin2):
        later = host.federation.time + SILENT
        admin.submit("orchestration", "LeaveOut", host.process, "node01", "no sign of life", time=later)


def closing_code(host: Host) -> str:
    closed = host.ledger().execution.get_task(TaskId(host.process, "node01", 0)).closed
    assert closed is not None
    return str(closed.code)


def test_a_node_that_its_organisation_lets_leave_has_not_failed(
    host: Host, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    meanwhile(lambda: leave(host))
    ran = host.launch("--node", "node01", "--until-complete", *host.data, "--json")
    (report,) = json.loads(ran.stdout)["nodes"]
    assert (ran.exit_code, report["left"], report["error"], report["beside"]) == (0, 0, None, [])
    assert closing_code(host) == "NODE_INACTIVE"
    again = host.launch("--node", "node01")
    assert again.exit_code == 0
    assert again.stdout == "node01: takes no part from iteration 0 on: its organisation let it leave\n"


def test_h2_a_node_that_the_others_left_out_hears_of_it(
    host: Host, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    meanwhile(lambda: leave_out(host))
    ran = host.launch("--node", "node01", *host.data, "--json")
    answer: dict[str, Any] = json.loads(ran.stdout)
    assert (ran.exit_code, answer["nodes"][0]["left"]) == (WRONG_STATE, None)
    assert answer["nodes"][0]["error"]["code"] == "NODE_INACTIVE"


def test_c11_c13_a_neighbour_that_never_shares_is_waited_for_in_vain_until_it_has_left(host: Host) -> None:
    """The task's time decides; then it is closed, and done again once nobody silent is a neighbour."""
    made = {**specification_of(1), "process": "waiting"}
    made["steps"][0]["synchronous"] = True
    host.federation.process = host.agree(made)
    launch = ("--node", "node01", "--until-complete", "--timeout", 1, *host.data, "--json")
    ran = host.launch(*launch)
    answer = json.loads(ran.stdout)["nodes"][0]
    assert (ran.exit_code, answer["error"]["code"]) == (TIME_OUT, closing_code(host))
    shared = host.ledger().execution.get_task(TaskId(host.process, "node01", 0)).offered
    assert shared is not None

    admins = {"node02": host.federation.admin1, "node03": host.federation.admin2}
    for node, admin in {**admins, "node04": host.federation.admin2}.items():
        admin.submit("orchestration", "Leave", host.process, node, 0, "it never came")
    ran = host.launch(*launch)
    (report,) = json.loads(ran.stdout)["nodes"]
    assert (ran.exit_code, report["finished"]["process"]) == (0, "completed")
    done = host.ledger().execution.get_task(TaskId(host.process, "node01", 0))
    assert (done.attempt, done.outcome is not None and done.outcome.slots) == (2, ())
