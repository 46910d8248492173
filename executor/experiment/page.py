"""The results page: each experiment replaces its own part of it and leaves the others alone."""

from collections.abc import Sequence
from pathlib import Path

from executor.experiment.progress import versions
from executor.experiment.tables import Grid

PAGE, FIGURES = "results.md", "figures"
HEAD = """# Results

Written by `scripts/results`, which runs the experiments; edits by hand are lost.
[experiments.md](experiments.md) says how to run them and what the words mean.
"""
ORDER = ("paper", "paper-regressor", "robust", "fit")


def write_part(docs: Path, name: str, text: str) -> Path:
    """Put `text` between the marks of part `name` of the page, which is created if it is not there."""
    page = docs / PAGE
    parts = _parts(page.read_text(encoding="utf-8")) if page.exists() else {}
    parts[name] = text.strip()
    body = "\n".join(f"{_start(key)}\n{parts[key]}\n{_end(key)}\n" for key in ORDER if key in parts)
    docs.mkdir(parents=True, exist_ok=True)
    page.write_text(f"{HEAD}\n{body}", encoding="utf-8")
    return page


def section(title: str, command: str, seeds: Sequence[int], blocks: Sequence[Grid | str]) -> str:
    """A heading, how to get the same again, and the blocks in order."""
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    text = f"## {title}\n\n`{command}`, seeds {', '.join(map(str, seeds))}; {used}.\n"
    return "\n".join([text, *(block.text() if isinstance(block, Grid) else block + "\n" for block in blocks)])


def figure(name: str, caption: str) -> str:
    """An image of the page, with its caption as the alternative text."""
    return f"![{caption}]({FIGURES}/{name}.png)\n\n*{caption}.* [SVG]({FIGURES}/{name}.svg)"


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
