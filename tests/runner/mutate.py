"""The command line of scripts/mutate: which small changes of the rules does no test notice?"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .mutants import Mutant, Mutation, in_scope, sample
from .run import say
from .surroundings import ROOT

GOAL = 0.9
ARGUED = ROOT / "tests" / "runner" / "argued.toml"
USAGE = """usage: scripts/mutate [--changed [BASE]] [--most N] [--json] [PATH]...

  PATH             files or folders of protocol/, the four contracts and executor/launch/ [all of them]
  --changed BASE   only files that differ from a commit [the parent of the newest]
  --most N         at most N mutants, the same ones every time [all; about six a second for each processor]
  --json           the result as JSON

Changes the code in one small place, runs the tests that reach it, and goes on to the next place. A change
that no test notices is printed: a test is missing, or the change means nothing, and then
tests/runner/argued.toml says why. Exit code 1 if fewer than nine of ten are noticed, the argued left out.
"""


@dataclass(frozen=True, slots=True)
class Argument:
    """A kind of change that means nothing to a caller, and why."""

    pattern: re.Pattern[str]
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """What became of the mutants."""

    noticed: int
    argued: int
    unnoticed: list[tuple[Mutant, str]]

    @property
    def share(self) -> float:
        """The noticed ones, of those that nobody argued away; all of none."""
        counted = self.noticed + len(self.unnoticed)
        return self.noticed / counted if counted else 1.0

    def lines(self) -> list[str]:
        """Return the report."""
        found = [f"{mutant.name}: {mutant.status}\n{change}" for mutant, change in self.unnoticed]
        counts = f"{self.noticed} noticed, {len(self.unnoticed)} not, {self.argued} argued"
        return [*found, f"mutants: {counts}; score {self.share:.3f}, goal {GOAL}"]


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the goal is met, 1 if not, 2 for a wrong argument."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--caller", type=Path, default=ROOT)
    parser.add_argument("--changed", nargs="?", const="HEAD^")
    parser.add_argument("--most", type=int)
    for flag in ("--json", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("paths", nargs="*")
    asked = parser.parse_args(arguments)
    if asked.help or asked.h:
        say(USAGE.rstrip())
        return 0
    paths = [str((asked.caller / path).resolve().relative_to(ROOT)) for path in asked.paths]
    files = in_scope(paths)
    if asked.changed is not None:
        files = [name for name in files if name in _changed(asked.changed)]
    score = measure(files, asked.most) if files else Score(0, 0, [])
    if asked.json:
        listed = [{"mutant": mutant.name, "change": change} for mutant, change in score.unnoticed]
        figures = {"score": score.share, "noticed": score.noticed, "argued": score.argued}
        say(json.dumps({**figures, "unnoticed": listed}))
    else:
        say("\n".join(score.lines()))
    return 0 if score.share >= GOAL else 1


def measure(files: Sequence[str], most: int | None) -> Score:
    """Make the mutants of these files, run them, and sort them by what became of them."""
    mutation = Mutation(files, ROOT / "build" / "mutation")
    names = mutation.make()
    ran = mutation.run(names if most is None else sample(names, most))
    arguments = read_arguments(ARGUED)
    unnoticed, argued = [], 0
    for mutant in ran:
        if not mutant.noticed:
            change = mutation.change(mutant)
            if any(argument.pattern.search(change) for argument in arguments):
                argued += 1
            else:
                unnoticed.append((mutant, change))
    return Score(sum(mutant.noticed for mutant in ran), argued, unnoticed)


def read_arguments(file: Path) -> list[Argument]:
    """Read the kinds of changes that mean nothing, each with its reason."""
    found = tomllib.loads(file.read_text())["argued"]
    return [Argument(re.compile(entry["change"], re.MULTILINE), entry["reason"]) for entry in found]


def _changed(base: str) -> set[str]:
    listed = subprocess.run(
        ["git", "diff", "--name-only", "-z", base],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if listed.returncode:
        say(f"mutants: no commit {base} to compare with")
    return set(listed.stdout.split("\0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
