"""Waiting: asked at once, again after each event of the process, and through lost streams."""

import json
import queue
import threading
import time

import pytest

from executor import exits
from executor.errors import DeadlineError
from executor.ledger import follow
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.follow import Follower, wait_until
from executor.ledger.transport import ChaincodeEvent, ChainInfo
from protocol.errors import StateError

EXECUTION, ORCHESTRATION = "execution-record", "orchestration"
# How long anything may take before it counts as lost; a busy machine is slow, not wrong.
WAIT = 150


class Stream:
    """Events from a queue; None loses the stream."""

    def __init__(self):
        self.events = queue.SimpleQueue()
        self.closed = threading.Event()

    def __iter__(self):
        return self

    def __next__(self):
        found = self.events.get()
        if self.closed.is_set():
            raise StopIteration
        if found is None:
            raise PhaseError("EVENTS_FAILED", "lost", "events")
        return found

    def close(self):
        self.closed.set()
        self.events.put(None)


class Channel:
    """A transport whose events a test sends."""

    def __init__(self, height=10):
        self.height = height
        self.opened = {EXECUTION: queue.SimpleQueue(), ORCHESTRATION: queue.SimpleQueue()}
        self.starts = {EXECUTION: [], ORCHESTRATION: []}

    def chain_info(self):
        return ChainInfo(self.height, b"")

    def events(self, chaincode, start, seconds):
        stream = Stream()
        self.starts[chaincode].append(start)
        self.opened[chaincode].put(stream)
        return stream

    def stream(self, chaincode):
        """The stream that was opened next, once it is."""
        return self.opened[chaincode].get(timeout=WAIT)


def event(block, process="p", name="TaskShared", tx="tx"):
    return ChaincodeEvent(block, tx, name, json.dumps({"process": process}).encode())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(follow, "PAUSE", 0.01)


class Waiter(threading.Thread):
    """wait_until in a thread, with a check that a test answers call by call."""

    def __init__(self, channel, seconds=WAIT):
        super().__init__(daemon=True)
        self.channel, self.seconds = channel, seconds
        self.asked = queue.SimpleQueue()
        self.answers = queue.SimpleQueue()
        self.found = None
        self.start()

    def check(self):
        self.asked.put(None)
        answer = self.answers.get(timeout=WAIT)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self):
        try:
            self.found = wait_until(Ledger(self.channel), "p", self.check, self.seconds)
        except Exception as error:
            self.found = error

    def answer(self, value):
        """Answer the next check, once it comes."""
        self.asked.get(timeout=WAIT)
        self.answers.put(value)

    def result(self):
        self.join(WAIT)
        assert not self.is_alive()
        return self.found


def test_what_is_there_already_is_returned_without_following():
    channel = Channel()
    assert wait_until(Ledger(channel), "p", lambda: 5, WAIT) == 5
    assert channel.starts == {EXECUTION: [], ORCHESTRATION: []}


def test_falsy_values_are_found_too():
    assert wait_until(Ledger(Channel()), "p", lambda: [], WAIT) == []


@pytest.mark.parametrize("chaincode", [EXECUTION, ORCHESTRATION])
def test_each_event_of_the_process_leads_to_a_check(chaincode):
    channel = Channel(height=follow.LAG + 3)
    waiter = Waiter(channel)
    waiter.answer(None)
    stream = channel.stream(chaincode)
    stream.events.put(event(11, tx="a"))
    waiter.answer(None)
    stream.events.put(event(12, tx="b"))
    waiter.answer("done")
    assert waiter.result() == "done"
    # The peers that are checked may be some blocks behind the one that says how high the chain is.
    assert channel.starts == {EXECUTION: [3], ORCHESTRATION: [3]}
    assert stream.closed.is_set()


def test_events_of_other_processes_and_odd_payloads_are_passed_over():
    channel = Channel()
    waiter = Waiter(channel)
    waiter.answer(None)
    stream = channel.stream(EXECUTION)
    stream.events.put(event(11, "another", tx="a"))
    for number, payload in enumerate((b"", b"[]", b"\xff", b'{"process": ["p"]}', b"3")):
        stream.events.put(ChaincodeEvent(11, f"odd{number}", "Odd", payload))
    stream.events.put(event(12))
    waiter.answer("done")
    assert waiter.result() == "done"
    assert waiter.asked.empty()


def test_e11_a_lost_stream_is_taken_up_at_the_last_block_and_repeats_nothing():
    channel = Channel()
    with Follower(channel, "p", 10, WAIT) as follower:
        first = channel.stream(EXECUTION)
        first.events.put(event(11, tx="a"))
        first.events.put(event(12, tx="b"))
        first.events.put(None)
        second = channel.stream(EXECUTION)
        for one in (event(12, tx="b"), event(12, tx="c"), event(13, tx="b2")):
            second.events.put(one)
        found = [follower.next(WAIT).event.tx_id for _ in range(4)]
    assert found == ["a", "b", "c", "b2"]
    assert channel.starts[EXECUTION] == [10, 12]


