"""What a service has to do now: by the ledger, by how the last try came out, and by the time."""

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.launches import Host, at_host, fresh

from executor.errors import DatasetError, IntegrityError, TaskError
from executor.launch.agenda import Agenda, Assignment
from executor.launch.patience import FIRST, LONGEST, Backoff
from executor.launch.places import Places, places_of_host
from executor.launch.watchlist import AT_ONCE, MOST_ANNOUNCED, POLL, SETTLED, Watchlist
from executor.sandbox.profile import Limits
from protocol.errors import StateError
from protocol.task.opening import TaskId

TAMPERED = IntegrityError("IMAGE_MISMATCH", "it is another")
UNREADABLE = DatasetError("DATA_FILE", "it is not there", case="unnamed")
WAIT = 150


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh(1)), monkeypatch) as found:
        yield found


@pytest.fixture
def agenda(host: Host) -> Agenda:
    """The nodes of the first organisation, of which one is on another host."""
    made = Agenda("Org1MSP", lambda node: node != "node02")
    made.look(host.ledger("auditor"), host.process)
    return made


def only(host: Host) -> Assignment:
    return Assignment(host.process, "node01")


def test_only_nodes_of_the_organisation_on_this_host_are_worked_for(host: Host, agenda: Agenda) -> None:
    assert agenda.due(0.0) == [only(host)]
    agenda.begun(only(host))
    assert agenda.due(1e9) == []


def test_a_failure_that_may_pass_is_tried_again_later_each_time(host: Host, agenda: Agenda) -> None:
    agenda.begun(only(host))
    waits = [agenda.failed(only(host), UNREADABLE, None, 100.0, False) for _ in range(12)]
    assert all(wait is not None for wait in waits)
    last = waits[-1]
    assert last is not None
    assert LONGEST / 2 <= last <= LONGEST
    assert agenda.due(100.0 + last - 0.001) == []
    assert agenda.due(100.0 + last) == [only(host)]
    begun_anew = agenda.failed(only(host), UNREADABLE, None, 0.0, True)
    assert begun_anew is not None
    assert begun_anew <= FIRST


def test_a1_a_lasting_refusal_is_not_tried_again_while_the_ledger_says_the_same(
    host: Host, agenda: Agenda
) -> None:
    ledger = host.ledger("auditor")
    context = ledger.orchestration.task_context(TaskId(host.process, "node01", 0))
    agenda.begun(only(host))
    assert agenda.failed(only(host), TAMPERED, context, 0.0, False) is None
    # Others work on meanwhile, which changes nothing about the task.
    host.federation.players["node03"].open(0)
    agenda.look(ledger, host.process)
    assert agenda.due(1e9) == []
    host.federation.admin1.submit("orchestration", "Leave", host.process, "node02", 0, "")
    agenda.look(ledger, host.process)
    assert agenda.due(0.0) == [only(host)]


def test_a_node_that_is_done_is_looked_at_again_when_all_are(host: Host, agenda: Agenda) -> None:
    ledger = host.ledger("auditor")
    assert host.launch("--node", "node01", *host.data).exit_code == 0
    agenda.look(ledger, host.process)
    agenda.begun(only(host))
    agenda.done(only(host), 0.0, True)
    agenda.look(ledger, host.process)
    assert agenda.due(1e9) == []
    for node in ("node02", "node03", "node04"):
        admin = host.federation.admin1 if node == "node02" else host.federation.admin2
        admin.submit("orchestration", "Leave", host.process, node, 0, "")
    agenda.look(ledger, host.process)
    for now in (FIRST, 3 * FIRST):  # somebody's model may be missing, so that it cannot end yet
        assert agenda.due(now) == [only(host)]
        # Who is about to publish has the time until the second try.
        assert agenda.begun(only(host)) == (now > FIRST)
        agenda.done(only(host), now, False)
        agenda.look(ledger, host.process)
        assert agenda.due(now) == []
    host.federation.admin1.submit("orchestration", "Complete", host.process)
    agenda.look(ledger, host.process)
    assert agenda.processes == set()


def test_h1_a_process_that_only_an_event_knows_is_no_work(host: Host, agenda: Agenda) -> None:
    assert agenda.look(host.ledger("auditor"), "made-up") is None
    assert agenda.processes == {host.process}


def test_a_refused_node_that_has_nothing_to_do_any_more_is_looked_at_again(
    host: Host, agenda: Agenda
) -> None:
    ledger = host.ledger("auditor")
    context = ledger.orchestration.task_context(TaskId(host.process, "node01", 0))
    agenda.begun(only(host))
    assert agenda.failed(only(host), TAMPERED, context, 0.0, False) is None
    host.federation.admin1.submit("orchestration", "Leave", host.process, "node01", 0, "")
    agenda.look(ledger, host.process)
    assert agenda.due(0.0) == [only(host)]


def test_another_refusal_than_that_a_process_is_unknown_is_told(host: Host, agenda: Agenda) -> None:
    def status(_: str) -> None:
        raise StateError("PROCESS_NOT_RUNNING", "odd")

    ledger: Any = SimpleNamespace(orchestration=SimpleNamespace(status=status))
    with pytest.raises(StateError, match="PROCESS_NOT_RUNNING"):
        agenda.look(ledger, host.process)
    assert agenda.processes == {host.process}


