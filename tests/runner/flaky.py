"""Find tests that fail now and then: everything again and again, in random order, with and without load."""

import argparse
import contextlib
import datetime
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import leftovers, plan, results, surroundings
from .evidence import Evidence
from .jobs import Ended, Job, Work
from .load import load
from .partner import Partner
from .rates import Rates, Turn
from .run import say
from .selection import E2E, Selection, select
from .shards import files_of, shuffled_shards
from .surroundings import MARK, PROJECT, ROOT, RefusedError

USAGE = """usage: scripts/flaky [N] [--load | --no-load] [OPTION]... [PATH]...

  N               how often, once with load and once without each time [5]
  --load          with all processors busy, only
  --no-load       without, only
  --busy          N times in each of two hunts at once, each of which is the other's load: unit tests in all
                  their processes, end-to-end tests four files at a time on a network for each hunt
  --seed S        the seed of the first run; the following ones have S+1, S+2, ... [random]
  --report FILE   write the table of failures as Markdown too
  --raw FILE      where the results go, one line of JSON each [build/flaky/TIME-SEED.jsonl]; what the file has
                  already, from a start that was interrupted, is not run again
  --keep          leave the test network up at the end, and use one that is up

The unit tests and each file of end-to-end tests, or those of PATH, in random order. Exit code 1 if a test
failed. The logs of failed turns, and of the network's containers, are kept beside the results.
"""


