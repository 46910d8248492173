"""Which tests a run is about, from the command's arguments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .surroundings import ROOT, RefusedError

UNIT, E2E = "tests/unit", "tests/e2e"
E2E_MARKS = {"alone", "engine", "at_length", "every_engine", "large"}
"""The marks of pyproject.toml, which no unit test has."""
CHOOSING = ("-k", "-m", "--lf", "--last-failed", "--ff", "--deselect", "--sw", "--stepwise")
"""Options of pytest that choose among the tests, so that a group may have none."""


@dataclass
class Selection:
    """The tests to run: paths of either kind, and what else pytest is told."""

    unit: list[str] = field(default_factory=list)
    e2e: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    chosen: bool = False
    """Whether it is less than everything: then there are no linters and no fuzzing."""
    marks: str = ""
    """The user's own -m, to be joined with that of a group."""

    def marked(self, expression: str) -> list[str]:
        """Return pytest's -m for a group's expression and the user's."""
        joined = " and ".join(f"({part})" for part in (expression, self.marks) if part)
        return ["-m", joined] if joined else []


def select(arguments: Sequence[str], caller: Path) -> Selection:
    """Sort arguments into paths, seen from the caller or the root, and options of pytest."""
    found = Selection()
    rest = iter(arguments)
    for argument in rest:
        if argument == "-m" or (argument.startswith("-m") and len(argument) > 2):
            found.marks = argument[2:] or next(rest, "")
            found.chosen = True
        elif argument.startswith("-"):
            found.options.append(argument)
            found.chosen |= argument.startswith(CHOOSING)
            if argument in ("-k", "-n", "-p", "-o", "-W", "-r", "--maxfail", "--deselect", "--timeout"):
                found.options.append(next(rest, ""))
        else:
            _add(found, argument, caller)
    if not found.unit and not found.e2e:
        found.unit, found.e2e = [UNIT], [E2E]
        # To find that no unit test has the marks takes as long as to collect them all.
        marks = set(re.findall(r"\w+", found.marks))
        if marks and marks <= E2E_MARKS | {"and", "or"}:
            found.unit = []
    return found


def _add(found: Selection, argument: str, caller: Path) -> None:
    path, separator, test = argument.partition("::")
    for base in (caller, ROOT):
        whole = (base / path).resolve()
        if whole.exists() and whole.is_relative_to(ROOT / "tests"):
            relative = str(whole.relative_to(ROOT))
            break
    else:
        raise RefusedError(f"'{argument}' is no test: there is no {path} below tests/")
    found.chosen = True
    if relative == "tests":
        found.unit.append(UNIT)
        found.e2e.append(E2E)
    elif relative == UNIT or relative.startswith(f"{UNIT}/"):
        found.unit.append(relative + separator + test)
    elif relative == E2E or relative.startswith(f"{E2E}/"):
        found.e2e.append(relative + separator + test)
    else:
        raise RefusedError(f"'{argument}' holds no tests: they are below {UNIT} and {E2E}")
