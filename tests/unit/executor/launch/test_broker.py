"""The broker serves four verbs in their order, checks sizes before it reads, and keeps what went wrong."""

import errno
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from executor.errors import TaskError
from executor.launch import broker as broker_module
from executor.launch.broker import SOCKET_MODE, BrokerServer
from executor.launch.reasons import closing_words
from protocol.broker.answers import SlotsAnswer, TaskAnswer
from protocol.broker.messages import Answer, BrokerRefusal, Request, Verb, read_answer
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId
from protocol.trees.share import Share

DIGESTS = [Digest.of(bytes([number])) for number in range(8)]
SIGNATURE = bytes(64)
WAIT = 150


class RecordingRelay:
    """Answers and remembers; refuses to share if told to."""

    def __init__(self, refuses: bool = False, waits: bool = False, fails: Exception | None = None) -> None:
        self.waits = waits
        self.fails = fails
        self.heard: list[tuple[str, ...]] = []
        self.waited_for, self.stopped = threading.Event(), threading.Event()
        self.refuses = refuses

    def task(self) -> TaskAnswer:
        opening = Opening(SigningKey(bytes(range(32))).verify_key, *DIGESTS[:4], None, *DIGESTS[4:6])
        return TaskAnswer(TaskId("p", "node01", 0), ("node02",), {"n_new": 1}, opening)

    def share(self, signature: bytes, share: bytes) -> None:
        if self.refuses:
            raise StateError("PROCESS_NOT_RUNNING", "process p is aborted")
        self.heard.append(("share", signature.hex(), share.hex()))

    def slots(self) -> SlotsAnswer:
        self.heard.append(("slots",))
        if self.waits:
            self.waited_for.set()
            self.stopped.wait(WAIT)
            raise ConnectionAbortedError
        return SlotsAnswer((), Share(()).to_bytes())

    def complete(self, signature: bytes, result: bytes, state: bytes) -> None:
        if self.fails is not None:
            raise self.fails
        self.heard.append(("complete", signature.hex(), result.hex(), state.hex()))

    def stop(self) -> None:
        self.stopped.set()


@contextmanager
def serving(
    directory: Path, relay: RecordingRelay, shares: bool = True
) -> Iterator[tuple[BrokerServer, socket.socket]]:
    path = directory / "broker.sock"
    with (
        BrokerServer(path, relay, shares) as broker,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as learner,
    ):
        learner.settimeout(WAIT)
        learner.connect(str(path))
        yield broker, learner


def ask(learner: socket.socket, request: Request) -> Answer | BrokerRefusal:
    learner.sendall(request.to_bytes())
    return hear(learner, request.verb)


def hear(learner: socket.socket, verb: Verb) -> Answer | BrokerRefusal:
    return read_answer(lambda size: learner.recv(size, socket.MSG_WAITALL), verb)


def test_a_round_is_served_in_its_order(socket_folder: Path) -> None:
    relay = RecordingRelay()
    with serving(socket_folder, relay) as (broker, learner):
        task = ask(learner, Request(Verb.TASK))
        assert isinstance(task, Answer)
        assert TaskAnswer.of(task).task == TaskId("p", "node01", 0)
        assert isinstance(ask(learner, Request(Verb.SHARE, SIGNATURE, (b"trees",))), Answer)
        assert isinstance(ask(learner, Request(Verb.SLOTS)), Answer)
        assert isinstance(ask(learner, Request(Verb.COMPLETE, SIGNATURE, (b"result", b"state"))), Answer)
        assert learner.recv(1) == b""
    assert broker.failure is None
    signed = SIGNATURE.hex()
    assert relay.heard == [
        ("share", signed, b"trees".hex()),
        ("slots",),
        ("complete", signed, b"result".hex(), b"state".hex()),
    ]


