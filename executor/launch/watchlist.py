"""Which processes to read now: what an event names, at once and soon after, and all now and then."""

from collections.abc import Iterable
from itertools import islice

from protocol.errors import AttestreeError
from protocol.identifiers import parse_process

POLL = 60.0
"""Seconds after which all are read again: an event is one peer's word, and so is that there was none."""
SETTLED = 2.0
"""Seconds after an event until its process is read once more: some peers are a block behind the others."""
AT_ONCE = 50
"""How many are read before anything else gets its turn."""
MOST_ANNOUNCED = 1000
"""How many names events may add: one peer may make up as many as it likes."""


class Watchlist:
    """What is to be read, and when, in the order in which it came."""

    def __init__(self) -> None:
        self._at_once: dict[str, None] = {}
        self._later: dict[str, float] = {}
        self._poll_at = 0.0

    def polls(self, now: float) -> bool:
        """Whether all processes are to be read; they are then left alone for a while."""
        if now < self._poll_at:
            return False
        self._poll_at = now + POLL
        return True

    def poll_again(self) -> None:
        """Read all at the next turn: events may have been missed."""
        self._poll_at = 0.0

    def add(self, processes: Iterable[str]) -> None:
        """Read these at the next turn."""
        self._at_once.update(dict.fromkeys(processes))

    def announced(self, process: object, now: float) -> None:
        """Read what an event names, unless it is no name at all: one peer may have made it up."""
        try:
            name = parse_process(str(process))
        except AttestreeError:
            return
        if max(len(self._at_once), len(self._later)) < MOST_ANNOUNCED:
            self.add([name])
            self._later[name] = now + SETTLED

    def take(self, now: float) -> list[str]:
        """Return what is to be read now, as much as a turn takes, and strike it off."""
        self.add(name for name, at in self._later.items() if at <= now)
        self._later = {name: at for name, at in self._later.items() if at > now}
        due = list(islice(self._at_once, AT_ONCE))
        for name in due:
            del self._at_once[name]
        return due

    @property
    def has_more(self) -> bool:
        """Whether a turn left something to read."""
        return bool(self._at_once)
