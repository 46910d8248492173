"""The command line of scripts/test."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import surroundings
from .run import Run, say
from .selection import select

USAGE = """usage: scripts/test [--unit] [--keep] [PATH | PATH::TEST | PYTEST OPTION]...

  --unit    stop before Docker: linters, types and unit tests
  --keep    use the test network that is up, and leave it up: for one test again and again

Without a selection: set-up, linters, types, unit tests, a fresh network of its own, end-to-end tests on it.
With a path, or with -k WORD, those tests alone, without linters; unit tests need no Docker. Every group runs,
also after a failure; the end names each failed test with the command that runs it alone. See docs/testing.md.
"""


def main(arguments: Sequence[str]) -> int:
    """Return 0 if everything passed, 1 if not, 2 for a wrong argument, 130 if interrupted."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--caller", type=Path, default=surroundings.ROOT)
    for flag in ("--unit", "--keep", "--help"):
        parser.add_argument(flag, action="store_true")
    asked, rest = parser.parse_known_args(arguments)
    if asked.help or "-h" in rest:
        say(USAGE.rstrip())
        return 0
    try:
        surroundings.check_names()
        selection = select(rest, asked.caller)
    except surroundings.RefusedError as error:
        print(f"scripts/test: {error}", file=sys.stderr)
        return 2
    if asked.unit:
        selection.e2e = []
    surroundings.settle_signals()
    with surroundings.temporary_folder() as temporary:
        return Run(selection, temporary, rest, keep=asked.keep).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