def test_the_learner_works_from_each_answer_to_its_next_question(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock: each question, then its answer."""
    clock = iter([10.0, 11.0, 15.0, 20.0, 21.0, 30.0, 32.0, 33.0])
    monkeypatch.setattr(broker_module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with serving(socket_folder, RecordingRelay()) as (broker, learner):
        assert (broker.first_question, broker.last_answer, broker.learner_seconds) == (None, None, 0.0)
        for request in (
            Request(Verb.TASK),
            Request(Verb.SHARE, SIGNATURE, (b"trees",)),
            Request(Verb.SLOTS),
            Request(Verb.COMPLETE, SIGNATURE, (b"result", b"state")),
        ):
            ask(learner, request)
    assert (broker.first_question, broker.last_answer) == (10.0, 33.0)
    assert broker.learner_seconds == (15 - 11) + (21 - 20) + (32 - 30)


def test_any_user_may_connect_within_the_private_directory(socket_folder: Path) -> None:
    with serving(socket_folder, RecordingRelay()):
        assert (socket_folder / "broker.sock").stat().st_mode & 0o777 == SOCKET_MODE == 0o666


def test_a_learner_that_does_not_hear_its_refusal_is_refused_all_the_same(socket_folder: Path) -> None:
    with serving(socket_folder, RecordingRelay()) as (broker, learner):
        learner.shutdown(socket.SHUT_RD)
        learner.sendall(Request(Verb.SLOTS).to_bytes())
        assert broker._served is not None
        broker._served.exception(WAIT)
    assert broker.failure is not None
    assert broker.failure.code == "FRAME_VERB"
    assert broker.failure.cause == "slots was asked where task is due"


@pytest.mark.parametrize(
    "request_", [Request(Verb.SLOTS), Request(Verb.COMPLETE, SIGNATURE, (b"result", b"state"))]
)
def test_c7_a_verb_before_its_turn_is_refused(socket_folder: Path, request_: Request) -> None:
    relay = RecordingRelay()
    with serving(socket_folder, relay) as (broker, learner):
        ask(learner, Request(Verb.TASK))
        refusal = ask(learner, request_)
    assert isinstance(refusal, BrokerRefusal)
    assert refusal.code == "FRAME_VERB"
    assert broker.failure is not None
    assert broker.failure.code == "FRAME_VERB"
    assert relay.heard == []


def test_a_second_share_is_refused(socket_folder: Path) -> None:
    relay = RecordingRelay()
    with serving(socket_folder, relay) as (_, learner):
        ask(learner, Request(Verb.TASK))
        ask(learner, Request(Verb.SHARE, SIGNATURE, (b"trees",)))
        refusal = ask(learner, Request(Verb.SHARE, SIGNATURE, (b"others",)))
    assert isinstance(refusal, BrokerRefusal)
    assert len(relay.heard) == 1


def test_a_node_without_neighbours_completes_without_sharing(socket_folder: Path) -> None:
    relay = RecordingRelay()
    with serving(socket_folder, relay, shares=False) as (_, learner):
        ask(learner, Request(Verb.TASK))
        ask(learner, Request(Verb.COMPLETE, SIGNATURE, (b"result", b"state")))
    assert [said[0] for said in relay.heard] == ["complete"]


def test_f9_a_huge_message_is_refused_before_it_is_read(socket_folder: Path) -> None:
    with serving(socket_folder, RecordingRelay()) as (broker, learner):
        learner.sendall(struct.pack("<BI", 1, 1 << 31))
        refusal = hear(learner, Verb.TASK)
    assert isinstance(refusal, BrokerRefusal)
    assert refusal.code == "FRAME_SIZE"
    assert broker.failure is not None


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n", bytes(5), b"\x01\x02\x00\x00\x00{}"])
def test_garbage_is_refused(socket_folder: Path, garbage: bytes) -> None:
    with serving(socket_folder, RecordingRelay()) as (broker, learner):
        learner.sendall(garbage)
        assert isinstance(hear(learner, Verb.TASK), BrokerRefusal)
    assert broker.failure is not None


def test_a_refusal_of_the_ledger_reaches_the_learner_and_stays_the_failure(socket_folder: Path) -> None:
    with serving(socket_folder, RecordingRelay(refuses=True)) as (broker, learner):
        ask(learner, Request(Verb.TASK))
        refusal = ask(learner, Request(Verb.SHARE, SIGNATURE, (b"trees",)))
    assert isinstance(refusal, BrokerRefusal)
    assert refusal.code == "PROCESS_NOT_RUNNING"
    assert isinstance(broker.failure, StateError)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/srv/bank/states/abc")
FAULTS = {
    "disk": (FULL, "HOST_FAILED", "/srv/bank/states/abc: No space left on device"),
    "reset": (ConnectionResetError("the peer hung up"), "HOST_FAILED", "ConnectionResetError"),
    "defect": (KeyError("n_new"), "EXECUTOR_FAULT", "the executor failed with KeyError"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_fails_in_the_relay_is_not_the_learner_s_fault(socket_folder: Path, kind: str) -> None:
    error, code, cause = FAULTS[kind]
    with serving(socket_folder, RecordingRelay(fails=error), shares=False) as (broker, learner):
        ask(learner, Request(Verb.TASK))
        learner.sendall(Request(Verb.COMPLETE, SIGNATURE, (b"result", b"state")).to_bytes())
        assert learner.recv(1) == b""
    assert isinstance(broker.failure, TaskError)
    assert (broker.failure.code, broker.failure.cause) == (code, cause)
    # The ledger hears neither of the path nor of the words.
    told = closing_words(broker.failure)
    assert told[0] == code
    assert "bank" not in told[1]


def test_a_learner_that_hangs_up_is_no_failure_of_the_broker(socket_folder: Path) -> None:
    relay = RecordingRelay()
    with serving(socket_folder, relay) as (broker, learner):
        ask(learner, Request(Verb.TASK))
        learner.close()
    assert broker.failure is None


def test_closing_ends_a_wait_for_neighbours(socket_folder: Path) -> None:
    relay = RecordingRelay(waits=True)
    with serving(socket_folder, relay) as (broker, learner):
        ask(learner, Request(Verb.TASK))
        ask(learner, Request(Verb.SHARE, SIGNATURE, (b"trees",)))
        learner.sendall(Request(Verb.SLOTS).to_bytes())
        assert relay.waited_for.wait(WAIT)
        learner.close()
    assert relay.stopped.is_set()
    assert broker.failure is None


def test_closing_before_anyone_came_ends_the_broker(socket_folder: Path) -> None:
    with BrokerServer(socket_folder / "broker.sock", RecordingRelay(), shares=True):
        pass


def test_the_path_may_be_longer_than_a_socket_address(socket_folder: Path) -> None:
    deep = socket_folder / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    with BrokerServer(deep / "broker.sock", RecordingRelay(), shares=True):
        assert (deep / "broker.sock").is_socket()
