"""Why a task cannot be run again from a file, and how a replay ends that gave something else."""

from executor import codes
from executor.audit.errors import AuditError
from protocol.errors import DataError, define


class EvidenceError(DataError):
    """A file that does not hold, or does not open, the inputs of a task."""


class ReplayError(AuditError):
    """A task that gave something else than the ledger has."""


define(EvidenceError, codes.EVIDENCE)
define(ReplayError, codes.REPLAY)
