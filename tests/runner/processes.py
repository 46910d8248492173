"""What hangs together with this process: its descendants, and who else holds an end of its pipes.

A test that waits for a program or for the end of a pipe shows in its stack that it waits, not for whom.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the kernel shows it."""

    pid: int
    parent: int
    state: str
    waits_in: str
    command: str
    pipes: frozenset[str]

    def __str__(self) -> str:
        pipes = f", holds {' '.join(sorted(self.pipes))}" if self.pipes else ""
        return f"{self.pid} of {self.parent}: {self.state} in {self.waits_in}{pipes}: {self.command}"


def related(own: int | None = None) -> list[str]:
    """Return a line for each descendant of a process, and for each process that shares a pipe with it."""
    own = own or os.getpid()
    processes = {process.pid: process for process in _all()}
    pipes = processes[own].pipes
    return [
        str(process)
        for process in processes.values()
        if process.pid != own and (_descends(process.pid, own, processes) or process.pipes & pipes)
    ]


def _descends(pid: int, ancestor: int, processes: dict[int, Process]) -> bool:
    while pid in processes:
        pid = processes[pid].parent
        if pid == ancestor:
            return True
    return False


def _all() -> Iterator[Process]:
    """Return those that can be read; a process may end meanwhile, or belong to somebody else."""
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                yield _read(folder)


def _read(folder: Path) -> Process:
    state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    waits_in = (folder / "wchan").read_text().strip("0") or "user code"
    return Process(int(folder.name), int(parent), state, waits_in, command[:200], _pipes(folder))


def _pipes(folder: Path) -> frozenset[str]:
    found = []
    with contextlib.suppress(OSError):
        for descriptor in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(descriptor.readlink()))
    return frozenset(target for target in found if target.startswith("pipe:"))
