"""What a benchmark hands back: ratios, figures and goals, for people and for programs."""

import json
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

_PAGE_HEAD = """# Benchmarks

Each section is written by `scripts/bench NAME`. Ratios compare two things measured in the same run on the
same machine, so they carry over to others; seconds do not.

What the paper's experiment takes on the ledger is measured by the experiment itself, beside the simulator:
[its ratio and the goal for it](results.md#the-papers-experiment-through-the-ledger), and
[where the time goes](figures/paper-ledger-parts.png) as one stacked bar.
"""


@dataclass(frozen=True)
class Goal:
    """A figure that must not be missed."""

    name: str
    limit: float
    direction: Literal["at least", "at most"]
    value: float

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of the limit."""
        return self.value >= self.limit if self.direction == "at least" else self.value <= self.limit


@dataclass(frozen=True)
class Report:
    """One benchmark's outcome."""

    title: str
    ratios: dict[str, float] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)

    @property
    def met(self) -> bool:
        """Whether every goal is met."""
        return all(goal.met for goal in self.goals)

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        goals = [asdict(goal) | {"met": goal.met} for goal in self.goals]
        return {
            "title": self.title,
            "ratios": self.ratios,
            "figures": self.figures,
            "goals": goals,
            "met": self.met,
        }

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(self.to_dict(), indent=2)

    def to_markdown(self) -> str:
        """Return the section: goals first, then ratios and figures."""
        parts = [
            f"## {self.title}",
            f"Python {platform.python_version()}, {platform.machine()}, {_processor()}.",
        ]
        if self.goals:
            rows = [
                (
                    goal.name,
                    f"{goal.direction} {show(goal.limit)}",
                    show(goal.value),
                    "yes" if goal.met else "NO",
                )
                for goal in self.goals
            ]
            parts.append(table(("goal", "limit", "measured", "met"), rows))
        for head, numbers in (("ratio", self.ratios), ("figure", self.figures)):
            if numbers:
                parts.append(table((head, "value"), [(name, show(value)) for name, value in numbers.items()]))
        return "\n\n".join(parts) + "\n"

    def write_section(self, page: Path, name: str) -> None:
        """Replace this benchmark's section of the page, or append it."""
        text = page.read_text(encoding="utf-8") if page.exists() else _PAGE_HEAD
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        section = f"{begin}\n{self.to_markdown()}{end}"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if pattern.search(text):
            text = pattern.sub(lambda _: section, text)
        else:
            text = f"{text.rstrip()}\n\n{section}\n"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(value: Any) -> str:
    """Return a number with as many digits as it deserves, anything else as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else "unknown processor"
