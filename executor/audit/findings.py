"""What an audit finds: claims that hold, places where they do not, and what nobody can prove."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from protocol.errors import AttestreeError

MAX_FAILURES = 200
"""How many failures are kept in full; all are counted."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One place where a claim does not hold."""

    claim: str
    what: str
    where: str

    def to_dict(self) -> dict[str, str]:
        """Return the object."""
        return {"claim": self.claim, "what": self.what, "where": self.where}


@dataclass(frozen=True, slots=True)
class Claim:
    """What was checked, how often, and how often it did not hold."""

    name: str
    sentence: str
    checked: int
    failed: int

    @property
    def holds(self) -> bool:
        """Whether it held everywhere."""
        return self.failed == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {
            "claim": self.name,
            "sentence": self.sentence,
            "holds": self.holds,
            "checked": self.checked,
            "failed": self.failed,
        }


@dataclass
class Findings:
    """Claims, by name, as they are checked."""

    sentences: dict[str, str]
    checked: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def check(self, claim: str, holds: bool, what: str, where: str) -> bool:
        """Count one check of a claim; say what is wrong, and where, if it does not hold."""
        self.count(claim)
        if not holds:
            self.fail(claim, what, where)
        return holds

    def allows(self, claim: str, rule: Callable[[], object], what: str, where: str) -> bool:
        """Count one check by a rule that raises where the claim does not hold, and says why."""
        try:
            rule()
        except AttestreeError as error:
            return self.check(claim, False, f"{what}: {error.cause}", where)
        return self.check(claim, True, what, where)

    def enter(self, key: object) -> None:
        """Hear whose record is judged from now on."""

    def count(self, claim: str, times: int = 1) -> None:
        """Count checks of a claim that held."""
        self.checked[claim] += times

    def fail(self, claim: str, what: str, where: str) -> None:
        """Note that a claim does not hold somewhere."""
        if claim not in self.sentences:
            raise KeyError(claim)
        self.failed[claim] += 1
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(Failure(claim, what, where))

    @property
    def claims(self) -> list[Claim]:
        """Every claim that was checked, in the order of the sentences."""
        return [
            Claim(name, sentence, self.checked[name], self.failed[name])
            for name, sentence in self.sentences.items()
            if self.checked[name] or self.failed[name]
        ]

    @property
    def verified(self) -> bool:
        """Whether all claims hold, and there were some."""
        return bool(self.checked) and not self.failed
