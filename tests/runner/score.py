"""What became of mutants, counted by package, with what a sample says about all of them."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

GOAL = 0.9
NOTICED = ("killed", "timeout")
ARGUED = "argued"
_NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Argument:
    """A change that means nothing to a caller, or a kind of such changes, and why."""

    change: re.Pattern[str]
    where: str
    """The function, with its module and class; empty for a kind of changes, wherever they are."""
    reason: str

    def holds(self, function: str, change: str) -> bool:
        """Return whether it speaks of this change of this function."""
        return self.where in ("", function) and self.change.search(change) is not None


@dataclass(frozen=True, slots=True)
class Row:
    """One package, or all of them."""

    name: str
    mutants: int
    """How many there are, tried or not."""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def tried(self) -> int:
        """How many were tried."""
        return self.counts.total()

    @property
    def noticed(self) -> int:
        """How many a test noticed."""
        return sum(self.counts[status] for status in NOTICED)

    @property
    def unnoticed(self) -> int:
        """How many no test noticed, though nobody argued that none has to."""
        return self.tried - self.noticed - self.counts[ARGUED]

    @property
    def score(self) -> float:
        """The noticed ones, of those that nobody argued away; all of none."""
        counted = self.noticed + self.unnoticed
        return self.noticed / counted if counted else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Between what the score of all mutants lies, 95 times in a hundred (Wilson's interval)."""
        counted = self.noticed + self.unnoticed
        if not counted:
            return 0.0, 1.0
        squared = _NORMAL_95**2 / counted
        middle = (self.score + squared / 2) / (1 + squared)
        reach = (
            _NORMAL_95
            * sqrt(self.score * (1 - self.score) / counted + squared / (4 * counted))
            / (1 + squared)
        )
        return max(0.0, middle - reach), min(1.0, middle + reach)

    @property
    def cells(self) -> list[str]:
        """What a table shows of it."""
        low, high = self.interval
        counts = [self.counts["killed"], self.counts["timeout"], self.unnoticed, self.counts[ARGUED]]
        return [
            self.name,
            f"{self.mutants:,}",
            str(self.tried),
            *map(str, counts),
            f"{100 * self.score:.1f} %",
            f"{100 * low:.1f} to {100 * high:.1f} %",
        ]


def rows(mutants: Sequence[tuple[str, int]], outcomes: Iterable[tuple[str, str]]) -> list[Row]:
    """Count outcomes, each a package and a status, for each package with so many mutants, and for all."""
    found = [Row(name, count) for name, count in mutants]
    every = Row("all", sum(count for _, count in mutants))
    by_name = {row.name: row for row in found}
    for package, status in outcomes:
        by_name[package].counts[status] += 1
        every.counts[status] += 1
    return [*found, every]


def table(found: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    head = ["package", "mutants", "tried", "killed", "timed out", "not noticed", "argued", "score", "95 %"]
    lines = [head, ["---"] * len(head), *(row.cells for row in found)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read_arguments(file: Path) -> list[Argument]:
    """Read the changes that mean nothing, each with its reason."""
    return [
        Argument(re.compile(entry["change"], re.MULTILINE), entry.get("where", ""), entry["reason"])
        for entry in tomllib.loads(file.read_text())["argued"]
    ]
