"""Tables that read the same on a terminal and in Markdown, and the results page that they stand on."""

import csv
import io
import platform
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from protocol.values import dataclass

PAGE, FIGURES = "results.md", "figures"
HEAD = """# Results

Written by `scripts/results`, which runs the experiments; edits by hand are lost.
[experiments.md](experiments.md) says how to run them and what the words mean.
"""
ORDER = (
    "paper",
    "paper-regressor",
    "paper-ledger",
    "moving",
    "robust",
    "methods",
    "fit",
    "privacy",
    "ieee-cis",
    "shuttle",
)


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
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_whole(path, file.getvalue().encode())


def write_whole(path: Path, raw: bytes) -> None:
    """Write a file whole or not at all: what was there stays until all of the new one is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_bytes(raw)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_part(docs: Path, name: str, text: str) -> Path:
    """Put `text` between the marks of part `name` of the page, which is created if it is not there."""
    page = docs / PAGE
    parts = _parts(page.read_text(encoding="utf-8")) if page.exists() else {}
    parts[name] = text.strip()
    body = "\n".join(f"{_start(key)}\n{parts[key]}\n{_end(key)}\n" for key in ORDER if key in parts)
    write_whole(page, f"{HEAD}\n{body}".encode())
    return page


def section(title: str, command: str, seeds: Sequence[int], blocks: Sequence[Grid | str]) -> str:
    """A heading, how to get the same again, and the blocks in order."""
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    text = f"## {title}\n\n`{command}`, seeds {', '.join(map(str, seeds))}; {used}.\n"
    return "\n".join([text, *(block.text() if isinstance(block, Grid) else block + "\n" for block in blocks)])


def figure(name: str, caption: str) -> str:
    """An image of the page, with its caption as the alternative text."""
    return f"![{caption}]({FIGURES}/{name}.png)\n\n*{caption}.* [SVG]({FIGURES}/{name}.svg)"


def versions() -> dict[str, str]:
    """What a reader needs to run the same again."""
    # It loads slowly, and every command draws tables.
    from importlib.metadata import version  # noqa: PLC0415

    packages = ("attestree", "numpy", "scikit-learn")
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        p: version(p) for p in packages
    }


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if figure else cell.ljust(width)
        for cell, width, figure in zip(cells, widths, right, strict=True)
    )
    return "| " + " | ".join(padded) + " |"


def _start(name: str) -> str:
    return f"<!-- {name}: begin -->"


def _end(name: str) -> str:
    return f"<!-- {name}: end -->"


def _parts(text: str) -> dict[str, str]:
    found = {}
    for name in ORDER:
        start, end = text.find(_start(name)), text.find(_end(name))
        if 0 <= start < end:
            found[name] = text[start + len(_start(name)) : end].strip()
    return found
