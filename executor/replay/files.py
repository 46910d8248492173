"""Evidence at paths that a user gives: written for the owner alone to read, and read whole."""

import os
from pathlib import Path

from executor.data.source import MAX_FILE_BYTES
from executor.errors import UsageError
from executor.user_files import UserFileError, read_file

MAX_BYTES = MAX_FILE_BYTES + (1 << 30)


def read_evidence(path: Path) -> bytes:
    """Read the bytes of evidence."""
    try:
        return read_file(path, MAX_BYTES)
    except UserFileError as error:
        raise UsageError("EVIDENCE_FILE", f"{path} cannot be read: {error.cause}") from error


def write_evidence(path: Path, raw: bytes) -> None:
    """Write evidence to a new file, which nobody else may read."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(raw)
    except OSError as error:
        raise UsageError("EVIDENCE_FILE", f"{path} cannot be written: {error.strerror}") from error
