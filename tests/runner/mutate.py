"""The command line of scripts/mutate: which small changes of the rules does no test notice?"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import score
from .mutants import GUARDED_BY, Mutated, copy_into, function_of, guards, in_scope, make, reach_of, sample
from .run import say
from .surroundings import ROOT
from .warm import AT_IMPORT, KILLED, Result

ARGUED = ROOT / "tests" / "runner" / "argued.toml"
USAGE = """usage: scripts/mutate [OPTION]... [PATH]...

  PATH             files or folders of protocol/, the four contracts, executor/launch/ and audit/ [all]
  --sample N       N mutants at random, from each file in proportion to how many it has [all]
  --seed S         which ones: the same word, the same mutants [attestree]
  --changed BASE   only files that differ from a commit [the parent of the newest]
  --jobs N         so many at a time [one for each processor]
  --report FILE    the table by package as Markdown, with the seed and the commit
  --json           the result as JSON

Changes the code in one small place, runs the tests that reach it, and goes on to the next place. A change
that no test notices is printed: a test is missing, or the change means nothing, and then
tests/runner/argued.toml says why. Exit code 1 if fewer than nine of ten are noticed, the argued left out,
2 for a wrong argument or if the tests fail without any change.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The counts by package, and the mutants that no test noticed, each with its change."""

    rows: list[score.Row]
    unnoticed: list[tuple[Result, str]]

    @property
    def all(self) -> score.Row:
        """The counts of everything."""
        return self.rows[-1]

    def lines(self) -> list[str]:
        """Return what is printed."""
        found = [
            f"{function_of(result.mutant)}: {result.status} ({result.mutant})\n{change}\n"
            for result, change in self.unnoticed
        ]
        low, high = self.all.interval
        counts = (
            f"{self.all.noticed} noticed, {self.all.unnoticed} not, {self.all.counts[score.ARGUED]} argued"
        )
        closing = (
            f"mutants: {counts}; score {self.all.score:.3f} ({low:.3f} to {high:.3f}), goal {score.GOAL}"
        )
        return [*found, score.table(self.rows), closing]

    def as_json(self) -> str:
        """Return it for a program."""
        listed = [{"mutant": result.mutant, "change": change} for result, change in self.unnoticed]
        figures = {"score": self.all.score, "interval": self.all.interval, "noticed": self.all.noticed}
        return json.dumps({**figures, "argued": self.all.counts[score.ARGUED], "unnoticed": listed})


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the goal is met, 1 if not, 2 for a wrong argument."""
    asked = _parser().parse_args(arguments)
    if asked.help or asked.h:
        say(USAGE.rstrip())
        return 0
    paths = [str((asked.caller / path).resolve().relative_to(ROOT)) for path in asked.paths]
    files = in_scope(paths)
    if asked.changed is not None:
        changed = _changed(asked.changed)
        files = [name for name in files if name in changed]
    commit = _commit()
    try:
        measured = measure(files, asked.sample, asked.seed, asked.jobs)
    except TestsFailedError as error:
        say(f"mutants: {error}")
        return 2
    say(measured.as_json() if asked.json else "\n".join(measured.lines()))
    if asked.report:
        tried = f"{measured.all.tried} of {measured.all.mutants:,} mutants"
        title = f"seed `{asked.seed}`, commit {commit}, {tried}"
        (asked.caller / asked.report).write_text(f"{title}\n\n{score.table(measured.rows)}\n")
    return 0 if measured.all.score >= score.GOAL else 1


class TestsFailedError(Exception):
    """The tests cannot tell anything about mutants."""


def measure(files: Sequence[str], most: int | None, seed: str, jobs: int) -> Measured:
    """Make the mutants of these files, try a sample of them, and sort them by what became of them."""
    made = make(files)
    file_of = {name: one for one in made for name in one.names}
    chosen = sample(made, len(file_of) if most is None else most, seed)
    results = run(made, chosen, jobs) if chosen else []
    arguments = score.read_arguments(ARGUED)
    outcomes, unnoticed = [], []
    for result in results:
        one, status = file_of[result.mutant], result.status
        if status not in score.NOTICED:
            change = one.change(result.mutant)
            if any(argument.holds(function_of(result.mutant), change) for argument in arguments):
                status = score.ARGUED
            else:
                unnoticed.append((result, change))
        outcomes.append((one.package, status))
    counts = [(name, sum(len(one.names) for one in made if one.package == name)) for name in GUARDED_BY]
    return Measured(score.rows([(name, count) for name, count in counts if count], outcomes), unnoticed)


def run(made: Sequence[Mutated], chosen: Sequence[str], jobs: int) -> list[Result]:
    """Try these mutants in a copy of the repository, and return what became of them.

    The copy is this process's own, so that several runs can go on side by side; it stays if the tests fail.
    """
    copy = ROOT / "build" / f"mutation-{os.getpid()}"
    copy_into(copy, made)
    plan, results, log = (copy / "build" / name for name in ("plan.json", "results.jsonl", "warm.log"))
    plan.parent.mkdir(exist_ok=True)
    tests = guards([one.file for one in made])
    reach, keys = reach_of(made)
    plan.write_text(
        json.dumps({"mutants": chosen, "tests": tests, "jobs": jobs, "reach": str(reach), "keys": keys})
    )
    # Which way sets come is no part of what is tried.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with log.open("wb") as output:
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.runner.warm", plan, results],
            cwd=copy,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=7200,
        )
        if ended.returncode:
            raise TestsFailedError(f"the tests fail without any change: see {log.relative_to(ROOT)}")
    found = [Result(**json.loads(line)) for line in results.read_text().splitlines()]
    found = [cold(copy, result, tests) if result.status == AT_IMPORT else result for result in found]
    shutil.rmtree(copy)
    return found


def cold(copy: Path, result: Result, tests: Sequence[str]) -> Result:
    """Try a mutant of a function that runs when its module is imported: in a process that imports it so."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
        cwd=copy,
        env={**os.environ, "PYTHONHASHSEED": "0", "MUTANT_UNDER_TEST": result.mutant},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=1800,
    )
    return Result(result.mutant, KILLED) if ended.returncode else result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/mutate", usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--caller", type=Path, default=ROOT)
    parser.add_argument("--changed", nargs="?", const="HEAD^")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="attestree")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", type=Path)
    for flag in ("--json", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("paths", nargs="*")
    return parser


def _changed(base: str) -> set[str]:
    listed = _git("diff", "--name-only", "-z", base)
    if listed.returncode:
        say(f"mutants: no commit {base} to compare with")
    return set(listed.stdout.split("\0"))


def _commit() -> str:
    return _git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
