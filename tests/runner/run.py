"""One run of the test command, from what earlier runs left to the last line."""

import os
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import leftovers, plan, results, surroundings
from .evidence import Evidence
from .jobs import Job, Work
from .selection import Selection
from .surroundings import HASH_SEED, MARK, PROJECT, ROOT, RefusedError


def say(text: str) -> None:
    """Print at once; a reader that has gone away does not end the run, which has things to clear up."""
    try:
        print(text, flush=True)
    except OSError:
        return


class Run:
    """The selected tests: checks and unit tests beside the network and the tests on it, then those alone."""

    def __init__(
        self, selection: Selection, temporary: Path, arguments: Sequence[str], *, keep: bool
    ) -> None:
        self.selection, self.keep, self.arguments = selection, keep, arguments
        self.environment = surroundings.environment(temporary)
        self.logs = temporary / "logs"
        self.logs.mkdir()
        self.work = Work(self.environment, self.logs, say)
        self.evidence = Evidence(self.environment)
        self.groups: list[str] = []
        self.e2e: list[str] = []
        self.problem = ""

    @property
    def failed(self) -> bool:
        """Whether anything went wrong so far."""
        return bool(self.problem or self.work.troubles) or any(ended.failed for ended in self.work.ended)

    def run(self) -> int:
        """Run, clear up, report; return the exit code."""
        try:
            self.e2e = plan.groups(self.selection, self.environment, self.logs)
            if self.e2e:
                with surroundings.one_at_a_time():
                    # Now, and no longer than the network is held: the mark is that of whoever holds it.
                    own, self.environment[MARK] = self.environment[MARK], PROJECT
                    self._guarded(self._with_network)
                    self._clear_up()
                    leftovers.end_processes(PROJECT)
                    self.environment[MARK] = own
            else:
                self._guarded(self._without_network)
        except RefusedError as error:
            self.problem = str(error)
        except KeyboardInterrupt as error:
            self.problem = f"interrupted by {error or 'SIGINT'}"
        leftovers.end_processes(self.environment[MARK])
        return self._report()

    def _guarded(self, part: Callable[[], None]) -> None:
        """Run a part; what ends it early stops its jobs, and keeps nothing from being cleared up."""
        try:
            part()
        except KeyboardInterrupt as error:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda _number, _frame: None)
            self.problem = f"interrupted by {error or 'SIGINT'}"
            say(f"{self.problem}; clearing up")
            self.work.stop()
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            say(f"{traceback.format_exc()}clearing up")
            self.work.stop()

    def _with_network(self) -> None:
        if not self.keep:
            removed = Counter(one.partition(" ")[0] for one in leftovers.remove(self.environment))
            if removed:
                counted = ", ".join(f"{kind} x{count}" for kind, count in removed.items())
                say(f"removed what an earlier run left: {counted}")
        first, later = self._units()
        self.work.side_by_side(self._network_and_shared(), self._checks(), *first)
        is_up = not self.work.troubles and not any(
            ended.failed and ended.job.needed for ended in self.work.ended
        )
        alone = self._on_network(plan.ALONE) if plan.ALONE in self.e2e and is_up else ()
        self.work.side_by_side(alone, self._fuzz(), *later)

    def _network_and_shared(self) -> Iterator[Job]:
        """Begin with the tests that go side by side as soon as the network is up: they often wait."""
        yield from plan.network(fresh=not self.keep)
        if not self.selection.chosen:
            yield plan.data()
        if plan.SHARED in self.e2e:
            yield from self._on_network(plan.SHARED)

    def _on_network(self, name: str) -> Iterator[Job]:
        self.groups.append(name)
        yield plan.e2e(name, self.selection, self.logs)
        if any(ended.failed and ended.job.name == name for ended in self.work.ended):
            # At once, because a later test may remove a container and its log.
            self.evidence.collect_containers(f"containers-after-{name.replace(' ', '-')}")

    def _without_network(self) -> None:
        first, later = self._units()
        self.work.side_by_side(self._checks(), *first, *later, self._fuzz())

    def _checks(self) -> list[Job]:
        if self.selection.chosen:
            return []
        return [*plan.checks(), *([plan.mutants()] if os.environ.get("CI") else [])]

    def _units(self) -> tuple[list[list[Job]], list[list[Job]]]:
        """Return the lanes of unit tests: those that begin at once, and those beside the tests that go alone.

        Tests that go alone mostly wait, while those that go side by side leave no processor idle.
        """
        units = plan.units(self.selection, self.logs, live=not self.e2e) if self.selection.unit else []
        self.groups += [job.name for job in units]
        lanes = [[job] for job in units]
        at_once = len(lanes) if self.selection.chosen else len(lanes) - 1
        return lanes[:at_once], lanes[at_once:]

    def _fuzz(self) -> list[Job]:
        """Search for hostile inputs while tests go one by one: it needs no network, only the time."""
        return [] if self.selection.chosen else [plan.fuzz()]

    def _clear_up(self) -> None:
        if self.problem or (self.failed and not self.evidence.exists):
            self.evidence.collect_containers("containers-at-the-end")
        if self.failed:
            self.evidence.collect_doctor()
        if not self.keep:
            self.work.run(plan.down(), in_any_case=True)
            leftovers.remove(self.environment)

    def _report(self) -> int:
        groups = []
        for name in self.groups:
            log = self.logs / f"{name.replace(' ', '-')}.log"
            groups.append(results.read(name, plan.results_file(name, self.logs), log))
        if not self.failed and (cut_off := [group.name for group in groups if not group.is_whole]):
            self.problem = f"{', '.join(cut_off)} ended without all of its tests"
        lines = results.summary(groups)
        lines += [f"failed: {trouble}" for trouble in self.work.troubles]
        lines += [f"failed: {ended.job.name}: {ended.last_line}" for ended in self.work.ended if ended.failed]
        if self.problem:
            lines.append(f"scripts/test: {self.problem}")
        if self.selection.chosen and not self.failed and not any(group.tests for group in groups):
            self.problem = "no test is selected"
            lines.append(f"scripts/test: {self.problem}")
        total = results.total(groups)
        if self.failed:
            self.evidence.collect_files(self.logs, "logs")
            self.evidence.collect_machine(self.arguments)
            lines.append(f"The same order of sets again: {HASH_SEED}={self.environment[HASH_SEED]}")
            self.evidence.add("summary.txt", "\n".join([*lines, total, ""]))
            self.evidence.remove_old()
            lines.append(f"What there is to look at: {self.evidence.folder.relative_to(ROOT)}")
        say("\n".join([*lines, total]))
        if self.problem.startswith("interrupted"):
            return 130
        return 1 if self.failed else 0
