"""What pytest reported, test by test, and the summary that ends a run.

tests/conftest.py writes one line of JSON for every start and every outcome, so that a run that was killed
has its part too.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SLOWEST = 20


@dataclass
class Test:
    """One test of one group."""

    id: str
    outcome: str = "unfinished"
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether it failed, could not be set up or taken down, or never ended."""
        return self.outcome in ("failed", "unfinished")


@dataclass
class Group:
    """What pytest did in one of its runs."""

    name: str
    tests: dict[str, Test] = field(default_factory=dict)
    closing: str = ""
    ended: bool = False
    """Whether pytest came to its end: a program that a test runs may have ended it, and well."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it ran and nothing failed."""
        return self.ended and not self.count("failed", "unfinished")

    def count(self, *outcomes: str) -> int:
        """How many tests ended so."""
        return sum(test.outcome in outcomes for test in self.tests.values())


def read(name: str, file: Path, log: Path | None = None) -> Group:
    """Read the lines of one group; a file cut off by a kill is read as far as it goes."""
    group = Group(name)
    for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
        try:
            report = json.loads(line)
        except json.JSONDecodeError:
            continue
        if report["when"] == "end":
            group.ended = True
            continue
        test = group.tests.setdefault(report["id"], Test(report["id"]))
        if report["when"] == "start":
            continue
        test.seconds += report["seconds"]
        _judge(test, report["when"], report["outcome"])
    if log is not None and log.exists():
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        group.closing = next((line for line in reversed(lines) if " in " in line and line[:1].isdigit()), "")
    return group


def _judge(test: Test, when: str, outcome: str) -> None:
    if outcome == "failed":
        test.outcome = "failed"
    elif outcome == "skipped" and test.outcome == "unfinished":
        test.outcome = "skipped"
    elif when == "teardown" and test.outcome == "unfinished":
        test.outcome = "passed"


def summary(groups: Sequence[Group]) -> list[str]:
    """Return the lines that end a run: the slowest tests, every failed one with its command, and the sums."""
    tests = [test for group in groups for test in group.tests.values()]
    lines = []
    if len(tests) > SLOWEST:
        lines.append(f"The slowest {SLOWEST} of {len(tests)} tests:")
        slowest = sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]
        lines += [f"{test.seconds:8.1f} s  {test.id}" for test in slowest]
    failed = [test for test in tests if test.failed]
    if failed:
        lines.append("Failed, each with the command that runs it alone:")
        lines += [f"  {rerun(test.id)}{_remark(test)}" for test in failed]
    lines += [f"{group.name}: {group.closing}" for group in groups if group.closing]
    return lines


def _remark(test: Test) -> str:
    return "    # did not end" if test.outcome == "unfinished" else ""


def rerun(test_id: str) -> str:
    """Return the command that runs one test alone."""
    return f"scripts/test {shlex.quote(test_id)}"


def total(groups: Iterable[Group]) -> str:
    """Return the last line of a run, the sum over its groups."""
    listed = list(groups)
    passed, skipped = (sum(group.count(outcome) for group in listed) for outcome in ("passed", "skipped"))
    failed = sum(group.count("failed", "unfinished") for group in listed)
    return f"{passed} passed, {failed} failed, {skipped} skipped"
