"""Rows to be scored, from a CSV file with a header; a label is not needed, and columns are found by name."""

import contextlib
import csv
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from executor.errors import DatasetError
from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.schema import FeatureSchema

MISSING = frozenset({"", "na", "n/a", "nan", "null"})


@dataclass(frozen=True)
class Rows:
    """Feature values in the order of the process's schema, and what is to be carried into the result."""

    X: NDArray[np.float64]
    kept: tuple[tuple[str, ...], ...]


def find_schema(path: Path, label: str, drop: Sequence[str], wanted: Digest) -> FeatureSchema:
    """Return the schema that a file's columns give, if it is the one of the process."""
    with _open(path) as file:
        _, header = _header(path, file)
    for name in drop:
        if name not in header:
            raise DatasetError("DATA_COLUMN", f"{path}, line 1: there is no column {name!r}", _COLUMNS)
    columns = tuple(name for name in header if name != label and name not in drop)
    try:
        schema = FeatureSchema(columns, label)
    except RecordError as error:
        raise DatasetError("DATA_SCHEMA", f"{path}, line 1: {error.cause}", _COLUMNS) from error
    if schema.digest != wanted:
        raise DatasetError(
            "DATA_SCHEMA",
            f"{path}, line 1: these {len(columns)} columns with the label {label!r} are not, in this order, "
            f"those that the process agreed on",
            _COLUMNS,
        )
    return schema


_COLUMNS = (
    "Give the columns of the process in its order, name the label with --label and other columns with "
    "--drop, or give the federation file with --spec and let the columns be found by name"
)


def read(path: Path, schema: FeatureSchema, keep: Sequence[str] = ()) -> Rows:
    """Read the features of every row, in the order of the schema, and the columns to be kept as text."""
    with _open(path) as file:
        delimiter, header = _header(path, file)
        places = [_place(path, header, name) for name in schema.features]
        kept = [_place(path, header, name) for name in keep]
        body = file.tell()
        values = None if kept else _read_fast(file, delimiter, places, len(header))
        if values is not None:
            return Rows(values, ())
        file.seek(body)
        return _read_checked(path, file, delimiter, header, places, kept)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise DatasetError(
            "DATA_FILE", f"{path}: {error.strerror}", "Check the path and its permissions"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError("DATA_FORMAT", f"{path}: {error}", "Save it as plain CSV in UTF-8") from error


def _header(path: Path, file: TextIO) -> tuple[str, list[str]]:
    line = file.readline()
    if not line.strip():
        raise DatasetError("DATA_HEADER", f"{path}, line 1: empty", "Put the column names on the first line")
    delimiter = max(",;\t", key=line.count)
    header = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    for name in header:
        if header.count(name) > 1:
            raise DatasetError("DATA_HEADER", f"{path}, line 1: column {name!r} appears twice", "Rename one")
    return delimiter, header


def _place(path: Path, header: list[str], name: str) -> int:
    if name not in header:
        raise DatasetError(
            "DATA_COLUMN",
            f"{path}, line 1: there is no column {name!r} among {', '.join(header[:40])}",
            "Give every feature of the process a column of its name",
        )
    return header.index(name)


def _read_fast(file: TextIO, delimiter: str, places: list[int], width: int) -> NDArray[np.float64] | None:
    """numpy's reader for files without a fault; None sends the file to the checked reader."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.loadtxt(file, delimiter=delimiter, quotechar='"', comments=None, ndmin=2)
    except ValueError:
        return None
    if len(values) == 0 or values.shape[1] != width or np.isinf(values[:, places]).any():
        return None
    return np.ascontiguousarray(values[:, places], dtype=np.float64)


def _read_checked(  # noqa: PLR0917
    path: Path, file: TextIO, delimiter: str, header: list[str], places: list[int], kept: list[int]
) -> Rows:
    values, texts = [], []
    reader = csv.reader(file, delimiter=delimiter)
    for cells in reader:
        line = reader.line_num + 1
        if not cells:
            continue
        if len(cells) != len(header):
            raise DatasetError(
                "DATA_ROW",
                f"{path}, line {line}: {len(cells)} cells under {len(header)} columns",
                f"Give every row one cell per column, separated by {delimiter!r}",
            )
        values.append([_number(path, line, header[i], cells[i]) for i in places])
        texts.append(tuple(cells[i] for i in kept))
    if not values:
        raise DatasetError("DATA_EMPTY", f"{path}: a header and no rows", "Add the rows")
    return Rows(np.array(values), tuple(texts))


def _number(path: Path, line: int, name: str, text: str) -> float:
    text = text.strip()
    if text.lower() in MISSING:
        return float("nan")
    try:
        value = float(text) if "_" not in text else float("inf")
    except ValueError:
        value = float("inf")
    if abs(value) == float("inf"):
        raise DatasetError(
            "DATA_VALUE",
            f"{path}, line {line}, column {name!r}: {text[:40]!r} is not a finite number",
            "Use a decimal point, encode categories as numbers, and leave missing values empty",
        )
    return value
