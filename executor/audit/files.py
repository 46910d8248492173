"""The files that audits read and write, at paths that a user gives."""

import re
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
_ROOT_NAME = re.compile(r"([A-Za-z0-9.-]{1,64})-[0-9]{1,3}\.pem")
"""As an export names its copies of certificates: the MSP id, and a number."""


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


def read_roots(folder: Path) -> dict[str, list[x509.Certificate]]:
    """Read the certificates in the files ORG-N.pem of a folder, by the organisation that their names say."""
    found: dict[str, list[x509.Certificate]] = {}
    try:
        paths = sorted(folder.rglob("*.pem"))
    except OSError as error:
        raise UsageError("AUDIT_ROOTS", f"{folder} cannot be read: {error}") from error
    for path in paths:
        named = _ROOT_NAME.fullmatch(path.name)
        if named is None:
            raise UsageError("AUDIT_ROOTS", f"the name of {path} does not say whose root it is")
        found.setdefault(named[1], []).extend(read_authorities(path))
    if not found:
        raise UsageError("AUDIT_ROOTS", f"{folder} holds no certificates in files called ORG-N.pem")
    return found


def read_roots_of(owner: str, path: Path) -> list[x509.Certificate]:
    """Read one organisation's roots: from a file that somebody says is theirs, or from a folder by name."""
    if path.is_file():
        return read_authorities(path)
    found = read_roots(path).get(owner)
    if not found:
        raise UsageError("AUDIT_ROOTS", f"{path} holds no file called {owner}-N.pem")
    return found


def read_authorities(path: Path) -> list[x509.Certificate]:
    """Read the certificates in a file."""
    try:
        return x509.load_pem_x509_certificates(read_file(path, MAX_ROOTS))
    except UserFileError as error:
        raise UsageError("AUDIT_ROOTS", f"{path} cannot be read: {error.cause}") from error
    except ValueError as error:
        raise UsageError("AUDIT_ROOTS", f"{path} cannot be read: {error}") from error


def write_text(path: Path, text: str) -> None:
    """Write a report."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("AUDIT_FILE", f"{path} cannot be written: {error.strerror}") from error
