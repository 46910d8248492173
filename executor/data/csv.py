"""Reading labelled CSV into arrays: accepted whole, or refused with file, line, column and remedy."""

import array
import csv
import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from executor.data.columns import Columns
from executor.data.source import check_cells
from executor.errors import DatasetError

MISSING = frozenset({"", "na", "n/a", "nan", "+nan", "-nan", "null"})
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
COMPRESSED = {b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]


def parse(
    path: Path, raw: bytes, label: str | None, drop: Sequence[str] = ()
) -> tuple[Floats, Labels | None, tuple[str, ...]]:
    """Return values, labels and the features' names of CSV with a header.

    Columns are separated by comma, or by `;` or tab if the header is.
    """
    for magic, kind in COMPRESSED.items():
        if raw.startswith(magic):
            raise DatasetError("DATA_FORMAT", f"{path}: this is a {kind} archive", case="archive")
    try:
        with io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8-sig", newline="") as file:
            return _parse(path, raw, file, label, drop)
    except UnicodeDecodeError as error:
        line = _line_of_first_bad_byte(raw)
        raise DatasetError("DATA_FORMAT", f"{path}, line {line}: not UTF-8", case="text") from error
    except csv.Error as error:
        raise DatasetError("DATA_FORMAT", f"{path}: {error}") from error


def _parse(
    path: Path, raw: bytes, file: TextIO, label: str | None, drop: Sequence[str]
) -> tuple[Floats, Labels | None, tuple[str, ...]]:
    delimiter, header = _header(path, file)
    columns = Columns(path, header, label, drop)
    check_cells(path, raw.count(delimiter.encode()) + raw.count(b"\n"))
    body = file.tell()
    values = _read_fast(file, delimiter, columns)
    if values is None:
        file.seek(body)
        values = _read_checked(file, delimiter, columns)
    features = np.ascontiguousarray(values[:, columns.feature_positions])
    position = columns.label_position
    return features, None if position is None else values[:, position].astype(np.int8), columns.features


def _header(path: Path, file: TextIO) -> tuple[str, list[str]]:
    line = file.readline()
    if not line.strip():
        raise DatasetError("DATA_HEADER", f"{path}, line 1: empty")
    delimiter = max(",;\t", key=line.count)  # the first of the best, so a single column reads as comma
    header = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    if all(_number(name) is not None for name in header):
        raise DatasetError("DATA_HEADER", f"{path}, line 1: holds numbers, not column names", case="numbers")
    return delimiter, header


def _read_fast(file: TextIO, delimiter: str, columns: Columns) -> Floats | None:
    """numpy's reader for files without a fault; None sends the file to the checked reader."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty body: the checked reader says so
            values = np.loadtxt(file, delimiter=delimiter, quotechar='"', comments=None, ndmin=2)
    except ValueError:
        return None
    if len(values) == 0 or values.shape[1] != len(columns.names):
        return None
    with np.errstate(over="ignore"):
        clean = not any(np.isinf(values[:, position].astype(np.float32)).any() for position in columns.used)
    if clean and columns.label_position is not None:
        labels = values[:, columns.label_position]
        clean = bool(((labels == 0) | (labels == 1)).all())
    return np.asarray(values, dtype=np.float64) if clean else None


def _read_checked(file: TextIO, delimiter: str, columns: Columns) -> Floats:
    """Row by row: fills missing values with NaN and names the line of the first bad cell."""
    values = array.array("d")
    reader = csv.reader(file, delimiter=delimiter)
    used = set(columns.used)
    for cells in reader:
        line = reader.line_num + 1
        if not cells:
            continue
        if len(cells) != len(columns.names):
            raise DatasetError(
                "DATA_ROW",
                f"{columns.path}, line {line}: {len(cells)} cells under {len(columns.names)} columns",
                delimiter=repr(delimiter),
            )
        values.extend(_cell(columns, line, i, cells[i]) if i in used else 0.0 for i in range(len(cells)))
    if not values:
        raise DatasetError("DATA_EMPTY", f"{columns.path}: a header and no rows", case="rows")
    return np.frombuffer(values, dtype=np.float64).reshape(-1, len(columns.names))


def _cell(columns: Columns, line: int, position: int, text: str) -> float:
    text = text.strip()
    if position == columns.label_position:
        value = _number(text)
        if value not in {0.0, 1.0}:
            raise DatasetError(
                "DATA_LABEL",
                f"{columns.where(f'line {line}', position)}: neither 0 nor 1",
            )
        return value
    if text.lower() in MISSING:
        return float("nan")
    value = _number(text)
    if value is None:
        raise DatasetError(
            "DATA_VALUE",
            f"{columns.where(f'line {line}', position)}: not a number",
            case="text",
        )
    with np.errstate(over="ignore"):
        infinite = bool(np.isinf(np.float32(value)))
    if infinite:
        raise DatasetError(
            "DATA_VALUE",
            f"{columns.where(f'line {line}', position)}: infinite, or beyond float32",
            case="cell",
        )
    return value


def _number(text: str) -> float | None:
    if NUMBER.fullmatch(text):
        return float(text)
    if text.lower().lstrip("+-") in {"inf", "infinity"}:
        return float("inf")
    return None


def _line_of_first_bad_byte(raw: bytes) -> int:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return raw.count(b"\n", 0, error.start) + 1
    return 1
