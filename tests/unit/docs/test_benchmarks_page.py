"""Rows of docs/benchmarks.md have names that the benchmarks can print: what was renamed is measured again."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "bench"
PAGE = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"<!-- (\S+): begin -->\n(.*?)<!-- \1: end -->", PAGE, re.DOTALL))
HEADS = ("goal", "ratio", "figure")
LEAST = 3
"""How many letters or signs a text with gaps must have besides them: without any it would fit every name."""


@pytest.mark.parametrize("section", SECTIONS)
def test_every_row_has_a_name_that_its_benchmark_can_print(section: str) -> None:
    known = re.compile("|".join(names_in(BENCH / f"{section}.py")))
    assert [row for row in rows_of(SECTIONS[section]) if not known.fullmatch(row)] == []


def test_every_section_is_of_a_benchmark() -> None:
    assert SECTIONS
    assert [name for name in SECTIONS if not (BENCH / f"{name}.py").is_file()] == []


def rows_of(section: str) -> list[str]:
    """Return the first cell of each line of the tables but their heads."""
    cells = (
        line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")
    )
    return [cell for cell in cells if cell not in HEADS and cell != "---"]


def names_in(module: Path) -> list[str]:
    """Return a pattern for each text in a benchmark, and in those modules beside it that it names."""
    source = module.read_text(encoding="utf-8")
    beside = [path for path in sorted(BENCH.glob("_*.py")) if re.search(rf"\b{path.stem}\b", source)]
    return [name for path in (module, *beside) for name in texts_of(path)]


def texts_of(module: Path) -> list[str]:
    """Return a pattern for each text, in which anything fits where an f-string has a gap."""
    found = []
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [part.value if isinstance(part, ast.Constant) else None for part in parts]
        words = [text for text in texts if isinstance(text, str)]
        if len("".join(words).replace(" ", "")) >= LEAST:
            found.append("".join(re.escape(text) if isinstance(text, str) else ".*" for text in texts))
    return found
