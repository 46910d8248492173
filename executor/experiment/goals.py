"""Goals with numbers, each met or missed by what was measured."""

from dataclasses import dataclass

from executor.experiment.tables import Grid, plain, signed


@dataclass(frozen=True)
class Goal:
    """A bound on one figure."""

    text: str
    bound: str
    measured: str
    met: bool


def at_least(text: str, bound: float, value: float, sign: bool = False) -> Goal:
    """A goal that a greater figure meets."""
    show = signed if sign else plain
    return Goal(text, f"at least {show(bound)}", show(value), bool(value >= bound))


def at_most(text: str, bound: float, value: float, sign: bool = False) -> Goal:
    """A goal that a smaller figure meets."""
    show = signed if sign else plain
    return Goal(text, f"at most {show(bound)}", show(value), bool(value <= bound))


def holds(text: str, met: bool, measured: str) -> Goal:
    """A goal without a number."""
    return Goal(text, "yes", measured, bool(met))


def as_grid(title: str, goals: list[Goal]) -> Grid:
    """The goals as a table."""
    rows = [(goal.text, goal.bound, goal.measured, "met" if goal.met else "MISSED") for goal in goals]
    return Grid(title, ("Goal", "Bound", "Measured", ""), rows)
