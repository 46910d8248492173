"""Stop means stop, however the executor was started.

A process whose parent ignores or blocks SIGINT (a shell's background job, a runner) does so too, unless it
says otherwise; SIGHUP and SIGTERM end one in the middle of whatever it does. Here all three are heard; only a
SIGHUP that is ignored from the start stays so, because that is what nohup is called for. While nothing is
open that would have to be closed, the first one ends the command at once. While tasks are under way it is
only noted, whoever runs them looks for it, and a second one changes nothing: an exception between any two
instructions, in a lock or in the closing of a task, would leave open what it was meant to end.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Hears the signals that ask a command to stop, until its context ends; for the main thread."""

    def __init__(self) -> None:
        self.asked = False
        """Whether one has come; a plain value, because a handler must not take a lock."""
        self._only_noted = False
        self._before: dict[signal.Signals, Any] = {}
        self._blocked: set[signal.Signals | int] = set()

    def __enter__(self) -> Self:
        wanted = [number for number in SIGNALS if number != signal.SIGHUP or not _is_ignored(number)]
        self._before = {number: signal.signal(number, self._heard) for number in wanted}
        self._blocked = set(signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS))
        return self

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Only note a signal meanwhile, for whoever looks at `asked`."""
        self._only_noted = True
        try:
            yield
        finally:
            self._only_noted = False

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first and not self._only_noted:
            raise KeyboardInterrupt


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN
