"""What a service does about a node that failed: try again later, or wait until the ledger changes."""

import random
from dataclasses import dataclass, field

from executor.errors import IntegrityError
from protocol.errors import AttestreeError

FIRST, LONGEST = 5.0, 900.0
"""Seconds from a first failure to the next try, and from any failure at most."""
LASTING = frozenset(
    {
        "ENSEMBLE_EMPTY",
        "IMAGE_CONSENT",
        "IMAGE_MISMATCH",
        "LEARNER_NO_RESULT",
        "NODE_INACTIVE",
        "OUTPUT_MISMATCH",
        "PROCESS_NOT_RUNNING",
        "RESULT_KIND",
        "SIGNATURE_INVALID",
        "STEP_UNOPENED",
        "TREES_GONE",
    }
)
"""What the same task meets again however often it is tried: the image, or what was agreed on, must change."""


def is_lasting(error: AttestreeError) -> bool:
    """Whether a failure stays what it is until the ledger says something else of the task.

    Each try of these would write a refusal or a failure to the ledger, for all organisations to keep.
    """
    return isinstance(error, IntegrityError) or error.code in LASTING


@dataclass
class Backoff:
    """How long to wait after each failure: twice as long as before, within bounds, and never quite as long.

    Half of each wait is chance, so that nodes that failed together do not come back together.
    """

    failures: int = 0
    chance: random.Random = field(default_factory=random.SystemRandom)

    def failed(self) -> float:
        """Count one more failure; returns for how many seconds to leave it alone."""
        longest = min(LONGEST, FIRST * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return longest * (0.5 + 0.5 * self.chance.random())

    def succeeded(self) -> None:
        """Begin anew."""
        self.failures = 0