def test_a_follower_leaves_no_thread_behind():
    before = set(threading.enumerate())
    channel = Channel()
    with Follower(channel, "p", 10, WAIT):
        channel.stream(EXECUTION)
        followers = [thread for thread in set(threading.enumerate()) - before if "events" in thread.name]
        assert len(followers) == 2
    for thread in followers:
        thread.join(WAIT)
        assert not thread.is_alive()


def test_the_wait_ends_in_time(monkeypatch):
    monkeypatch.setattr(follow, "HEARTBEAT", WAIT)
    began = time.monotonic()
    with pytest.raises(DeadlineError) as raised:
        wait_until(Ledger(Channel()), "p", lambda: None, 0.3, "the neighbours")
    assert 0.3 <= time.monotonic() - began < follow.HEARTBEAT
    assert raised.value.code == "WAIT_TIMEOUT"
    assert "the neighbours" in raised.value.cause
    assert exits.exit_code(raised.value) == exits.TIME_OUT


def test_what_expires_in_silence_is_found_by_the_heartbeat(monkeypatch):
    monkeypatch.setattr(follow, "HEARTBEAT", 0.02)
    answers = iter([None, None, "expired"])
    assert wait_until(Ledger(Channel()), "p", lambda: next(answers), WAIT) == "expired"


def away():
    return PhaseError("LEDGER_UNREACHABLE", "nobody answers")


def test_e1_a_ledger_that_comes_back_is_waited_for():
    channel = Channel()
    waiter = Waiter(channel)
    waiter.answer(None)
    channel.stream(EXECUTION).events.put(event(11))
    for _ in range(3):
        waiter.answer(away())
    waiter.answer("done")
    assert waiter.result() == "done"


def test_a_ledger_that_is_not_there_at_first_is_not_waited_for():
    waiter = Waiter(Channel())
    waiter.answer(away())
    assert isinstance(waiter.result(), PhaseError)


def test_a_ledger_that_stays_away_is_the_error(monkeypatch):
    monkeypatch.setattr(follow, "HEARTBEAT", 0.02)
    checks = []

    def check():
        checks.append(None)
        if len(checks) == 4:
            monkeypatch.setattr(follow, "PAUSE", WAIT)  # leaves no time for another check
        if len(checks) > 1:
            raise away()

    with pytest.raises(PhaseError):
        wait_until(Ledger(Channel()), "p", check, WAIT)
    assert len(checks) == 4


def test_a_refusal_ends_the_wait():
    waiter = Waiter(Channel())
    waiter.answer(StateError("PROCESS_NOT_RUNNING", "it was aborted"))
    assert isinstance(waiter.result(), StateError)


def test_who_follows_all_processes_hears_of_each_and_of_nothing_odd():
    channel = Channel()
    with Follower(channel, None, 10, WAIT, (ORCHESTRATION,)) as follower:
        stream = channel.stream(ORCHESTRATION)
        for number, payload in enumerate((b"[]", b'{"process": ["p"]}', b'{"node": "node01"}')):
            stream.events.put(ChaincodeEvent(11, f"odd{number}", "Odd", payload))
        stream.events.put(event(12, "p", tx="a"))
        stream.events.put(event(12, "q", tx="b"))
        assert [follower.next(WAIT).payload["process"] for _ in range(2)] == ["p", "q"]


class Failing(Channel):
    """A transport that cannot open its first stream: a lying peer gave it a number that is none."""

    def events(self, chaincode, start, seconds):
        first = not self.starts[chaincode]
        made = super().events(chaincode, start, seconds)
        if first:
            raise ValueError("Value out of range: 18446744073709551616")
        return made


def test_h1_no_word_of_a_peer_ends_the_thread_that_follows():
    channel = Failing()
    with Follower(channel, "p", 4, WAIT, (EXECUTION,)) as follower:
        channel.stream(EXECUTION)
        channel.stream(EXECUTION).events.put(event(5))
        assert follower.next(WAIT).event.block == 5


def test_h1_events_that_nobody_reads_are_held_up_to_a_number(monkeypatch):
    """A peer that makes up events without end fills no memory; none is left out."""
    monkeypatch.setattr(follow, "MOST_HELD", 5)
    channel = Channel()
    with Follower(channel, "p", 4, WAIT, (EXECUTION,)) as follower:
        stream = channel.stream(EXECUTION)
        for number in range(50):
            stream.events.put(event(5 + number, tx=f"tx{number}"))
        found = [follower.next(WAIT).event.block for _ in range(20)]
        assert stream.events.qsize() >= 50 - 20 - 5 - 1 - 1
        found += [follower.next(WAIT).event.block for _ in range(30)]
    assert found == [*range(5, 55)]


def test_a_follower_that_is_full_ends_when_it_is_closed(monkeypatch):
    monkeypatch.setattr(follow, "MOST_HELD", 1)
    channel = Channel()
    follower = Follower(channel, "p", 4, WAIT, (EXECUTION,))
    with follower:
        stream = channel.stream(EXECUTION)
        for number in range(2):
            stream.events.put(event(5 + number))
        while not stream.events.empty():
            time.sleep(0.01)
    for thread in follower._threads:
        thread.join(WAIT)
        assert not thread.is_alive()
