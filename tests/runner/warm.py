"""Tries mutants in one process that has collected the tests once and forks for each mutant.

    python -m tests.runner.warm PLAN RESULTS

is run in a copy of the repository whose files have mutants in them. PLAN is the mutants' names and what
pytest collects, as JSON; RESULTS gets one line of JSON for each mutant. What costs time otherwise is not the
tests: to import and collect them takes seconds, and most mutants die within a fifth of one.

1. Collect the tests. Nothing of the code has run then but what runs when it is imported.
2. In forks: run every test once, without a change, and note which functions it calls and how long it takes.
   What a cache answers was called as well: for a mutant the tests run in other company, and it is empty.
   This is kept for the next time; a file of tests is run again if it has changed.
3. In a fork for each mutant: run the tests that call its function, the quick ones first, until one fails.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from mutmut.mutation import trampoline
from mutmut.utils.format_utils import mangled_name_from_mutant_name

from .forks import TIMED_OUT, Forks, Work
from .remembered import remember

KILLED, TIMEOUT, SURVIVED, UNREACHED, AT_IMPORT = "killed", "timeout", "survived", "no tests", "at import"
STATS = "stats"
# A limit says that a mutant hangs, so it is far from what is usual: a busy machine is slow.
LEAST_PROCESSOR, LEAST_WALL, TIMES = 5, 60.0, 10


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant."""

    mutant: str
    status: str
    by: str = ""
    """The test that noticed it."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a test: the functions that it calls, and how long it takes."""

    functions: frozenset[str]
    processor: float
    wall: float


@dataclass(frozen=True, slots=True)
class Reach:
    """What was known of tests at an earlier time, by the file that they are in and what it was then."""

    kept: Path
    keys: dict[str, str]

    def read(self) -> dict[str, Known]:
        """Return what still holds."""
        files = json.loads(self.kept.read_text()) if self.kept.is_file() else {}
        return {
            test: Known(frozenset(functions), processor, wall)
            for file, (key, tests) in files.items()
            if self.keys.get(file) == key
            for test, (functions, processor, wall) in tests.items()
        }

    def write(self, known: dict[str, Known]) -> None:
        """Keep it, for the files that have a key."""
        files: dict[str, tuple[str, dict[str, tuple[list[str], float, float]]]] = {}
        for test, one in known.items():
            file = test.partition("::")[0]
            if file in self.keys:
                told = (sorted(one.functions), one.processor, one.wall)
                files.setdefault(file, (self.keys[file], {}))[1][test] = told
        self.kept.write_text(json.dumps(files))


