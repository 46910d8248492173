"""The `executor` command as a runner in the background starts it: it says what it does, and takes signals."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.network import ROOT
from support.printed import EXECUTOR

# Such a runner ignores signals, and what it starts inherits that; nohup, which may run the tests, one more.
_DEAF = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


@contextmanager
def executing(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process whose parent ignored the signals that stop; it is gone afterwards."""
    with subprocess.Popen(
        [sys.executable, "-ISc", _DEAF, EXECUTOR, *arguments],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def told(started: subprocess.Popen[str], words: str, seconds: float = 120) -> str:
    """The first line with these words on stderr; a process that does not say them in time is killed."""
    assert started.stderr is not None
    deadline = threading.Timer(seconds, started.kill)
    deadline.start()
    lines: list[str] = []
    try:
        for line in started.stderr:
            if words in line:
                return line
            lines.append(line)
    finally:
        deadline.cancel()
    raise AssertionError(f"{words!r} was not said within {seconds} s: {lines}")
