"""The bytes of a data file, read exactly once, so that what is hashed is what is parsed."""

import hashlib
from pathlib import Path

from executor import user_files
from executor.errors import DatasetError
from executor.user_files import UserFileError
from protocol.digest import Digest

MAX_FILE_BYTES = 4 << 30
MAX_CELLS = 1 << 29
"""Rows times columns: 2 GiB of float32."""


def read_file(path: Path) -> bytes:
    """Read a regular file of reasonable size into memory."""
    try:
        raw = user_files.read_file(path, MAX_FILE_BYTES)
    except UserFileError as error:
        raise _refused(path, error) from error
    if not raw:
        raise DatasetError("DATA_EMPTY", f"{path}: the file is empty")
    return raw


def file_digest(path: Path) -> Digest:
    """Hash a file without holding it."""
    try:
        with user_files.open_file(path) as file:
            return Digest(hashlib.file_digest(file, "sha256").digest())
    except UserFileError as error:
        raise _refused(path, error) from error
    except OSError as error:
        raise DatasetError("DATA_FILE", f"{path}: {error.strerror}") from error


def check_cells(path: Path, count: int) -> None:
    """Return if so many cells fit in memory; asked before any of them is read."""
    if count > MAX_CELLS:
        raise too_large(path, f"{count} cells, more than {MAX_CELLS}")


def too_large(path: Path, size: str) -> DatasetError:
    """Build the refusal of a file that would not fit in memory."""
    return DatasetError("DATA_SIZE", f"{path}: {size}")


def _refused(path: Path, error: UserFileError) -> DatasetError:
    if error.too_large:
        return too_large(path, f"more than {MAX_FILE_BYTES >> 30} GiB")
    return DatasetError("DATA_FILE", f"{path}: {error.cause}", case="kind" if error.not_a_file else "")
