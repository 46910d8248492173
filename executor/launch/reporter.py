"""What a person sees of a launch: one moving line per node on a terminal, plain lines elsewhere."""

import sys
import threading
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from executor.experiment.tables import Grid
from executor.launch.nodes import NodeReport


class Reporter:
    """Shows progress on standard error, from several threads at once."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._progress = Progress(*columns, console=self._console) if self._console.is_terminal else None
        self._rows: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def tell(self, node: str, iteration: int | None, text: str) -> None:
        """Show what a node does."""
        place = node if iteration is None else f"{node} iteration {iteration}"
        with self._lock:
            if self._progress is None:
                sys.stderr.write(f"{place}: {text}\n")
                sys.stderr.flush()
            elif node in self._rows:
                self._progress.update(self._rows[node], description=f"{place}: {text}")
            else:
                self._rows[node] = self._progress.add_task(f"{place}: {text}", total=None)


def summary_text(reports: list[NodeReport]) -> str:
    """Return a table of what the tasks came to."""
    columns = ("Node", "Iteration", "Created", "Taken", "Refused", "Ensemble", "Block", "Seconds", "Digest")
    rows = []
    for report in reports:
        for summary in report.tasks:
            found = summary.to_dict()
            counts = [str(found[name.lower()]) for name in columns[:7]]
            rows.append((*counts, f"{summary.seconds:.1f}", summary.result.ensemble_digest.hex[:12]))
    return Grid("Tasks", columns, rows).text()
