"""The learner as a program: exit codes, silence about secrets, and its end when nobody waits for it."""

import gc
import os
import re
import socket
import subprocess
import sys
import threading

import pytest
from support.memory.broker_double import serving
from support.memory.learners import WAIT, table_of
from support.memory.scene import SEED, Scene, refusing

from learner import __main__ as program
from learner.broker import Broker
from learner.outcome import Exit, StopError
from protocol.broker.messages import Answer, Request, Verb
from protocol.errors import FrameError


def run_program(scene, folder, *, key=SEED):
    scene.lay_out(folder)
    with serving(folder, scene.answer):
        return subprocess.run(
            [sys.executable, "-I", "-B", "-m", "learner", str(folder)],
            input=key,
            capture_output=True,
            env={"PATH": os.environ["PATH"]},
            timeout=WAIT,
            check=False,
        )


def test_a_refused_round_ends_with_its_code_and_one_line_of_cause(tmp_path):
    ran = run_program(Scene(answers={Verb.SHARE: refusing()}), tmp_path)
    assert (ran.returncode, ran.stdout) == (Exit.BROKER, b"")
    said = ran.stderr.decode().splitlines()
    assert said[-1].startswith("learner: share is refused: TASK_EXPIRED: ")
    assert all(line.startswith("learner: ") for line in said)


@pytest.fixture
def main(monkeypatch, capsys, tmp_path):
    """Call the program's main in this process, with a key and a directory."""
    for name in program.THREADS:  # which main sets for good
        monkeypatch.setenv(name, "8")

    def call(source, folder=tmp_path):
        monkeypatch.setattr("learner.key.standard_input", source)
        return program.main([str(folder)]), capsys.readouterr()

    yield call
    gc.unfreeze()


@pytest.mark.parametrize("kind", [ValueError, MemoryError, KeyboardInterrupt, RecursionError])
def test_b8_an_unexpected_error_tells_its_kind_and_place_and_no_content(main, monkeypatch, kind):
    def failing(*_):
        raise kind(f"row 7 is {SEED.hex()}")

    monkeypatch.setattr("learner.run.run_task", failing)
    exit_code, written = main(lambda: None)
    assert exit_code == Exit.INTERNAL
    assert written.out == ""
    assert re.fullmatch(
        rf"learner: internal error: {kind.__name__} at \S+\.py:\d+( > \S+\.py:\d+)*\n", written.err
    )
    assert SEED.hex() not in written.err


def test_the_end_of_a_round_becomes_the_exit_code(main, monkeypatch):
    for code in Exit:
        if code is Exit.DONE:
            continue

        def failing(*_, code=code):
            raise StopError(code, "words")

        monkeypatch.setattr("learner.run.run_task", failing)
        exit_code, written = main(lambda: None)
        assert (exit_code, written.err) == (code, "learner: words\n")
    monkeypatch.setattr("learner.run.run_task", lambda *_: None)
    assert main(lambda: None) == (Exit.DONE, ("", ""))


def test_numerics_have_one_thread(main, monkeypatch):
    seen = {}
    monkeypatch.setattr("learner.run.run_task", lambda *_: seen.update(os.environ))
    main(lambda: None)
    assert {seen[name] for name in program.THREADS} == {"1"}


def test_f15_the_learner_ends_when_its_executor_is_killed(tmp_path):
    """It computes for minutes here; the broker's end closes as it does when the executor dies."""
    scene = Scene(rows=table_of(1, rows=20_000).to_bytes())
    scene.parameters |= {"n_new": 10_000, "n_max": 10_000}
    scene.lay_out(tmp_path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "broker.sock"))
    listener.listen(1)
    listener.settimeout(WAIT)
    command = [sys.executable, "-I", "-B", "-m", "learner", str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(SEED)
    process.stdin.close()
    try:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            connection.sendall(scene.answer(Request.read(stream.read)))
            assert process.stderr.readline().startswith(b"learner: task fraud/node01/1")
        listener.close()
        assert process.wait(WAIT) == Exit.BROKER
        assert process.stderr.read() == b"learner: the broker hung up\n"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def connected(answer):
    """Return a learner's end of a connection, and the other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    theirs.sendall(answer)
    return Broker(ours), theirs


def test_a_broker_that_closes_after_its_last_answer_is_not_missed():
    broker, theirs = connected(Answer(Verb.COMPLETE).to_bytes())
    gone = threading.Event()
    with broker:
        broker.ask(Request(Verb.COMPLETE, bytes(64), (b"", b"")))
        theirs.close()
        watching = broker.watch(gone.set)
        watching.join(WAIT)
    assert not watching.is_alive()
    assert not gone.is_set()


def test_a_broker_that_closes_while_nothing_is_asked_is_noticed():
    broker, theirs = connected(Answer(Verb.SHARE).to_bytes())
    gone = threading.Event()
    with broker:
        broker.watch(gone.set)
        broker.ask(Request(Verb.SHARE, bytes(64), (b"",)))
        theirs.close()
        assert gone.wait(WAIT)


def test_a_learner_that_ends_by_itself_misses_nobody():
    broker, theirs = connected(b"")
    gone = threading.Event()
    with broker:
        thread = broker.watch(gone.set)
    thread.join(WAIT)
    assert not thread.is_alive()
    assert not gone.is_set()
    theirs.close()


def test_a_learner_that_is_done_before_its_watch_begins_misses_nobody_and_says_nothing():
    broker, theirs = connected(b"")
    gone = threading.Event()
    with broker, theirs:
        pass
    broker._watch(gone.set)
    assert not gone.is_set()


def test_a_request_that_is_too_large_is_not_the_brokers_fault():
    broker, theirs = connected(b"")
    with broker, theirs, pytest.raises(FrameError):
        broker.ask(Request(Verb.SHARE, bytes(64), (bytes((1 << 20) + 1),)))


def test_what_only_other_kinds_of_tasks_need_is_not_loaded_at_the_start():
    """Every task pays for it: each is a process of its own."""
    program = "import sys, learner.run; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-I", "-B", "-c", program], capture_output=True, check=True)
    loaded = set(ran.stdout.decode().split())
    assert "learning.fit_tree" in loaded
    assert not {"learner.output", "learning.boost", "sklearn", "scipy"} & loaded


def test_garbage_is_looked_for_again_once_the_packages_are_loaded(main, monkeypatch):
    seen = []
    before = gc.get_freeze_count()
    monkeypatch.setattr(
        "learner.run.run_task", lambda *_: seen.append((gc.isenabled(), gc.get_freeze_count()))
    )
    main(lambda: None)
    ((enabled, frozen),) = seen
    assert enabled
    assert frozen > before
