"""Tables that read the same on a terminal and in a Markdown page."""

import csv
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Grid:
    """A title, column names and rows of text; the first column is aligned left, figures right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    figures: bool = True

    def text(self) -> str:
        """An aligned Markdown table under its title."""
        widths = [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]
        right = [self.figures and i > 0 for i in range(len(widths))]
        rule = "|".join(
            "-" * (width + 1) + (":" if r else "-") for width, r in zip(widths, right, strict=True)
        )
        lines = [_line(self.columns, widths, right), f"|{rule}|"]
        lines += [_line(row, widths, right) for row in self.rows]
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(lines) + note + "\n"

    def listed(self) -> str:
        """The same as a list, one row after the other, for tables with sentences in them."""
        lines = []
        for first, *others in self.rows:
            lines.append(f"- {first}")
            pairs = zip(self.columns[1:], others, strict=True)
            lines += [
                textwrap.fill(f"{name}: {cell}", 100, initial_indent="    ", subsequent_indent="      ")
                for name, cell in pairs
            ]
        return f"**{self.title}**\n\n" + "\n".join(lines) + "\n"


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


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if figure else cell.ljust(width)
        for cell, width, figure in zip(cells, widths, right, strict=True)
    )
    return "| " + " | ".join(padded) + " |"
