"""Whoever started it, and however often it is told: a stopped executor closes what it has open, and ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from executor.stop import StopSignals

# Waits for a signal in the phase that its argument names, and tells what came of it.
WAITING = """
import sys, time
from executor.stop import StopSignals

def wait(done):
    print("ready", flush=True)
    end = time.monotonic() + 150
    while not done() and time.monotonic() < end:
        time.sleep(0.02)

try:
    with StopSignals() as stop:
        if sys.argv[1] == "noted":
            with stop.noted():
                wait(lambda: stop.asked)
                print("asked", flush=True)
                # Time for a second and a third one, which must not disturb the closing.
                sys.stdin.readline()
                print("closed", flush=True)
        else:
            wait(lambda: False)
except KeyboardInterrupt:
    print("ended", flush=True)
"""

# As a shell does for what it starts in the background, as runners do, and as nohup does for its one signal.
DEAF = """
import os, signal, sys
ignored = sys.argv.pop(1).split()
# Whatever whoever runs the tests has left to them: nohup ignores one of these.
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, name), signal.SIG_IGN if name in ignored else signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@contextmanager
def waiting(phase: str, ignored: str = "SIGINT SIGTERM") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", DEAF, ignored, "-c", WAITING, phase],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "ready\n"
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_the_parent_ignores_and_blocks_ends_a_command(number: signal.Signals) -> None:
    with waiting("at once") as started:
        started.send_signal(number)
        assert started.communicate(timeout=150)[0] == "ended\n"


def test_signals_in_quick_succession_are_noted_and_disturb_nothing() -> None:
    with waiting("noted") as started:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGINT):
            started.send_signal(number)
        assert started.stdout is not None
        assert started.stdout.readline() == "asked\n"
        started.send_signal(signal.SIGINT)
        assert started.communicate("\n", timeout=150)[0] == "closed\n"
        assert started.returncode == 0


def test_a_hang_up_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert not stop.asked
            assert signal.getsignal(signal.SIGTERM) == stop._heard
    finally:
        signal.signal(signal.SIGHUP, before)
