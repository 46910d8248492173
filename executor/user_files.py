"""Files whose paths a user gives: opened so that none can hang, exhaust memory or end in a traceback.

A path may name a pipe, a device, a directory, a loop of links, or a file without end. Here it is opened
without waiting, has to be a regular file, and is read up to a stated size and no further.
"""

import io
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

MAX_JSON_DEPTH = 64

# As in protocol.canonical: text without an end is one token too, and nothing is tried twice.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class UserFileError(Exception):
    """A path that is no readable file of reasonable size; each caller says it in a code of its own."""

    def __init__(self, cause: str, *, not_a_file: bool = False, too_large: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.not_a_file = not_a_file
        self.too_large = too_large


def open_file(path: Path) -> io.BufferedReader:
    """Open a regular file for reading, at once or not at all."""
    try:
        # A pipe without a writer would keep a plain open waiting for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise UserFileError(error.strerror or "cannot be opened") from error
    except ValueError as error:
        raise UserFileError("the path has a zero byte") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserFileError("this is not a file", not_a_file=True)
    return os.fdopen(descriptor, "rb")


def read_file(path: Path, most: int) -> bytes:
    """Read a regular file of at most so many bytes; a larger one is refused before it is read."""
    with open_file(path) as file:
        # Some files say they are empty and are not, as those of /proc, so what is read is counted too.
        if os.fstat(file.fileno()).st_size > most:
            raise _too_large(most)
        try:
            raw = file.read(most + 1)
        except OSError as error:
            raise UserFileError(error.strerror or "cannot be read") from error
    if len(raw) > most:
        raise _too_large(most)
    return raw


def parse_json(raw: bytes, depth: int = MAX_JSON_DEPTH) -> Any:
    """Read JSON that somebody else wrote; what nests deeper is a ValueError, like all that is no JSON."""
    nested = 0
    for match in _TOKEN.finditer(raw):
        first = raw[match.start()]
        nested += (first in b"[{") - (first in b"]}")
        if nested > depth:
            raise ValueError(f"nested more than {depth} deep")
    # As UTF-8 and nothing else: in another encoding a bracket could look like text above.
    return json.loads(raw.decode())


def _too_large(most: int) -> UserFileError:
    return UserFileError(f"more than {most} bytes", too_large=True)
