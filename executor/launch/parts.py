"""Where the time of a node's launch goes, by part: what the parts add up to is how long it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Self


class Part(StrEnum):
    """What a node is doing at a moment; whoever waits for somebody is waiting, whatever that one does."""

    READING = "reading"
    """Asking ledger and engine what to do, reading the rows, fetching trees."""
    COMMITS = "commits"
    """Transactions, from the proposal until enough organisations have them in a block."""
    CONTAINER = "container"
    """Creating, comparing, starting and removing the container, as far as the node waits for it."""
    IMPORTS = "imports"
    """From the container's start to the learner's first question."""
    LEARNING = "learning"
    """FIT, SHARE and GET themselves."""
    WAITING = "waiting"
    """For neighbours, and for a place to work at."""


class PartTimes:
    """Seconds by part."""

    def __init__(self) -> None:
        self._seconds: dict[Part, float] = dict.fromkeys(Part, 0.0)

    @contextmanager
    def timed(self, part: Part) -> Iterator[None]:
        """Add how long the block takes to a part."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(part, time.monotonic() - began)

    def __getitem__(self, part: Part) -> float:
        return self._seconds[part]

    def add(self, part: Part, seconds: float) -> None:
        """Add seconds to a part."""
        self._seconds[part] += max(seconds, 0.0)

    def include(self, other: Self) -> None:
        """Add all of another's seconds."""
        for part, seconds in other._seconds.items():
            self.add(part, seconds)

    def to_dict(self) -> dict[str, float]:
        """Return the parts as `--json` prints them, each of them, in their order."""
        return {part.value: round(self._seconds[part], 3) for part in Part}
