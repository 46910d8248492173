"""How often each test failed, kept in a file of JSON lines and shown as a table."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .results import Test

WITHOUT, WITH = "without load", "with load"


@dataclass(frozen=True)
class Turn:
    """One target, run once."""

    target: str
    number: int
    seed: int
    loaded: bool
    busy: bool = False
    """Whether its load is a second pass, on another network."""

    @property
    def paths(self) -> list[str]:
        """What pytest is given."""
        return self.target.split(" ") if self.busy else [self.target]

    @property
    def command(self) -> str:
        """The command that repeats it."""
        kind = "--busy" if self.busy else "--load" if self.loaded else "--no-load"
        return f"scripts/flaky 1 {kind} --seed {self.seed} {self.target}"


@dataclass
class Rate:
    """One test's failures and runs, without and with load."""

    runs: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    failures: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    repeat: str = ""
    """The command of a run in which it failed."""


class Rates:
    """What every turn brought, so far and from an earlier start that wrote to the same file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rates: dict[str, Rate] = {}
        self._turns: set[tuple[str, int, bool]] = set()
        file.parent.mkdir(parents=True, exist_ok=True)
        self.join(file)

    def join(self, file: Path) -> None:
        """Count what a file has, if it is there; what it says of turns that are known already is left out."""
        known = set(self._turns)
        for line in file.read_text().splitlines() if file.exists() else ():
            told = json.loads(line)
            if (told["target"], told["seed"], told["load"]) not in known:
                self._count(told)

    def has(self, turn: Turn) -> bool:
        """Whether a turn was run to its end already."""
        return (turn.target, turn.seed, turn.loaded) in self._turns

    def add(self, turn: Turn, tests: Iterable[Test], code: int) -> None:
        """Keep the results of a turn; pytest that ended badly without a failed test is a failure itself."""
        listed = list(tests)
        if code not in (0, 5) and not any(test.failed for test in listed):
            listed.append(Test(turn.target, "failed"))
        told = {"target": turn.target, "seed": turn.seed, "load": turn.loaded, "repeat": turn.command}
        lines: list[dict[str, object]] = [
            {**told, "test": test.id, "outcome": test.outcome, "seconds": round(test.seconds, 3)}
            for test in listed
        ]
        lines.append({**told, "ended": code})
        with self.file.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        for line in lines:
            self._count(line)

    def _count(self, line: dict[str, object]) -> None:
        loaded = bool(line["load"])
        if "ended" in line:
            self._turns.add((str(line["target"]), int(str(line["seed"])), loaded))
            return
        rate = self.rates.setdefault(str(line["test"]), Rate())
        rate.runs[loaded] += 1
        if line["outcome"] in ("failed", "unfinished"):
            rate.failures[loaded] += 1
            rate.repeat = str(line["repeat"])

    def failures(self) -> dict[str, Rate]:
        """Return the tests that failed at least once, the most frequent failures first."""
        found = {test: rate for test, rate in self.rates.items() if any(rate.failures.values())}
        return dict(sorted(found.items(), key=lambda one: -sum(one[1].failures.values())))

    def _runs(self) -> list[str]:
        lines = [f"| target | turns {WITHOUT} | turns {WITH} |", "|---|---|---|"]
        for target in dict.fromkeys(target for target, _, _ in sorted(self._turns)):
            counts = [
                sum(turn[0] == target and turn[2] is loaded for turn in self._turns)
                for loaded in (False, True)
            ]
            lines.append(f"| `{target}` | {counts[0]} | {counts[1]} |")
        return lines

    def table(self) -> list[str]:
        """Return what was run and what failed as tables in Markdown."""
        failed = self.failures()
        lines = [*self._runs(), ""]
        lines += [f"{len(self.rates)} tests in {len(self._turns)} turns; {len(failed)} failed at least once."]
        if not failed:
            return lines
        lines += ["", f"| test | {WITHOUT} | {WITH} | repeat a failing run |", "|---|---|---|---|"]
        for test, rate in failed.items():
            shown = " | ".join(f"{rate.failures[loaded]}/{rate.runs[loaded]}" for loaded in (False, True))
            lines.append(f"| `{test}` | {shown} | `{rate.repeat}` |")
        return lines
