"""The sources as a reader sees them: packages, modules, what each is for, and who imports whom."""

import ast
import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Module:
    """One module, read and never run."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        """The module's syntax."""
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, in one line."""
        return first_paragraph(ast.get_docstring(self.tree))

    @property
    def is_package(self) -> bool:
        """Whether it stands for a folder."""
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """The package that the module is in."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def imported(self) -> frozenset[str]:
        """Every module that this one imports, wherever in its text."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                found.add(node.module)
        return frozenset(found)


def packages() -> list[str]:
    """Return the packages whose imports are kept in order, as pyproject.toml lists them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[str] = settings["tool"]["importlinter"]["root_packages"]
    return listed


@cache
def modules(package: str) -> tuple[Module, ...]:
    """Return the modules of a package: a folder comes before its modules, and these before its folders."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folder = ROOT / settings["tool"]["setuptools"]["package-dir"].get(package, package)
    found = []
    for path in folder.rglob("*.py"):
        inside = path.relative_to(folder).with_suffix("").parts
        parts = inside[:-1] if path.name == "__init__.py" else inside
        found.append(Module(".".join((package, *parts)), path))
    return tuple(sorted(found, key=lambda module: (module.room, not module.is_package, module.name)))


def imports_between(names: list[str]) -> dict[str, list[str]]:
    """Say of each package which of the others it imports."""
    found = {}
    for name in names:
        used = {line.partition(".")[0] for module in modules(name) for line in module.imported}
        found[name] = [other for other in names if other in used and other != name]
    return found


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((docstring or "").partition("\n\n")[0].split())
