"""Whoever started it, and however often it is told: a stopped executor closes what it has open, and ends."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Waits for a signal in the phase that its argument names, and tells what came of it.
WAITING = """
import sys, time
from executor.stop import StopSignals

def wait(done):
    print("ready", flush=True)
    end = time.monotonic() + 60
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

# As nohup does, as a shell does for what it starts in the background, and as some runners do.
DEAF = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@contextmanager
def waiting(phase: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", DEAF, "-c", WAITING, phase],
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
