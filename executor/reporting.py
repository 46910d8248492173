"""How a command ends when something is refused or fails: one message, one exit code, never a traceback."""

import functools
import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from executor.errors import LedgerError
from executor.exits import exit_code
from executor.ledger.errors import PhaseError
from executor.network import NetworkError
from protocol.errors import AttestreeError

UP = "Start the network with network/up.sh, then check with `executor doctor`."

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what a command raises into a message with its cause and remedy, and the exit code of its cause."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (AttestreeError, NetworkError) as error:
            end_with(error, bool(kwargs.get("as_json")))

    return wrapped


def end_with(error: AttestreeError | NetworkError, as_json: bool) -> NoReturn:
    """Report an error and leave with its exit code."""
    named = error if isinstance(error, AttestreeError) else LedgerError("NETWORK_MISSING", str(error), UP)
    if as_json:
        click.echo(json.dumps({"error": to_dict(named)}))
    else:
        click.echo(message(named), err=True)
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
