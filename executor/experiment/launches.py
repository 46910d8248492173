"""Executors of several organisations on one host, each a process of its own, heard while they work."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from executor.errors import TaskError
from executor.launch.log import LaunchLog, LogEntry, LogReader
from executor.network import Network

PULSE = 0.1
"""Seconds between two looks at what the executors do."""
PROGRAM = (sys.executable, "-c", "import sys; from executor.cli import main; sys.exit(main())")
_TAIL = 400

Hear = Callable[[LogEntry], None]


@dataclass
class Reports:
    """What launches came to: their nodes' reports, as `executor launch --json` prints them."""

    nodes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """What was done, of all nodes."""
        return [task for report in self.nodes for task in report["rounds"]]

    def mean_parts(self) -> dict[str, float]:
        """Where a node's time went, in the mean of all nodes: they work side by side."""
        names = self.nodes[0]["parts"] if self.nodes else {}
        return {name: sum(report["parts"][name] for report in self.nodes) / len(self.nodes) for name in names}

    def parts_of(self, seconds: float, process: str | None = None) -> dict[str, float]:
        """Where the time of launches went that took so long from first to last: the parts add up to it.

        A node that is done before the last one has nothing left to do meanwhile; what is over beyond the
        longest of all is the executors' start and end. With a process, so for the nodes of that one alone.
        """
        chosen = [report for report in self.nodes if process in (None, report["process"])]
        parts = Reports(chosen).mean_parts()
        longest = max((sum(report["parts"].values()) for report in self.nodes), default=0.0)
        done = max(longest - sum(parts.values()), 0.0)
        return {**parts, "done": done, "executor": max(seconds - longest, 0.0)}


class Launches:
    """Executors at work; leaving the context ends them, as their operators would."""

    def __init__(self, network: Network, folder: Path) -> None:
        self._network, self._folder = network, folder
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self._started = 0
        self._readers: dict[str, LogReader] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child, _ in self._running.values():
            if child.poll() is None:
                child.terminate()
        for child, _ in self._running.values():
            child.wait()
        self._stack.close()

    def start(self, organisation: str, process: str, *options: str) -> str:
        """Start an executor for a process; options say for which nodes, and how long. Returns its name."""
        if organisation not in self._readers:
            log = LaunchLog(self._network.state, organisation)
            log.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._readers[organisation] = self._stack.enter_context(LogReader(log))
            self._heard(organisation)
        self._started += 1
        name = f"{process}-{organisation}-{self._started}"
        self._folder.mkdir(parents=True, exist_ok=True)
        out = self._folder / f"{name}.json"
        words = ("launch", "--process", process, "--organisation", organisation, *options)
        with out.open("wb") as printed, out.with_suffix(".log").open("wb") as said:
            child = subprocess.Popen(
                [*PROGRAM, *words, "--json"], stdin=subprocess.DEVNULL, stdout=printed, stderr=said
            )
        self._running[name] = child, out
        return name

    def kill(self, name: str) -> None:
        """Kill an executor without any warning; what it left is there for the next one to find."""
        child, _ = self._running.pop(name)
        child.kill()
        child.wait()

    def wait(self, hear: Hear) -> Reports:
        """Wait until all have ended, and return what they did; the first that failed ends the others."""
        reports = Reports()
        while self._running:
            for entry in [entry for organisation in self._readers for entry in self._heard(organisation)]:
                hear(entry)
            for name in [name for name, (child, _) in self._running.items() if child.poll() is not None]:
                reports.nodes += _report(name, *self._running.pop(name))
            time.sleep(PULSE)
        for entry in [entry for organisation in self._readers for entry in self._heard(organisation)]:
            hear(entry)
        return reports

    def _heard(self, organisation: str) -> list[LogEntry]:
        """Return what an organisation's nodes did since this was last asked."""
        entries = map(LogEntry.from_line, self._readers[organisation].lines())
        return [entry for entry in entries if entry is not None]


def _report(name: str, child: "subprocess.Popen[bytes]", out: Path) -> list[dict[str, Any]]:
    printed = out.read_text(errors="replace")
    if child.returncode != 0:
        said = out.with_suffix(".log").read_text(errors="replace")
        raise TaskError(
            "FEDERATION_LAUNCH",
            f"the launch {name} ended with {child.returncode}: {(printed + said)[-_TAIL:]}",
        )
    return list(json.loads(printed)["nodes"])
