"""What can go wrong for an executor besides what the ledger refuses; exits.py has the exit code of each.

    AttestreeError
    ├── UsageError            the command cannot mean anything here
    │   └── OptionError       an option is outside its range (a ParameterError, too)
    ├── DeadlineError         what was waited for did not happen in time
    ├── IntegrityError        the image is not the one on the ledger (a StateError: the ledger's word decides)
    ├── TaskError            the task came to nothing
    ├── EngineError           the Docker engine cannot be reached, or failed
    ├── SandboxError          the container would not be, or was not, what the profile says
    ├── DatasetError          the private data cannot be used (a SourceError)
    └── LedgerError           the ledger failed, by phase (executor/ledger/errors.py)

Each is raised with a stable code and the cause in this case; codes.py has the remedies.
"""

from collections.abc import Mapping

from executor import codes
from experiments.errors import SourceError
from learning.errors import ParameterError
from protocol.errors import AttestreeError, StateError, define


class UsageError(AttestreeError):
    """Options that contradict each other, or name what is not there."""


class OptionError(UsageError, ParameterError):
    """A parameter that was given as an option and is outside its range."""


class DeadlineError(AttestreeError):
    """What was waited for did not happen in time."""


class IntegrityError(StateError):
    """The image at hand is not the image on the ledger; it is not run.

    `evidence` says what was expected and what was found, for the refusal that goes on the ledger.
    """

    evidence: dict[str, str]

    def __init__(
        self, code: str, cause: str, evidence: Mapping[str, str] | None = None, *, case: str = ""
    ) -> None:
        super().__init__(code, cause, case=case)
        self.evidence = dict(evidence or {})


class TaskError(AttestreeError):
    """A task, or what a command had to do, that was begun and came to nothing."""


class EngineError(AttestreeError):
    """The Docker engine cannot be reached, or did not do what was asked."""


class SandboxError(AttestreeError):
    """The engine would not give the container the profile that the task commits to."""


class DatasetError(SourceError):
    """Private data that cannot be used."""


class LedgerError(AttestreeError):
    """The ledger did not do its part; what chaincode refuses is raised in the refusal's own class instead."""


def host_failed(error: OSError) -> TaskError:
    """Say that this host, and not the learner, the engine or the ledger, kept something from being done."""
    place = f"{error.filename}: " if error.filename else ""
    return TaskError("HOST_FAILED", f"{place}{error.strerror or type(error).__name__}")


define(UsageError, codes.USAGE)
define(OptionError, codes.OPTION)
define(DeadlineError, codes.DEADLINE)
define(StateError, codes.STATE)
define(IntegrityError, codes.INTEGRITY)
define(TaskError, codes.ROUND)
define(EngineError, codes.ENGINE)
define(SandboxError, codes.SANDBOX)
define(DatasetError, codes.DATASET)
define(LedgerError, codes.LEDGER)
