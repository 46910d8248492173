"""The bytes of a data file, read exactly once, so that what is hashed is what is parsed."""

import hashlib
import io
import os
import stat
from pathlib import Path

from executor.errors import DatasetError
from protocol.digest import Digest

MAX_FILE_BYTES = 4 << 30
MAX_CELLS = 1 << 29
"""Rows times columns: 2 GiB of float32."""


def read_file(path: Path) -> bytes:
    """Read a regular file of reasonable size into memory."""
    with _opened(path) as file:
        raw = file.read(MAX_FILE_BYTES + 1)
    if not raw:
        raise DatasetError("DATA_EMPTY", f"{path}: the file is empty")
    if len(raw) > MAX_FILE_BYTES:
        raise too_large(path, f"more than {MAX_FILE_BYTES >> 30} GiB")
    return raw


def file_digest(path: Path) -> Digest:
    """Hash a file without holding it."""
    with _opened(path) as file:
        return Digest(hashlib.file_digest(file, "sha256").digest())


def check_cells(path: Path, count: int) -> None:
    """Return if so many cells fit in memory; asked before any of them is read."""
    if count > MAX_CELLS:
        raise too_large(path, f"{count} cells, more than {MAX_CELLS}")


def too_large(path: Path, size: str) -> DatasetError:
    """Build the refusal of a file that would not fit in memory."""
    return DatasetError("DATA_SIZE", f"{path}: {size}")


def _opened(path: Path) -> io.BufferedReader:
    try:
        # A pipe without a writer would keep a plain open waiting for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise DatasetError("DATA_FILE", f"{path}: {cause}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DatasetError("DATA_FILE", f"{path}: this is not a file", case="kind")
    return os.fdopen(descriptor, "rb")
