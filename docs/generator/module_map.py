"""docs/modules.md and its picture: every package and module with the first line of its docstring."""

import textwrap
from pathlib import Path

from .repository import ROOT, Module, imports_between, modules, packages

PAGE = ROOT / "docs" / "modules.md"
PICTURE = ROOT / "docs" / "pictures" / "packages.dot"

INTRODUCTION = """\
# Modules

Made by `scripts/docs` from the docstrings; edit those, not this page.

Every module in one line, and who imports whom, as the sources have it and import-linter enforces it.
[architecture.md](architecture.md) says why.

![Packages and their imports](pictures/packages.svg)
"""


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    uses = imports_between(packages())
    for package in packages():
        first, *rest = modules(package)
        of_ours = ", ".join(f"`{name}`" for name in uses[package]) or "nothing of ours"
        parts += [f"## {package}", "", f"{first.summary} Imports {of_ours}.", "", *_table(rest, package)]
    return "\n".join(parts).rstrip("\n") + "\n"


def picture() -> str:
    """Return the text of the picture, for `dot`."""
    uses = imports_between(packages())
    boxes = [f'  {name} [label="{name}\\n{_label(name)}"]' for name in packages()]
    arrows = [f"  {name} -> {other}" for name in packages() for other in uses[name]]
    return "\n".join(
        (
            "// Made by scripts/docs from the imports in the sources. An arrow points to what is imported.",
            "digraph packages {",
            '  graph [bgcolor=white, nodesep=0.4, ranksep=0.6, fontname="DejaVu Sans"]',
            '  node [shape=box, style="rounded,filled", fillcolor="#eef1f6", color="#9aa4b2",'
            ' fontname="DejaVu Sans", fontsize=12, margin="0.16,0.10"]',
            '  edge [color="#1a1a1a", arrowsize=0.7]',
            *boxes,
            *arrows,
            "}",
            "",
        )
    )


def _label(package: str) -> str:
    summary = modules(package)[0].summary.rstrip(".").replace('"', "'").replace("`", "")
    return "\\n".join(textwrap.wrap(summary, 30))


def _table(found: list[Module], package: str) -> list[str]:
    lines = ["| module | what |", "|---|---|"]
    for module in found:
        name = module.name.removeprefix(f"{package}.")
        shown = f"**{name}/**" if module.is_package else name
        where = Path("..") / module.path.relative_to(ROOT)
        target = where.parent if module.is_package else where
        lines.append(f"| [{shown}]({target}) | {module.summary.replace('|', chr(92) + '|')} |")
    return [*lines, ""]
