"""Events followed once for all who wait: each hears of its own process, and of what was announced before."""

import json
import queue
import threading
import time
from typing import Any

import pytest

from executor.ledger import follow, shared_events
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.errors import PhaseError
from executor.ledger.shared_events import SharedEvents
from executor.ledger.transport import ChaincodeEvent, ChainInfo

EXECUTION, ORCHESTRATION = "execution-record", "orchestration"
WAIT = 150


class Channel:
    """A transport whose events a test sends, one stream for each chaincode at a time."""

    def __init__(self) -> None:
        self.events_of: dict[str, queue.SimpleQueue[ChaincodeEvent | None]] = {
            EXECUTION: queue.SimpleQueue(),
            ORCHESTRATION: queue.SimpleQueue(),
        }
        self.starts: list[tuple[str, int]] = []
        self.closed = False

    def chain_info(self) -> ChainInfo:
        return ChainInfo(follow.LAG + 3, b"")

    def events(self, chaincode: str, start: int, _: float) -> Any:
        self.starts.append((chaincode, start))
        return Stream(self.events_of[chaincode])

    def close(self) -> None:
        self.closed = True


class Stream:
    """Events as they are sent, until somebody closes it."""

    def __init__(self, sent: "queue.SimpleQueue[ChaincodeEvent | None]") -> None:
        self.sent = sent

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> ChaincodeEvent:
        found = self.sent.get(timeout=WAIT)
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        self.sent.put(None)


@pytest.fixture
def channel() -> Channel:
    return Channel()


def shared(channel: Any) -> SharedEvents:
    return SharedEvents(lambda: Ledger(channel))


def announce(channel: Channel, process: str, tx: str, chaincode: str = EXECUTION) -> None:
    payload = json.dumps({"process": process}).encode()
    channel.events_of[chaincode].put(ChaincodeEvent(14, tx, "TaskShared", payload))


def heard(listener: Any) -> str:
    found = listener.next(WAIT)
    assert found is not None
    return str(found.event.tx_id)


def test_all_who_listen_share_one_stream_and_hear_of_their_own_process(channel: Channel) -> None:
    with shared(channel) as events, events.listening("p") as first, events.listening("p") as second:
        with events.listening("q") as other:
            announce(channel, "p", "a")
            announce(channel, "q", "b")
            assert (heard(first), heard(second), heard(other)) == ("a", "a", "b")
            assert first.next(0) is None
        announce(channel, "p", "c", ORCHESTRATION)
        assert (heard(first), heard(second)) == ("c", "c")
    assert sorted(channel.starts) == [(EXECUTION, 3), (ORCHESTRATION, 3)]
    assert channel.closed


def test_who_comes_later_hears_of_what_was_announced_before(channel: Channel) -> None:
    with shared(channel) as events:
        with events.listening("p") as first:
            announce(channel, "p", "a")
            assert heard(first) == "a"
        with events.listening("p") as second:
            assert [found.event.tx_id for found in second.drain()] == ["a"]


def test_h1_one_who_does_not_read_loses_announcements_and_holds_up_nobody(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_events, "MOST_HELD", 2)
    with shared(channel) as events, events.listening("p") as idle, events.listening("p") as reading:
        for tx in "abcd":
            announce(channel, "p", tx)
            assert heard(reading) == tx
        assert [found.event.tx_id for found in idle.drain()] == ["a", "b"]


def test_a_ledger_that_does_not_answer_is_told_to_whoever_listens_and_asked_again(channel: Channel) -> None:
    class Away(Channel):
        away = True

        def chain_info(self) -> ChainInfo:
            if self.away:
                raise PhaseError("LEDGER_UNREACHABLE", "away", "evaluate")
            return super().chain_info()

    lost = Away()
    with shared(lost) as events:
        with pytest.raises(PhaseError, match="LEDGER_UNREACHABLE"), events.listening("p"):
            pass
        lost.away = False
        with events.listening("p") as listener:
            announce(lost, "p", "a")
            assert heard(listener) == "a"


def test_nothing_is_left_running(channel: Channel) -> None:
    before = threading.active_count()
    with shared(channel) as events, events.listening("p"):
        assert threading.active_count() > before
    end = time.monotonic() + WAIT
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == before
