"""What launches on this host did: one JSON object per line, in files of bounded size that all of them share.

    ORGANISATION/logs/
        launches.jsonl      the newest lines
        launches.1.jsonl    older ones, up to launches.4.jsonl; what was older than these is gone
        lock                held while a line is added

A line has codes, names, digests and counts, and words of this program: no row, no path, nothing that a
learner or an engine said. The causes of errors may quote all of these; they are for the operator alone.
"""

import contextlib
import fcntl
import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Self

from executor.user_files import parse_json

NAME = "launches"
MAX_BYTES = 1 << 20
KEPT = 4
"""How many files there are besides the newest."""


class Event(StrEnum):
    """What a line is about; the names are stable (docs/service.md)."""

    SERVICE_STARTED = "service.started"
    SERVICE_STOPPING = "service.stopping"
    SERVICE_STOPPED = "service.stopped"
    LEDGER_LOST = "ledger.lost"
    LEDGER_FOUND = "ledger.found"
    PROCESS_FOUND = "process.found"
    PROCESS_ENDED = "process.ended"
    PROCESS_FAILED = "process.failed"
    NODE_STEP = "node.step"
    TASK_DONE = "task.done"
    NODE_FINISHED = "node.finished"
    NODE_LEFT = "node.left"
    NODE_FAILED = "node.failed"
    NODE_REFUSED = "node.refused"
    NODE_STOPPED = "node.stopped"


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One line; what does not apply is left out of it."""

    time: str
    event: Event
    organisation: str
    text: str
    process: str | None = None
    node: str | None = None
    iteration: int | None = None
    code: str | None = None
    exit_code: int | None = None
    again_in: float | None = None
    """Seconds until it is tried again; absent where that waits for the ledger or an operator."""
    seconds: float | None = None
    """How long it took."""
    block: int | None = None

    @classmethod
    def now(cls, event: Event, organisation: str, text: str, **more: Any) -> "LogEntry":
        """Make a line about what happened just now."""
        return cls(time=stamp(datetime.now(UTC)), event=event, organisation=organisation, text=text, **more)

    @classmethod
    def from_line(cls, line: bytes) -> "LogEntry | None":
        """Read a line; None for one that is damaged, as the last one is after a loss of power."""
        try:
            found = parse_json(line)
            made = cls(**{**found, "event": Event(found["event"])})
            return made if isinstance(made.time, str) else None
        except (ValueError, KeyError, TypeError):
            return None

    def to_line(self) -> str:
        """Return the line, without its end."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.dumps({name: value for name, value in given.items() if value is not None})

    def __str__(self) -> str:
        place = [part for part in (self.process, self.node) if part is not None]
        place += [] if self.iteration is None else [f"iteration {self.iteration}"]
        code = f" [{self.code}]" if self.code else ""
        again = f"; again in {self.again_in:.0f} s" if self.again_in is not None else ""
        return f"{self.time} {' '.join(place) or self.organisation}: {self.text}{code}{again}"


def stamp(time: datetime) -> str:
    """Return a time as lines have it: in UTC, to the millisecond, so that their order is that of the text."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


class LaunchLog:
    """The lines of one organisation on this host; any number of launches may write them at once."""

    def __init__(self, state: Path, organisation: str) -> None:
        self.folder = state / "executor" / organisation / "logs"
        self.newest = self.folder / f"{NAME}.jsonl"

    def write(self, entry: LogEntry) -> None:
        """Add a line; a disk that takes none keeps nobody from working."""
        raw = f"{entry.to_line()}\n".encode()
        with contextlib.suppress(OSError), self._locked():
            if self.newest.exists() and self.newest.stat().st_size + len(raw) > MAX_BYTES:
                self._rotate()
            file = os.open(self.newest, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, raw)
            finally:
                os.close(file)

    def open_files(self) -> list[IO[bytes]]:
        """Open the files that there are, oldest first; what is renamed later is read all the same."""
        if not self.folder.is_dir():
            return []
        with self._locked():
            return [path.open("rb") for path in self._paths() if path.exists()]

    def is_newest(self, file: IO[bytes]) -> bool:
        """Whether new lines still go to a file that is open."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.newest.stat())
        except FileNotFoundError:
            return True  # nothing has been added since it was renamed

    def _paths(self) -> list[Path]:
        return [*(self.folder / f"{NAME}.{number}.jsonl" for number in range(KEPT, 0, -1)), self.newest]

    def _rotate(self) -> None:
        paths = self._paths()
        for older, newer in itertools.pairwise(paths):
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        for part in [*reversed(self.folder.parents[:2]), self.folder]:
            part.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class LogReader:
    """Reads the lines that there are, and each time it is asked those that have come since."""

    def __init__(self, log: LaunchLog) -> None:
        self._log = log
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def lines(self) -> Iterator[bytes]:
        """Iterate over what is new, oldest first."""
        self._files = self._files or self._log.open_files()
        while self._files:
            is_last = len(self._files) == 1
            # Asked before it is read: what comes to a file that is no longer the newest has come by then.
            is_newest = is_last and self._log.is_newest(self._files[0])
            yield from _whole_lines(self._files[0])
            if is_newest:
                return
            if is_last:
                self._files.append(self._log.newest.open("rb"))
            self._files.pop(0).close()


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Iterate over lines that have their end; one that has not is read again later."""
    while (line := file.readline()).endswith(b"\n"):
        yield line
    file.seek(-len(line), os.SEEK_CUR)
