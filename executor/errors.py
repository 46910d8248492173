"""What can go wrong for an executor besides what the ledger refuses; exits.py has the exit code of each.

    AttestreeError
    ├── UsageError            the command cannot mean anything here
    ├── DeadlineError         what was waited for did not happen in time
    ├── IntegrityError        the image is not the one on the ledger (a StateError: the ledger's word decides)
    ├── RoundError            the round came to nothing
    ├── EngineError           the Docker engine cannot be reached, or failed
    ├── SandboxError          the container would not be, or was not, what the profile says
    ├── DatasetError          the private data cannot be used
    └── LedgerError           the ledger failed, by phase (executor/ledger/errors.py)

Each is raised with a stable code, the cause in this case and a remedy.
"""

from collections.abc import Mapping

from protocol.errors import AttestreeError, StateError


class UsageError(AttestreeError):
    """Options that contradict each other, or name what is not there."""


class DeadlineError(AttestreeError):
    """What was waited for did not happen in time."""


class IntegrityError(StateError):
    """The image at hand is not the image on the ledger; it is not run.

    `evidence` says what was expected and what was found, for the refusal that goes on the ledger.
    """

    evidence: dict[str, str]

    def __init__(
        self, code: str, cause: str, remedy: str | None = None, evidence: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code, cause, remedy)
        self.evidence = dict(evidence or {})


class RoundError(AttestreeError):
    """A round that was begun and came to nothing."""


class EngineError(AttestreeError):
    """The Docker engine cannot be reached, or did not do what was asked."""


class SandboxError(AttestreeError):
    """The engine would not give the container the profile that the task commits to."""


class DatasetError(AttestreeError):
    """Private data that cannot be used."""


class LedgerError(AttestreeError):
    """The ledger did not do its part; what chaincode refuses is raised in the refusal's own class instead."""
