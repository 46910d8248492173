"""How a command ends when something is refused or fails: one message, one exit code, never a traceback.

There is one number per cause, the same for every command (docs/exit-codes.md).
"""

import functools
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from executor import errors
from executor.ledger.errors import PhaseError
from executor.network import NetworkError
from executor.output import echo
from experiments.errors import ReproductionError, SourceError
from protocol.errors import AccessError, AttestreeError, DataError, SignatureError, StateError

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

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

GRAVITY = (
    IMAGE_INTEGRITY,
    SIGNATURE,
    INVALID_PAYLOAD,
    NOT_AUTHORISED,
    SANDBOX_REFUSED,
    WRONG_STATE,
    DATA_UNUSABLE,
    ENGINE_UNREACHABLE,
    LEDGER_UNREACHABLE,
    CONFLICT,
    USAGE,
    TIME_OUT,
    FAILED,
)
"""Of several failures the gravest decides: that something lies, before that it may not or cannot be done."""

# The code decides before the class: an image that is not the ledger's is that, whoever found it, and a peer
# that lies is no peer that is down.
# A transition that the life cycle does not have is the wrong state, though its class is that of data.
_BY_CODE = {
    "IMAGE_MISMATCH": IMAGE_INTEGRITY,
    "LEDGER_CONFLICT": CONFLICT,
    "PEERS_DISAGREE": IMAGE_INTEGRITY,
    "TRANSACTION_ALTERED": IMAGE_INTEGRITY,
    "LIFECYCLE_TRANSITION": WRONG_STATE,
}

# The first class that fits.
_BY_CLASS: tuple[tuple[type[AttestreeError], int], ...] = (
    (errors.UsageError, USAGE),
    (errors.DeadlineError, TIME_OUT),
    (errors.IntegrityError, IMAGE_INTEGRITY),
    (errors.TaskError, FAILED),
    (errors.EngineError, ENGINE_UNREACHABLE),
    (errors.SandboxError, SANDBOX_REFUSED),
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
    return exit_code_of(error.code, type(error))


def exit_code_of(code: str, error: type[AttestreeError]) -> int:
    """Return the exit code of what is refused with a code in a class."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    return next((number for kind, number in _BY_CLASS if issubclass(error, kind)), FAILED)


def gravest(errors: Sequence[AttestreeError]) -> AttestreeError:
    """Return the error that decides how a command with several failures ends; the first of equals."""
    return min(errors, key=lambda error: GRAVITY.index(exit_code(error)))


def reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what a command raises into a message with its cause and remedy, and the exit code of its cause."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (AttestreeError, NetworkError) as error:
            end_with(error, bool(kwargs.get("as_json")))
        except BrokenPipeError:
            raise  # whoever read the output has gone
        except OSError as error:
            end_with(errors.host_failed(error), bool(kwargs.get("as_json")))

    return wrapped


def end_with(error: AttestreeError | NetworkError, as_json: bool) -> NoReturn:
    """Report an error and leave with its exit code."""
    named = error if isinstance(error, AttestreeError) else errors.LedgerError("NETWORK_MISSING", str(error))
    if as_json:
        click.echo(json.dumps({"error": to_dict(named)}))
    else:
        echo(message(named), err=True)
    sys.exit(exit_code(named))


def message(error: AttestreeError) -> str:
    """Say what, why and what to do, and for a failure of the ledger which transaction and who said what."""
    lines = [f"error: {error.code}: {error.cause}", f"remedy: {error.remedy}"]
    phase = _phase(error)
    if phase is not None and phase.tx_id and phase.phase != "evaluate":
        lines.append(f"transaction: {phase.tx_id}")
    if phase is error and phase is not None:
        lines += [f"  {detail}" for detail in phase.details]
    return "\n".join(lines)


def to_dict(error: AttestreeError) -> dict[str, Any]:
    """Return the error as `--json` prints it; `transaction` and `peers` only for what the ledger said."""
    found: dict[str, Any] = {
        "code": error.code,
        "cause": error.cause,
        "remedy": error.remedy,
        "exit_code": exit_code(error),
    }
    phase = _phase(error)
    if phase is not None:
        found["transaction"] = phase.tx_id
        found["peers"] = [
            {"address": detail.address, "msp": detail.msp, "message": detail.message}
            for detail in phase.details
        ]
    return found


def _phase(error: AttestreeError) -> PhaseError | None:
    """The failed phase, which is the cause of a refusal by chaincode."""
    return next((found for found in (error, error.__cause__) if isinstance(found, PhaseError)), None)
