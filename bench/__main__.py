"""Run one benchmark by name: print its table and keep it in docs/benchmarks.md."""

import argparse
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bench
from bench.report import Report

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0, or 1 if `--check` was given and a goal was missed."""
    names = [
        module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_")
    ]
    names = sorted(set(names) - {"report"})
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("name", choices=names)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--check", action="store_true", help="fail if a goal is missed")
    parser.add_argument("--no-write", action="store_true", help="leave docs/benchmarks.md as it is")
    parser.add_argument("--data", type=Path, help="a data file, for benchmarks that can use a real one")
    parser.add_argument("--quick", action="store_true", help="a small instance, which is not written down")
    parser.add_argument(
        "--sizes",
        type=_sizes,
        help="numbers of nodes, as 4,8, for benchmarks that grow with them",
    )
    asked = parser.parse_args(arguments)
    measure = importlib.import_module(f"bench.{asked.name}").measure
    if asked.quick and "quick" not in inspect.signature(measure).parameters:
        parser.error(f"{asked.name} has no small instance")
    report = _run(measure, {"data": asked.data, "sizes": asked.sizes, "quick": asked.quick or None})
    if not asked.no_write and not asked.quick:
        report.write_section(PAGE, asked.name)
    print(report.to_json() if asked.json else report.to_markdown())
    for goal in report.goals:
        if asked.check and not goal.met:
            print(f"missed: {goal.name}: {goal.value:g}, {goal.direction} {goal.limit:g}", file=sys.stderr)
    return 1 if asked.check and not report.met else 0


def _run(measure: Callable[..., Report], given: dict[str, Any]) -> Report:
    """Measure with the options that a benchmark has; one that was not given is as the benchmark has it."""
    known = inspect.signature(measure).parameters
    return measure(**{name: value for name, value in given.items() if name in known and value is not None})


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
