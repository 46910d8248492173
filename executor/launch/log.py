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
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Self

from executor.errors import TaskError
from executor.user_files import UserFileError, open_file, parse_json

NAME = "launches"
MAX_BYTES = 1 << 20
LARGEST = 1e15
"""No number of a line is as large."""
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
            return made if made._is_sound() else None
        except (ValueError, KeyError, TypeError):
            return None

    def _is_sound(self) -> bool:
        """Whether everything is of its kind, as it is in lines that nobody else wrote."""
        texts = (self.process, self.node, self.code)
        numbers = (self.iteration, self.exit_code, self.again_in, self.seconds, self.block)
        return (
            all(isinstance(text, str) for text in (self.time, self.organisation, self.text))
            and all(text is None or isinstance(text, str) for text in texts)
            and all(n is None or (isinstance(n, int | float) and abs(n) < LARGEST) for n in numbers)
        )

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
            # Without waiting: a pipe that nobody reads would hold up whoever works.
            file = os.open(self.newest, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
            try:
                before = os.fstat(file)
                if stat.S_ISREG(before.st_mode) and os.write(file, raw) < len(raw):
                    os.ftruncate(file, before.st_size)  # a full disk; half a line would spoil the next
            finally:
                os.close(file)

    def open_files(self, after: IO[bytes] | None = None) -> list[IO[bytes]]:
        """Open the files that there are, oldest first; what is renamed later is read all the same.

        With `after`, those alone that are newer than a file that is open, which may be gone.
        """
        with self._read_locked():
            paths = [path for path in self._paths() if path.exists()]
            if after is not None:
                read = os.fstat(after.fileno())
                known = [place for place, path in enumerate(paths) if os.path.samestat(path.stat(), read)]
                paths = paths[known[-1] + 1 :] if known else paths
            return [_open(path) for path in paths]

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

    @contextmanager
    def _read_locked(self) -> Iterator[None]:
        """Keep files from being renamed meanwhile, where anybody does: a copy of them needs no lock."""
        with ExitStack() as stack:
            with contextlib.suppress(FileNotFoundError):
                flags = os.O_RDONLY | os.O_NONBLOCK
                file = stack.enter_context(os.fdopen(os.open(self.folder / "lock", flags), "rb"))
                fcntl.flock(file, fcntl.LOCK_SH)
            yield


def _open(path: Path) -> IO[bytes]:
    try:
        return open_file(path)
    except UserFileError as error:
        raise TaskError("HOST_FAILED", f"{path}: {error.cause}") from error


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
                self._files += self._log.open_files(after=self._files[0])
                if len(self._files) == 1:
                    return
            self._files.pop(0).close()


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Iterate over lines that have their end; one that has not is read again later, unless it is too long."""
    while line := file.readline(MAX_BYTES):
        if line.endswith(b"\n"):
            yield line
        elif len(line) < MAX_BYTES:
            file.seek(-len(line), os.SEEK_CUR)
            return