def test_who_is_at_work_is_not_forgotten_when_the_process_ends(host: Host, agenda: Agenda) -> None:
    agenda.begun(only(host))
    for admin in (host.federation.admin1, host.federation.admin2):
        admin.submit("orchestration", "Abort", host.process, "enough")
    ended = agenda.look(host.ledger("auditor"), host.process)
    assert ended is not None
    assert agenda.processes == {host.process}
    agenda.done(only(host), 0.0, False)
    agenda.look(host.ledger("auditor"), host.process)
    assert agenda.processes == set()


def test_what_was_left_in_a_process_that_ended_is_worked_for_once() -> None:
    agenda, left = Agenda("Org1MSP", lambda _: True), Assignment("p", "node01")
    agenda.adopt(left)
    assert agenda.due(0.0) == [left]
    assert not agenda.begun(left)
    agenda.adopt(left)
    assert agenda.due(1e9) == []
    agenda.done(left, 0.0, False)
    assert agenda.due(1e9) == []


def test_waits_grow_within_bounds_and_differ() -> None:
    for seed in range(20):
        backoff = Backoff(chance=random.Random(seed))
        for number in range(40):
            longest = min(LONGEST, FIRST * 2**number)
            assert longest / 2 <= backoff.failed() <= longest
    assert len({Backoff(chance=random.Random(seed)).failed() for seed in range(20)}) == 20


def test_what_events_name_is_read_at_once_and_again_and_all_now_and_then() -> None:
    watchlist = Watchlist()
    assert watchlist.polls(0.0)
    assert not watchlist.polls(POLL - 1)
    watchlist.announced("p", 10.0)
    watchlist.announced("no name\u202e", 10.0)
    watchlist.announced(["p"], 10.0)
    assert watchlist.take(10.0) == ["p"]
    assert watchlist.take(10.0 + SETTLED - 0.1) == []
    assert watchlist.take(10.0 + SETTLED) == ["p"]
    assert watchlist.take(1e9) == []
    assert watchlist.polls(POLL)
    watchlist.poll_again()
    assert watchlist.polls(POLL + 1)


def test_h1_names_that_a_peer_makes_up_take_bounded_room_and_keep_none_from_its_turn() -> None:
    watchlist = Watchlist()
    for number in range(3 * MOST_ANNOUNCED):
        watchlist.announced(f"a{number}", 0.0)
    watchlist.add(["z"])
    turns = 0
    while "z" not in watchlist.take(0.0):
        turns += 1
    assert turns == MOST_ANNOUNCED // AT_ONCE
    assert not watchlist.has_more
    assert len(watchlist.take(SETTLED)) == AT_ONCE
    assert watchlist.has_more


def test_tasks_begin_in_turn_and_one_that_waits_lends_its_place() -> None:
    places, order = Places(1), list[str]()
    may_end, lending, began = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with places.taken(lambda: None):
            order.append("first")
            began.set()
            lending.wait(WAIT)
            with places.lent():
                may_end.wait(WAIT)
            order.append("first again")

    def second() -> None:
        with places.taken(lambda: None):
            order.append("second")
            may_end.set()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert began.wait(WAIT)
    threads[1].start()
    lending.set()
    for thread in threads:
        thread.join(WAIT)
    assert sorted(order[1:]) == ["first again", "second"]
    assert order[0] == "first"


def test_a_task_that_nobody_wants_any_more_does_not_wait_for_a_place() -> None:
    places = Places(1)

    def stopped() -> None:
        raise TaskError("INTERRUPTED", "the operator stopped the executor")

    with places.taken(lambda: None), pytest.raises(TaskError, match="INTERRUPTED"), places.taken(stopped):
        raise AssertionError("there was one place")
    with places.taken(stopped):
        pass


def test_who_gives_a_place_back_gives_back_one() -> None:
    places = Places(2)

    def nobody_waits() -> None:
        raise AssertionError("there were places")

    with places.taken(nobody_waits), places.taken(nobody_waits):
        with places.lent(), places.taken(nobody_waits), pytest.raises(AssertionError, match="there were"):
            places.taken(nobody_waits).__enter__()
        with pytest.raises(AssertionError, match="there were"):
            places.taken(nobody_waits).__enter__()


def test_a_host_has_places_for_what_its_memory_and_cores_allow() -> None:
    assert places_of_host(Limits(memory_bytes=1 << 50)) == 1
    assert places_of_host(Limits(memory_bytes=64 << 20, cpus=0.1)) > places_of_host(Limits(cpus=4096.0)) == 1


@pytest.mark.parametrize(
    ("cpus", "gib", "places"),
    [(2.0, 1, 4), (0.5, 1, 16), (0.5, 5, 3), (3.0, 1, 2), (1.0, 16, 1), (16.0, 1, 1)],
)
def test_the_scarcer_of_cores_and_memory_decides(
    monkeypatch: pytest.MonkeyPatch, cpus: float, gib: int, places: int
) -> None:
    """A host of eight cores and sixteen GiB."""
    known = {"SC_PHYS_PAGES": 4 << 20, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8) if process == 0 else range(1))
    monkeypatch.setattr(os, "sysconf", known.__getitem__)
    assert places_of_host(Limits(memory_bytes=gib << 30, cpus=cpus)) == places