class Warm:
    """A plugin of pytest that tries mutants where the tests would run."""

    def __init__(self, mutants: Sequence[str], results: Path, jobs: int, reach: "Reach") -> None:
        self.mutants, self.results, self.jobs, self.reach = mutants, results, jobs, reach
        self.failed = False
        self._shared: dict[object, set[str]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant, and write down at once what became of it."""
        imported = frozenset(called())
        known = self._learn(session.items)
        with self.results.open("a") as written, Forks(self.jobs) as forks:

            def note(result: Result) -> None:
                written.write(json.dumps(asdict(result)) + "\n")
                written.flush()

            for mutant in self.mutants:
                function = mangled_name_from_mutant_name(mutant)
                guards = [item for item in session.items if function in known[item.nodeid].functions]
                guards.sort(key=lambda item: known[item.nodeid].processor)
                status = AT_IMPORT if function in imported else SURVIVED if guards else UNREACHED
                unnoticed = Result(mutant, status)
                if guards:
                    forks.start(Trial(self, unnoticed, guards, [known[item.nodeid] for item in guards], note))
                else:
                    note(unnoticed)
        return True

    def run(self, items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
        """Run tests one by one; `failed` says whether one failed."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item

    def watch(self, items: Sequence[pytest.Item]) -> Iterator[tuple[str, Known]]:
        """Run tests without a change, and tell of each which functions it called."""
        processor, wall = time.process_time(), time.monotonic()
        called().clear()
        for item in self.run(items):
            if self.failed:
                raise RuntimeError(f"{item.nodeid} fails without any change")
            functions = set(called())
            for fixtures in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
                functions.update(*(self._shared.get(fixture, ()) for fixture in fixtures))
            now = time.process_time(), time.monotonic()
            yield item.nodeid, Known(frozenset(functions), now[0] - processor, now[1] - wall)
            processor, wall = now
            called().clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed."""
        self.failed = self.failed or report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        """Note what a fixture calls that several tests share: it is made for the first of them only."""
        before = set(called())
        called().clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._shared[fixturedef] = set(called())
            called().update(before)

    def _learn(self, items: Sequence[pytest.Item]) -> dict[str, Known]:
        """Run every test once in forks, each its part, and return what is known of them."""
        known = self.reach.read()
        unknown = [item for item in items if item.nodeid not in known]
        size = -(-len(unknown) // self.jobs) or 1
        with Forks(self.jobs) as forks:
            for first in range(0, len(unknown), size):
                forks.start(Lesson(self, unknown[first : first + size], known))
        if unknown:
            self.reach.write(known)
        return known


class Lesson(Work):
    """Some tests, run without a change."""

    processor_seconds, seconds = 1200, 3600.0

    def __init__(self, warm: Warm, items: Sequence[pytest.Item], known: dict[str, Known]) -> None:
        self.warm, self.items, self.known = warm, items, known

    def run(self, folder: Path) -> int:
        """Run them, and write down what they call."""
        call(STATS)
        try:
            told = {
                name: [sorted(one.functions), one.processor, one.wall]
                for name, one in self.warm.watch(self.items)
            }
        except RuntimeError as error:
            (folder / "why").write_text(str(error))
            return 1
        (folder / "known").write_text(json.dumps(told))
        return 0

    def ended(self, folder: Path, code: int, seconds: float) -> None:
        """Read what they call."""
        if code:
            why = folder / "why"
            raise RuntimeError(why.read_text() if why.is_file() else f"the tests ended with code {code}")
        for name, (functions, processor, wall) in json.loads((folder / "known").read_text()).items():
            self.known[name] = Known(frozenset(functions), processor, wall)


class Trial(Work):
    """A mutant, and the tests that call the function that it changed."""

    def __init__(
        self,
        warm: Warm,
        unnoticed: Result,
        guards: Sequence[pytest.Item],
        tests: Sequence[Known],
        note: Callable[[Result], None],
    ) -> None:
        self.warm, self.unnoticed, self.guards, self.note = warm, unnoticed, guards, note
        self.processor_seconds = int(LEAST_PROCESSOR + TIMES * sum(test.processor for test in tests))
        self.seconds = LEAST_WALL + TIMES * sum(test.wall for test in tests)

    def run(self, folder: Path) -> int:
        """Run the tests until one fails."""
        call(self.unnoticed.mutant)
        for item in self.warm.run(self.guards):
            if self.warm.failed:
                (folder / "by").write_text(item.nodeid)
                return 1
        return 0

    def ended(self, folder: Path, code: int, seconds: float) -> None:
        """Note whether one failed. A process that ended in any other way than well has been noticed too."""
        by = folder / "by"
        status = self.unnoticed.status if code == 0 else TIMEOUT if code == TIMED_OUT else KILLED
        test = by.read_text() if by.is_file() else ""
        self.note(Result(self.unnoticed.mutant, status, test, seconds))


_CALLED: set[str] = set()


def called() -> set[str]:
    """Return the functions that were called since it was cleared."""
    return _CALLED


def call(mutant: str) -> None:
    """Let a mutant be called in place of its function, or with STATS note what is called.

    Every call of a rule asks which mutant it is; by the environment, as in mutmut, it takes twice as long.
    """
    trampoline.set_mutant_under_test(mutant)
    trampoline.get_mutant_under_test = lambda: mutant
    trampoline.record_trampoline_hit = lambda name, caller=None: _CALLED.add(name)  # type: ignore[attr-defined]


def main(plan: Path, results: Path) -> int:
    """Collect the tests as they are, and try the mutants."""
    asked = json.loads(plan.read_text())
    call(STATS)
    remember(lambda: _CALLED if trampoline.get_mutant_under_test() == STATS else None)
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", *asked["tests"]]
    reach = Reach(Path(asked["reach"]), asked["keys"])
    return int(pytest.main(options, plugins=[Warm(asked["mutants"], results, asked["jobs"], reach)]))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
