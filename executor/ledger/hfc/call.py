"""One call of hfc in a process of its own: start the worker, hand it the request, read its lines, end it."""

import base64
import binascii
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Timer
from typing import Any, NoReturn, Self

from executor.errors import LedgerError
from executor.ledger.errors import PhaseError, raise_failure
from executor.ledger.gateway.errors import PeerDetail, Phase, refusal_in
from executor.ledger.hfc.environment import hfc_python

WORKER = Path(__file__).with_name("worker.py")
GRACE_SECONDS = 20.0
"""For Python to start, load hfc and end: the worker keeps the deadline of the call by itself."""
# gRPC would obey proxy variables even on this host, and hfc has no business with the rest.
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "GRPC_VERBOSITY": "ERROR"}
_LINES = {"sent": str, "block": str, "answer": dict, "error": dict}
_ERROR = {"kind": str, "cause": str, "tx_id": str, "details": list, "validation": str, "block": int}
_PHASES: dict[str, tuple[Phase, str]] = {
    "evaluate": ("evaluate", "EVALUATE_FAILED"),
    "submit": ("endorse", "ENDORSE_FAILED"),
    "follow": ("events", "EVENTS_FAILED"),
}
_CONFLICTS = ("MVCC_READ_CONFLICT", "PHANTOM_READ_CONFLICT")


class Worker:
    """A running call; use it as a context manager, which leaves no process behind."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._verb = str(request["verb"])
        self.sent = ""
        """The transaction that may be on the ledger whatever becomes of the process."""
        python = hfc_python()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [python, "-I", "-B", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_ENVIRONMENT,
        )
        self._timer = Timer(float(request["seconds"]) + GRACE_SECONDS, self._process.kill)
        self._timer.daemon = True
        self._timer.start()
        self._hand_over(json.dumps(request).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Leave no process and no open file behind."""
        self.kill()
        self._timer.cancel()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def kill(self) -> None:
        """End the call at once; a thread that reads from it is released."""
        self._process.kill()

    def answer(self) -> dict[str, Any]:
        """Return the answer of a call that has one."""
        for name, value in self.lines():
            if name == "answer":
                return dict(value)
        return self._died("it ended without an answer")

    def lines(self) -> Iterator[tuple[str, Any]]:
        """Yield what the worker says, line by line, up to its answer; its error is raised."""
        assert self._process.stdout is not None  # noqa: S101 - for the type checker
        for line in self._process.stdout:
            name, value = self._parsed(line)
            if name == "error":
                self._failed(value)
            if name == "sent":
                self.sent = value
            yield name, value
            if name == "answer":
                return
        self._died("it ended without an answer")

    def _hand_over(self, raw: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        try:
            self._process.stdin.write(raw)
            self._process.stdin.close()
        except BrokenPipeError:
            # It died before it had read the request; why will be on its standard error.
            pass

    def _parsed(self, line: bytes) -> tuple[str, Any]:
        try:
            ((name, value),) = json.loads(line).items()
            if not isinstance(value, _LINES[name]):
                raise TypeError(f"{name} is of type {type(value).__name__}")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._died(f"it wrote a line that is no answer ({error!r})")
        return name, value

    def _failed(self, record: dict[str, Any]) -> NoReturn:
        """Raise what the worker reports, in the class of its phase or of the refusal."""
        if record.keys() != _ERROR.keys() or any(type(record[name]) is not _ERROR[name] for name in _ERROR):
            self._died("it wrote an error of another form")
        try:
            details = [PeerDetail(**said) for said in record["details"]]
        except TypeError:
            self._died("it wrote an error of another form")
        refusal = refusal_in(detail.message for detail in details)
        is_answer = record["kind"] in ("refused", "failed")
        raise_failure(self._phase_error(record, details), refusal if is_answer else None)

    def _phase_error(self, record: dict[str, Any], details: list[PeerDetail]) -> PhaseError:
        kind, cause, tx_id = record["kind"], record["cause"], record["tx_id"]
        phase, code = _PHASES[self._verb]
        if kind == "invalid":
            code = "LEDGER_CONFLICT" if record["validation"] in _CONFLICTS else "TRANSACTION_INVALID"
            cause = f"transaction {tx_id[:16]} is invalid in block {record['block']}: {record['validation']}"
            return PhaseError(code, cause, "commit", tx_id)
        if kind == "disagree":
            phase = "commit status" if self.sent else phase
            said = "; ".join(f"{detail.msp}: {detail.message[:120]}" for detail in details)
            return PhaseError("PEERS_DISAGREE", f"{cause} ({said})", phase, tx_id, details)
        if kind == "unknown" or (self.sent and kind in ("timeout", "stream")):
            cause = f"transaction {self.sent[:16]}: {cause}"
            return PhaseError("COMMIT_UNKNOWN", cause, "commit status", self.sent, details)
        if kind == "rejected":
            code = "TRANSACTION_TOO_LARGE" if "exceeds maximum" in cause else "SUBMIT_FAILED"
            return PhaseError(code, f"the orderer rejected it: {cause}", "submit", tx_id, details)
        if kind == "no-orderer":
            return PhaseError("LEDGER_UNREACHABLE", cause, "submit", tx_id, details)
        code = {"timeout": "LEDGER_TIMEOUT", "unreachable": "LEDGER_UNREACHABLE"}.get(kind, code)
        said = "; ".join(str(detail) for detail in details)
        return PhaseError(code, f"{cause} ({said})" if said else cause, phase, tx_id, details)

    def _died(self, how: str) -> NoReturn:
        """Say how the worker failed; a transaction that it had sent may be on the ledger all the same."""
        self.kill()
        self._process.wait()
        self._errors.seek(0)
        tail = b" | ".join(self._errors.read().strip().splitlines()[-3:]).decode(errors="replace")
        cause = (
            f"the process of hfc failed: {how}, exit code {self._process.returncode}: {tail or 'no message'}"
        )
        if self.sent:
            raise PhaseError("COMMIT_UNKNOWN", cause, "commit status", self.sent)
        raise LedgerError("HFC_FAILED", cause)


def encoded(raw: bytes) -> str:
    """Write bytes as the worker reads them."""
    return base64.b64encode(raw).decode()


def decoded(text: object) -> bytes:
    """Read bytes as the worker writes them."""
    try:
        if not isinstance(text, str):
            raise ValueError(f"{type(text).__name__} instead of text")
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise LedgerError(
            "HFC_FAILED", f"the process of hfc wrote bytes that cannot be read: {error}", case="bytes"
        ) from error