def main(arguments: Sequence[str]) -> int:
    """Return 0 if no test failed, 1 if one did, 2 for a wrong argument, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="scripts/flaky", usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--caller", type=Path, default=ROOT)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--raw", type=Path)
    for flag in ("--load", "--no-load", "--busy", "--one-of-two", "--keep"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("rest", nargs="*")
    asked = parser.parse_intermixed_args(arguments)
    if asked.help:
        say(USAGE.rstrip())
        return 0
    times = int(asked.rest.pop(0)) if asked.rest and asked.rest[0].isdecimal() else 5
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**6)
    try:
        surroundings.check_names()
        selection = select(asked.rest, asked.caller)
    except RefusedError as error:
        print(f"scripts/flaky: {error}", file=sys.stderr)
        return 2
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    raw = asked.caller / asked.raw if asked.raw else ROOT / "build" / "flaky" / f"{now}-{seed}.jsonl"
    report = asked.caller / asked.report if asked.report else None
    say(f"The first seed is {seed}.")
    partner = None
    if asked.busy:
        turns = busy_turns(selection, times, seed)
        paths = [*selection.unit, *selection.e2e]
        partner = None if asked.one_of_two else Partner(times, seed + times, paths, raw)
    else:
        loads = [loaded for loaded in (False, True) if not (asked.no_load if loaded else asked.load)]
        turns = turns_of(selection, times, seed, loads or [False, True])
    surroundings.settle_signals()
    with surroundings.temporary_folder() as temporary:
        return Hunt(turns, Rates(raw), temporary, keep=asked.keep, partner=partner).run(report)


def turns_of(selection: Selection, times: int, seed: int, loads: Sequence[bool]) -> list[Turn]:
    """Return every target, so often with each kind of load; each time all targets come once."""
    return [
        Turn(target, number, seed + number, loaded)
        for number in range(times)
        for loaded in loads
        for target in targets(selection)
    ]


def busy_turns(selection: Selection, times: int, seed: int) -> list[Turn]:
    """Return the passes of one of two hunts that go on at once: all named tests of a kind together."""
    kinds = [" ".join(paths) for paths in (selection.unit, selection.e2e) if paths]
    return [Turn(kind, number, seed + number, True, busy=True) for number in range(times) for kind in kinds]


def targets(selection: Selection) -> list[str]:
    """Return what is run at a time: the unit tests as named, and the end-to-end tests file by file."""
    return [*selection.unit, *files_of(selection.e2e)]


def parts(turn: Turn) -> list[list[str]]:
    """Return what each of the processes of a turn is given, which go side by side.

    One end-to-end file goes by itself, many go as in scripts/test. Unit tests are dealt out by the seed.
    """
    if not turn.target.startswith(E2E):
        return shuffled_shards(turn.paths, turn.seed)
    together = [*plan.SIDE_BY_SIDE, "-m", plan.MARKS[plan.SHARED]] if turn.busy else []
    return [[*turn.paths, *together]]


class Hunt:
    """All turns, on one network."""

    def __init__(
        self,
        turns: Sequence[Turn],
        rates: Rates,
        temporary: Path,
        *,
        keep: bool = False,
        partner: Partner | None = None,
    ) -> None:
        self.partner = partner or contextlib.nullcontext()
        self.turns = [turn for turn in turns if not rates.has(turn)]
        self.rates, self.keep = rates, keep
        self.environment = surroundings.environment(temporary)
        self.logs = temporary / "logs"
        self.logs.mkdir()
        self.work = Work(self.environment, self.logs, say)
        self.problem = ""
        self._sound = True

    def run(self, report: Path | None) -> int:
        """Run every turn, print the table, and return the exit code."""
        interrupted = False
        try:
            with self.partner, self._network():
                for turn in self.turns:
                    self._take(turn)
        except KeyboardInterrupt:
            interrupted = True
        except RefusedError as error:
            self.problem = str(error)
        self.work.stop()
        leftovers.end_processes(self.environment[MARK])
        if isinstance(self.partner, Partner):
            self.rates.join(self.partner.raw)
            self.problem = self.problem or self.partner.problem
        say("\n".join(self.rates.table()))
        say(f"The results, for --raw: {self.rates.file}")
        if report is not None:
            report.write_text("\n".join(self.rates.table()) + "\n")
        if self.problem:
            say(f"scripts/flaky: {self.problem}")
        return 130 if interrupted else 1 if self.rates.failures() or self.problem else 0

    @contextlib.contextmanager
    def _network(self) -> Iterator[None]:
        """Bring up the network once, if any turn needs it, and remove it at the end."""
        if not any(turn.target.startswith(E2E) for turn in self.turns):
            yield
            return
        with surroundings.one_at_a_time():
            own, self.environment[MARK] = self.environment[MARK], PROJECT
            if not self.keep:
                leftovers.remove(self.environment)
            try:
                if not self.work.lane(plan.network(fresh=not self.keep)):
                    raise RefusedError("the test network did not start")
                yield
            finally:
                self.work.stop()
                if not self.keep:
                    self.work.run(plan.down(), in_any_case=True)
                    leftovers.remove(self.environment)
                leftovers.end_processes(PROJECT)
                self.environment[MARK] = own

    def _take(self, turn: Turn) -> None:
        say(f"{turn.command}    # run {turn.number + 1}")
        jobs = [self._job(turn, number, given) for number, given in enumerate(parts(turn))]
        before = len(self.work.ended)
        with load() if turn.loaded and not turn.busy else contextlib.nullcontext():
            self.work.side_by_side(*([job] for job in jobs))
        ended = self.work.ended[before:]
        if len(ended) < len(jobs):
            raise KeyboardInterrupt
        # After a failure the next turn looks after the network before it begins.
        failed = [one for one in ended if one.failed]
        self._sound = not failed
        self.keep_logs(turn, failed)
        tests = [
            test
            for job in jobs
            for test in results.read(turn.target, Path(job.environment["ATTESTREE_RESULTS"])).tests.values()
        ]
        self.rates.add(turn, tests, failed[0].code if failed else 0)

    def keep_logs(self, turn: Turn, failed: Sequence[Ended]) -> None:
        """Keep the logs of what failed and, where it had the network, of every container."""
        kept = self.rates.file.with_suffix("")
        for one in failed:
            kept.mkdir(exist_ok=True)
            shutil.copy(one.log, kept)
        if failed and turn.target.startswith(E2E):
            Evidence(self.environment, kept).collect_containers(f"containers-{turn.seed}")

    def _job(self, turn: Turn, number: int, given: list[str]) -> Job:
        """Return one process of a turn."""
        load_or_not = "with" if turn.loaded else "without"
        file = self.logs / f"results-{number}.jsonl"
        file.unlink(missing_ok=True)
        command = [
            f"{plan.BIN}/pytest", *given, f"--basetemp={self.logs.parent / f't{number}'}",
            "-p", "randomly", f"--randomly-seed={turn.seed}", "--randomly-dont-reset-seed",
            f"--hypothesis-seed={turn.seed}",
        ]  # fmt: skip
        variables = {
            "ATTESTREE_RESULTS": str(file),
            "ATTESTREE_HYPOTHESIS": "searching",
            surroundings.HASH_SEED: str(turn.seed),
        }
        if self._sound:
            variables["ATTESTREE_NETWORK_IS_UP"] = "yes"
        name = f"{turn.paths[0]} {turn.seed} {load_or_not} load, process {number + 1}"
        return Job(name, command, 3600, allowed=(0, 5), environment=variables)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
