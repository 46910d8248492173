"""Tables that read the same on a terminal and in a Markdown page."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Grid:
    """A title, column names and rows of text; the first column is aligned left, the others right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def text(self) -> str:
        """An aligned Markdown table under its title."""
        widths = [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]
        lines = [_line(self.columns, widths)]
        lines.append("|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|")
        lines += [_line(row, widths) for row in self.rows]
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(lines) + note + "\n"


def signed(value: float, digits: int = 3) -> str:
    """`+0.062`; never `-0.000`."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def plain(value: float, digits: int = 3) -> str:
    """`0.062`; never `-0.000`."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def node_label(index: int) -> str:
    """`Node 2`, as the paper names nodes."""
    return f"Node {index}"


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows under a header, with the shortest digits that read back to the same number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if i else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"
