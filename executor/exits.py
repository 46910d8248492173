"""Exit codes: one number per cause, the same for every command (docs/exit-codes.md)."""

from executor import errors
from experiments.errors import ReproductionError, SourceError
from protocol.errors import AccessError, AttestreeError, DataError, SignatureError, StateError

OK = 0
FAILED = 1
USAGE = 2
TIME_OUT = 3
IMAGE_INTEGRITY = 10
SIGNATURE = 11
NOT_AUTHORISED = 12
WRONG_STATE = 13
INVALID_PAYLOAD = 14
LEDGER_UNREACHABLE = 20
CONFLICT = 21
ENGINE_UNREACHABLE = 30
SANDBOX_REFUSED = 31
DATA_UNUSABLE = 40

# The code decides before the class: an image that is not the ledger's is that, whoever found it.
# A transition that the life cycle does not have is the wrong state, though its class is that of data.
_BY_CODE = {
    "IMAGE_MISMATCH": IMAGE_INTEGRITY,
    "LEDGER_CONFLICT": CONFLICT,
    "LIFECYCLE_TRANSITION": WRONG_STATE,
}

# The first class that fits.
_BY_CLASS: tuple[tuple[type[AttestreeError], int], ...] = (
    (errors.UsageError, USAGE),
    (errors.DeadlineError, TIME_OUT),
    (errors.IntegrityError, IMAGE_INTEGRITY),
    (errors.RoundError, FAILED),
    (errors.EngineError, ENGINE_UNREACHABLE),
    (errors.SandboxError, SANDBOX_REFUSED),
    (errors.DatasetError, DATA_UNUSABLE),
    (SourceError, DATA_UNUSABLE),
    (ReproductionError, FAILED),
    (errors.LedgerError, LEDGER_UNREACHABLE),
    (SignatureError, SIGNATURE),
    (AccessError, NOT_AUTHORISED),
    (StateError, WRONG_STATE),
    (DataError, INVALID_PAYLOAD),
)


def exit_code(error: AttestreeError) -> int:
    """Return the exit code of an error that ends a command."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((number for kind, number in _BY_CLASS if isinstance(error, kind)), FAILED)
