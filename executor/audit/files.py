"""The files that audits read and write, at paths that a user gives."""

from collections.abc import Sequence
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path

from cryptography import x509

from executor.audit.chain import Anchor
from executor.audit.findings import Findings
from executor.audit.statements import MAX_BYTES, Statement
from executor.audit.verify import Observer, Verification, verify_bundle
from executor.errors import UsageError
from executor.user_files import UserFileError, open_file, read_file

MAX_ROOTS = 1 << 20


def verify_file(
    file: Path,
    anchor: Anchor,
    observers: tuple[Observer, ...] = (),
    said: Sequence[Statement] = (),
    findings: Findings | None = None,
    *,
    resume: Path | None = None,
    checkpoint: Path | None = None,
) -> Verification:
    """Check the export in a file, from a checkpoint on if one is given."""
    with ExitStack() as stack:
        opened = stack.enter_context(open_input(file))
        earlier = None if resume is None else stack.enter_context(open_input(resume))
        try:
            return verify_bundle(
                opened, anchor, observers, said, findings, resume=earlier, checkpoint=checkpoint
            )
        except OSError as error:
            raise UsageError(
                "AUDIT_FILE", f"{checkpoint or file} cannot be used: {error.strerror}"
            ) from error


def open_input(file: Path) -> BufferedReader:
    """Open a file that a user names."""
    try:
        return open_file(file)
    except UserFileError as error:
        raise UsageError("AUDIT_FILE", f"{file} cannot be read: {error.cause}") from error


def read_statement(path: Path) -> Statement:
    """Read what an organisation says of its peer."""
    try:
        return Statement.from_bytes(read_file(path, MAX_BYTES))
    except UserFileError as error:
        raise UsageError("AUDIT_FILE", f"{path} cannot be read: {error.cause}") from error


def read_roots(folder: Path) -> list[x509.Certificate]:
    """Read the certificates in the files *.pem of a folder, or in one file."""
    found: list[x509.Certificate] = []
    try:
        paths = [folder] if folder.is_file() else sorted(folder.rglob("*.pem"))
        for path in paths:
            found += x509.load_pem_x509_certificates(read_file(path, MAX_ROOTS))
    except UserFileError as error:
        raise UsageError("AUDIT_ROOTS", f"{folder} cannot be read: {error.cause}") from error
    except (OSError, ValueError) as error:
        raise UsageError("AUDIT_ROOTS", f"{folder} cannot be read: {error}") from error
    if not found:
        raise UsageError("AUDIT_ROOTS", f"{folder} holds no certificates in files called *.pem")
    return found


def write_text(path: Path, text: str) -> None:
    """Write a report."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("AUDIT_FILE", f"{path} cannot be written: {error.strerror}") from error
